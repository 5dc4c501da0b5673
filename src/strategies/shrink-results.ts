/**
 * Shrinks the texts of one tool result when it is first seen. If something is left out, a last line says how much and how to read it. A pure
 * function of the result and its call, remembered with the parts, which are read once for all bodies that contain the same bytes.
 */
import type { Shrunk, ShrinkOptions } from '../arrival/kind.ts';
import { shrink } from '../arrival/shrink.ts';
import { bytesOf, type Conversation, type Message, type Part, textOf } from '../conversation/conversation.ts';
import { isFileContent } from './lib/tool-calls.ts';
import { shrunkNote } from './lib/stub.ts';

/** Settings for tool results on arrival. */
export type ShrinkSettings = Pick<ShrinkOptions, 'lossless' | 'lineNumbers' | 'without'> & {
  /** Whether lines of an earlier result are replaced by a reference. Default true. */
  readonly repeats?: boolean | undefined;
};

export type ShrinkView = {
  readonly conversation: Conversation;
  /** Counts the tokens of a text. */
  readonly count: (text: string) => number;
  readonly idOf: (original: Uint8Array) => string;
  /** Name of the recall tool; without one nothing is left out. */
  readonly recallTool: string | undefined;
};

export type ToolResultPart = Part & { readonly type: 'tool-result' };

/** A smaller version of one text of a result, by the text's index. `memory`: the id of the original, if something was left out. */
export type SmallerText = {
  readonly text: number;
  readonly shrunk: string;
  /** Tokens saved. */
  readonly saved: number;
  readonly memory: string | undefined;
};

/** Returns the smaller texts of a result; none for most results. `call` is the result's call, if it is known. */
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
    if (span.end - span.start < MIN_BYTES) return [];
    const original = textOf(conversation.body, message, span);
    const shrunk = shrink(original, { ...settings, lossless, mayBeEdited, count: view.count });
    if (!shrunk) return [];
    const memory = shrunk.isLossless ? undefined : idOf(bytesOf(conversation.body, message, span));
    const shown = memory === undefined ? shrunk.text : withNote(original, shrunk, memory, recallTool);
    return [{ text, shrunk: shown, saved: view.count(original) - view.count(shown), memory }];
  });
}

/** Minimum bytes of a literal to be shrunk. */
const MIN_BYTES = 200;

function withNote(
  original: string,
  { text }: Shrunk,
  memory: string,
  recallTool: string | undefined,
): string {
  return `${text}\n${shrunkNote({ characters: original.length, memory, recallTool })}`;
}
