/**
 * Shrinks the texts of one tool result when it is first seen. If something is left out, a last line says how much and how to read it. A pure
 * function of the result and its call, remembered with the parts, which are read once for all bodies that contain the same bytes.
 */
import type { Shrunk, ShrinkOptions } from '../arrival/kind.ts';
import { shrinkInSteps } from '../arrival/shrink.ts';
import type { Conversation, Message, Part } from '../conversation/conversation.ts';
import { parseRecord } from '../conversation/json-scan.ts';
import { bytesOf, textInSteps } from '../conversation/messages.ts';
import type { Steps } from '../conversation/steps.ts';
import { isFileContent } from '../outline/files-shown.ts';
import { type KeptText, way } from './lib/stubs.ts';

/** Settings for tool results on arrival. */
export type ShrinkSettings = Pick<ShrinkOptions, 'lossless' | 'lineNumbers' | 'without'> & {
  /** Whether lines of an earlier result are replaced by a reference. Default true. */
  readonly repeats?: boolean | undefined;
};

export type ShrinkView = {
  readonly conversation: Conversation;
  /** Counts the tokens of a text. */
  readonly count: (text: string) => number;
  readonly countInSteps: (text: string) => Steps<number>;
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
export function* shrinkResult(
  view: ShrinkView,
  settings: ShrinkSettings,
  message: Message,
  result: ToolResultPart,
  call: { readonly name: string; readonly input: string } | undefined,
): Steps<readonly SmallerText[]> {
  const { conversation, recallTool, idOf } = view;
  const mayBeEdited = call !== undefined && isFileContent(call);
  const lossless =
    settings.lossless || recallTool === undefined || result.isError === true || call === undefined;
  // A text is compared several times, and only short and very long ones are remembered by the counter.
  const counts = new Map<string, number>();
  const countInSteps = (text: string): Steps<number> => countOnce(counts, view, text);
  const count = (text: string): number => counts.get(text) ?? view.count(text);
  const options: ShrinkOptions = { ...settings, lossless, mayBeEdited, count, countInSteps };
  const smaller: SmallerText[] = [];
  for (let text = 0; text < result.texts.length; text++) {
    const span = result.texts[text]!;
    if (span.end - span.start < MIN_BYTES) continue;
    const original = yield* textInSteps(conversation.body, message, span);
    const shrunk = yield* shrinkInSteps(original, options);
    if (!shrunk) continue;
    const memory = shrunk.isLossless ? undefined : idOf(bytesOf(conversation.body, message, span));
    const shown = memory === undefined ? shrunk.text : withNote(original, shrunk, memory, recallTool);
    smaller.push({
      text,
      shrunk: shown,
      saved: (yield* countInSteps(original)) - (yield* countInSteps(shown)),
      memory,
    });
  }
  return smaller;
}

function* countOnce(
  counts: Map<string, number>,
  { countInSteps }: Pick<ShrinkView, 'countInSteps'>,
  text: string,
): Steps<number> {
  const tokens = counts.get(text) ?? (yield* countInSteps(text));
  counts.set(text, tokens);
  return tokens;
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

// Names of calls in references

/**
 * Returns a call's name in references, such as `Read(src/app.ts)`. Short; other calls may have the same name. `input` is the JSON text of the
 * arguments.
 */
export function callLabel({ name, input }: { readonly name: string; readonly input: string }): string {
  const about = firstText(input);
  return about === undefined ? name.slice(0, 60) : `${name.slice(0, 60)}(${about})`;
}

const MAX_LABEL = 48;

/** Names of arguments that say what a call was about. */
const descriptive = /path|file|command|cmd|query|pattern|url|id$/i;

function firstText(input: string): string | undefined {
  const fields = input.length > MAX_NAMED ? undefined : parseRecord(input);
  let first: string | undefined;
  for (const key in fields) {
    const value = fields[key];
    if (typeof value !== 'string' || value.trim() === '') continue;
    if (descriptive.test(key)) return labelLine(value);
    first ??= value;
  }
  return first === undefined ? undefined : labelLine(first);
}

/** UTF-16 units of the longest arguments that are parsed for a name. */
const MAX_NAMED = 1_000_000;

/** Shortens a text to one line: the end of a path, or the beginning of another text. */
function labelLine(text: string): string {
  const line = text.trim().split('\n', 1)[0]!;
  if (!/\s/.test(line) && line.slice(0, -1).includes('/'))
    return line.split('/').slice(-2).join('/').slice(-MAX_LABEL);
  return line.length > MAX_LABEL ? `${line.slice(0, MAX_LABEL).toWellFormed()}…` : line;
}

/** Ends a result that was shortened on arrival. */
export function shrunkNote(
  shrunk: KeptText & {
    /** Length of the whole result. */
    readonly characters: number;
  },
): string {
  const { characters, memory, recallTool } = shrunk;
  return `[Shortened from ${characters} characters. ${way(memory, recallTool)}]`;
}
