/**
 * Shrinks the texts of one tool result, when it is first seen: laid out smaller without loss; where something is left out, a line at the
 * end says how much and how to read it. A pure function of the result and its call, remembered with the parts, which are read once for
 * all bodies in which the same bytes stand.
 */
import type { Shrunk, ShrinkOptions } from '../arrival/kind.ts';
import { shrink } from '../arrival/shrink.ts';
import { bytesOf, type Conversation, type Message, type Part, textOf } from '../conversation/conversation.ts';
import { isFileContent } from './lib/tool-calls.ts';
import { shrunkNote } from './lib/stub.ts';

export type ShrinkSettings = Pick<ShrinkOptions, 'lossless' | 'lineNumbers' | 'without'> & {
  /** Whether lines that stand in an earlier result are only referred to. Default true. */
  readonly repeats?: boolean | undefined;
};

export type ShrinkView = {
  readonly conversation: Conversation;
  /** Tokens of a text. */
  readonly count: (text: string) => number;
  readonly idOf: (original: Uint8Array) => string;
  /** Name of the tool the model can recall with; without one nothing is left out. */
  readonly recallTool: string | undefined;
};

export type ToolResultPart = Part & { readonly type: 'tool-result' };

/** A text of the result, by its order, in its smaller form. `memory`: the id of the original, where something was left out. */
export type SmallerText = {
  readonly text: number;
  readonly shrunk: string;
  /** Tokens. */
  readonly saved: number;
  readonly memory: string | undefined;
};

/** Empty for most results. `call` is the call that was answered, where it is known. */
export function shrinkResult(
  view: ShrinkView,
  settings: ShrinkSettings,
  message: Message,
  result: ToolResultPart,
  call: { readonly name: string; readonly input: string } | undefined,
): readonly SmallerText[] {
  const { conversation, recallTool, idOf } = view;
  const mayBeEdited = call !== undefined && isFileContent(call);
  const lossless =
    settings.lossless || recallTool === undefined || result.isError === true || call === undefined;
  return result.texts.flatMap((span, text): readonly SmallerText[] => {
    if (span.end - span.start < SMALLEST) return [];
    const original = textOf(conversation.body, message, span);
    const shrunk = shrink(original, { ...settings, lossless, mayBeEdited, count: view.count });
    if (!shrunk) return [];
    const memory = shrunk.isLossless ? undefined : idOf(bytesOf(conversation.body, message, span));
    const stands = memory === undefined ? shrunk.text : withNote(original, shrunk, memory, recallTool);
    return [{ text, shrunk: stands, saved: view.count(original) - view.count(stands), memory }];
  });
}

/** Bytes of a literal; whatever is shorter holds nothing worth a look. */
const SMALLEST = 200;

function withNote(
  original: string,
  { text }: Shrunk,
  memory: string,
  recallTool: string | undefined,
): string {
  return `${text}\n${shrunkNote({ characters: original.length, memory, recallTool })}`;
}
