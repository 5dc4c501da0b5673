/**
 * The model of a run: it follows steps, reads files with any tool that the client offers, recalls files that it read long ago, and says their
 * secrets. A request that lacks something the step needs is an error that ends the run.
 */
import { isObject, objectsIn as namedObjects } from '../support/fake-provider/json.ts';
import type { ScriptRequest, Turn, TurnPart } from '../support/fake-provider/script.ts';
import { offeredTools, type OfferedTool, readingCall } from './offered-tools.ts';
import { namesLoaded } from './loaded-tools.ts';
import { secretIn } from './secret-files.ts';
import { sideAnswer } from './side-answer.ts';
import { idNear, stubIdsIn } from '../support/stub-texts.ts';

/** The model's actions in one reply to the client's request, or to the gateway's request after a recall. */
export type Step = {
  /** A folded file that is recalled privately; the client does not see the call. */
  readonly recall?: string;
  /** Files that the client reads, all at once. */
  readonly read?: readonly string[];
  /** Full names of the deferred tools whose definitions the client loads. */
  readonly load?: readonly string[];
  /** A call of a loaded tool, which looks up an article on the client's MCP server. */
  readonly call?: { readonly tool: string; readonly article: string };
  /** Files, or calls (`subjectOf`), whose secrets the final answer contains. */
  readonly answer?: readonly string[];
};

/** Returns the name of a call's secret. */
export function subjectOf({ tool, article }: NonNullable<Step['call']>): string {
  return `${tool.replace(/^mcp__\w+?__/, '')} ${article}`;
}

export type ScriptedModel = {
  readonly script: (request: ScriptRequest) => Turn;
  /** Returns the number of valid requests, including those without tools. */
  readonly asked: () => number;
  /** Returns the files whose recalls were restored in the client's first request after them. */
  readonly restored: () => readonly string[];
};

export function scriptedModel(steps: readonly Step[], folder: string, thinks: boolean): ScriptedModel {
  const known = new Map<string, string>();
  let asked = 0;
  let at = 0;
  const restored: string[] = [];

  function reply({ body, history }: ScriptRequest): Turn {
    asked++;
    const tools = offeredTools(body);
    if (!readingCall(tools, '')) return { type: 'turn', parts: [{ type: 'text', text: sideAnswer(body) }] };
    const step = steps[at++];
    if (!step) throw new Error(`The loop has ${steps.length} steps and this request asks for one more.`);
    const text = JSON.stringify([history, body]);
    const before = steps[at - 2];
    const asksFor = [before?.recall, before?.call && subjectOf(before.call)].filter(
      (one) => one !== undefined,
    );
    for (const file of [...(before?.read ?? []), ...asksFor]) known.set(file, seen(file, text));
    for (const tool of [...(before?.load ?? []), ...(step.call ? [step.call.tool] : [])]) {
      if (!namesLoaded(body).includes(tool)) throw new Error(`The request has no reference to ${tool}.`);
      if (!tools.some(({ name }) => name === tool)) throw new Error(`The request does not define ${tool}.`);
    }
    const returned = writtenAfter(steps, at - 1)?.recall;
    if (returned !== undefined && secretIn(returned, text) !== undefined) restored.push(returned);
    return { type: 'turn', parts: partsOf(step, text, tools) };
  }

  function partsOf(step: Step, text: string, tools: readonly OfferedTool[]): readonly TurnPart[] {
    const parts: TurnPart[] = [];
    const thinking = `Step ${at} of ${steps.length}.`;
    // Some clients send a signature back only if it is base64.
    if (thinks) parts.push({ type: 'thinking', text: thinking, signature: btoa(`sealed: ${thinking}`) });
    if (step.answer) {
      const secrets = step.answer.map((file) => known.get(file) ?? 'unknown').join(', ');
      return [...parts, { type: 'text', text: `The secrets are ${secrets}.` }];
    }
    if (step.recall) {
      parts.push({ type: 'text', text: `I look up ${step.recall} again. ` });
      const query = `secret of ${step.recall}`;
      parts.push({
        type: 'tool-call',
        name: 'read_memory',
        arguments: { id: memoryOf(step.recall, text), query },
      });
    }
    if (step.load) {
      const query = `select:${step.load.join(',')}`;
      parts.push({ type: 'tool-call', name: 'ToolSearch', arguments: { query, max_results: 5 } });
    }
    if (step.call) {
      const { tool, article } = step.call;
      parts.push({ type: 'tool-call', name: tool, arguments: { article } });
    }
    for (const file of step.read ?? []) {
      parts.push({ type: 'text', text: `I read “${file}”.\n` });
      parts.push(readingCall(tools, `${folder}/${file}`)!);
    }
    return parts;
  }

  return {
    script: reply,
    asked: () => asked,
    restored: () => restored,
  };
}

/** Returns the step whose recall must be restored in this request. A recall alone is first answered within the same reply. */
function writtenAfter(steps: readonly Step[], at: number): Step | undefined {
  return [steps[at - 1], steps[at - 2]].find(
    (step, back) => step?.recall && (back === 0) === Boolean(step.read),
  );
}

/** Returns the secret of a file that was just read. */
function seen(file: string, text: string): string {
  const secret = secretIn(file, text);
  if (secret === undefined) throw new Error(`The request does not hold the secret of ${file}, just read.`);
  return secret;
}

/** Returns the id of the file's stub, found as a model would: by the call that it answers, else by the stub's text. */
function memoryOf(file: string, text: string): string {
  if (secretIn(file, text) !== undefined)
    throw new Error(`${file} is not folded: its secret is in the request.`);
  const [history, body] = JSON.parse(text) as [unknown, Parsed];
  const results = [...resultsOf(file, [history, body]), ...responsesOf(file, body)];
  const answers = results.map((answer) => JSON.stringify(answer)).join('\n');
  const id = stubIdsIn(answers)[0] ?? idNear(text, file) ?? stubIdsIn(text)[0];
  if (id === undefined) throw new Error(`The request has neither ${file} nor a stub.`);
  return id;
}

type Parsed = Readonly<Record<string, unknown>>;

/** Yields the results of calls that name this file, in formats whose calls have ids. */
function* resultsOf(file: string, request: unknown): Generator<Parsed> {
  const objects = [...objectsIn(request)];
  const isCall = ({ input, arguments: given, function: called }: Parsed) =>
    JSON.stringify(input ?? given ?? called ?? '').includes(file);
  const ids = new Set(objects.filter(isCall).flatMap(({ call_id, id }) => [call_id, id]));
  ids.delete(undefined);
  for (const object of objects) {
    const { type, role, call_id, tool_call_id, tool_use_id } = object;
    const isResult = role === 'tool' || String(type).endsWith('_output') || type === 'tool_result';
    if (isResult && ids.has(tool_call_id ?? tool_use_id ?? call_id)) yield object;
  }
}

/** Yields the same in generateContent, where calls may have no ids: responses are in the order of the calls, in the next content. */
function* responsesOf(file: string, { contents }: Parsed): Generator<unknown> {
  const parts = namedObjects(contents).map((content) => namedObjects(content['parts']));
  for (const [at, said] of parts.entries()) {
    const calls = said.flatMap(({ functionCall }) => (isObject(functionCall) ? [functionCall] : []));
    const responses = (parts[at + 1] ?? []).flatMap(({ functionResponse }) => functionResponse ?? []);
    for (const [index, { args }] of calls.entries())
      if (JSON.stringify(args ?? '').includes(file)) yield responses[index];
  }
}

function* objectsIn(value: unknown): Generator<Parsed> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield value as Parsed;
  for (const inner of Object.values(value)) yield* objectsIn(inner);
}
