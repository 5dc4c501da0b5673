/**
 * Says what a model decided to do next, at three levels of detail, so that replies can be compared: which tools it calls, on which files, commands or
 * queries, and with which arguments. The texts exist only while replies are compared; nothing of them is kept. Pure.
 */
import type { ModelReply } from '../codecs/codec.ts';
import type { Conversation, ToolCall } from '../conversation/conversation.ts';
import { isRecord, type JsonRecord, parseRecord } from '../conversation/json-scan.ts';
import { inputOf } from '../conversation/messages.ts';
import { pathIn } from '../outline/step-line.ts';
import { commandIn, shellCall } from '../outline/outcome.ts';
import { type Agreement, agreementOf } from './shadow-estimate.ts';

export const levels = ['tool', 'target', 'arguments'] as const;

export type Level = (typeof levels)[number];

/** A decision at each level. Equal texts are equal decisions. */
export type Decision = Readonly<Record<Level, string>>;

/** Returns the decision of a reply: all of the client's calls in any order, or why the model stopped without one. */
export function decisionOf({ calls, finish }: Pick<ModelReply, 'calls' | 'finish'>): Decision {
  if (calls.length === 0) {
    const stopped = `no call, ${finish ?? 'no reason'}`;
    return { tool: stopped, target: stopped, arguments: stopped };
  }
  const all = calls.map(callAt);
  const at = (level: Level): string => JSON.stringify(all.map((call) => call[level]).toSorted());
  return { tool: at('tool'), target: at('target'), arguments: at('arguments') };
}

/** Compares four decisions at each level. */
export function agreementsOf(
  folded: readonly [Decision, Decision],
  whole: readonly [Decision, Decision],
): Readonly<Record<Level, Agreement>> {
  const at = (level: Level): Agreement =>
    agreementOf([folded[0][level], folded[1][level]], [whole[0][level], whole[1][level]]);
  return { tool: at('tool'), target: at('target'), arguments: at('arguments') };
}

/** Returns the calls of a conversation, to find replies that only repeat some. */
export function callsOf({ body, messages }: Conversation): ReadonlySet<string> {
  const calls = messages.flatMap((message) =>
    message.parts.flatMap((part) =>
      part.type === 'tool-call'
        ? [callAt({ name: part.name, argumentsJson: inputOf(body, message, part) }).arguments]
        : [],
    ),
  );
  return new Set(calls);
}

/** Sums over replies. `repeats`: those that only call what the conversation has called before, so they only fetch it again. */
export type ReplySums = { readonly replies: number; readonly tokensOut: number; readonly repeats: number };

/** Adds up replies. `earlier`: the calls of the conversation. */
export function sumsOf(
  replies: readonly { readonly reply: Pick<ModelReply, 'calls'>; readonly tokensOut: number }[],
  earlier: ReadonlySet<string>,
): ReplySums {
  const isKnown = (call: ToolCall) => earlier.has(callAt(call).arguments);
  return {
    replies: replies.length,
    tokensOut: replies.reduce((sum, { tokensOut }) => sum + tokensOut, 0),
    repeats: replies.filter(({ reply: { calls } }) => calls.length > 0 && calls.every(isKnown)).length,
  };
}

function callAt({ name, argumentsJson }: Pick<ToolCall, 'name' | 'argumentsJson'>): Decision {
  const sent = parseRecord(argumentsJson);
  if (!sent) {
    const target = `${name} ${fileName(patchedFile.exec(argumentsJson)?.[1] ?? '')}`;
    return { tool: name, target, arguments: `${name} ${oneSpaced(argumentsJson)}` };
  }
  return {
    tool: name,
    target: `${name} ${targetOf(sent)}`,
    arguments: `${name} ${JSON.stringify(comparable(sent))}`,
  };
}

/** Finds the first file of a patch in the format of `apply_patch`. */
const patchedFile = /^\*\*\* (?:Add|Update|Delete) File: (.+)$/m;

/** Arguments by which models name what they look for. */
const queryKeys = ['query', 'pattern', 'q', 'search', 'url', 'command', 'name', 'id'];

function targetOf(sent: JsonRecord): string {
  const command = commandIn(sent);
  if (command !== undefined) return commandTarget(command.replace(shellCall, '').slice(0, maxCommand));
  const path = fileName(pathIn(sent));
  const query = queryKeys.map((key) => sent[key]).find((value) => typeof value === 'string');
  return [path, query === undefined ? '' : oneSpaced(query)].filter(Boolean).join(' ');
}

/** Characters of a command that are looked at. */
const maxCommand = 2_000;

/** Returns the command's word, and the first file that it names. */
function commandTarget(command: string): string {
  const run = oneSpaced(command.replace(/^\s*cd \S+ *(?:&&|;)\s*/, '').replace(/^(?:\w+=\S* +)+/, ''));
  const [word = '', ...others] = run.split(' ');
  const file = others.find((one) => !one.startsWith('-') && /[/.]/.test(one)) ?? '';
  const verb = subcommands.has(word) ? ` ${others.find((one) => !one.startsWith('-')) ?? ''}` : '';
  return `${word}${verb} ${fileName(file)}`;
}

/** Programs whose next word says what they do. */
const subcommands: ReadonlySet<string> = new Set([
  'git',
  'npm',
  'pnpm',
  'yarn',
  'cargo',
  'go',
  'docker',
  'pip',
]);

/** Returns the last two names of a path: agents name one file absolutely, and relative to several folders. */
function fileName(path: string): string {
  return path
    .replaceAll(/["']/g, '')
    .split('/')
    .filter((name) => name !== '' && name !== '.')
    .slice(-2)
    .join('/');
}

/** Arguments that explain a call to people, and the text that an edit replaces: the lines that result from it are compared. */
const unimportant = new Set(['description', 'explanation', 'justification', 'old_string', 'old_str']);

/** Returns the arguments with their keys in order, and with single spaces in commands. */
function comparable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(comparable);
  if (!isRecord(value)) return value;
  const keys = Object.keys(value).filter((key) => !unimportant.has(key));
  const entries = keys.toSorted().map((key) => {
    const member = value[key];
    return [key, key === 'command' && typeof member === 'string' ? oneSpaced(member) : comparable(member)];
  });
  return Object.fromEntries(entries);
}

function oneSpaced(text: string): string {
  return text.trim().replaceAll(/\s+/g, ' ');
}
