/** Finds the rules that a generateContent body breaks, with `JSON.parse` alone. https://ai.google.dev/api/generate-content */
import { type JsonRecord, isRecord } from '../../conversation/json-record.ts';
import { objectsOf, parsedBody } from '../parsed-body.ts';
import { valueOf } from './names.ts';

type ParsedContent = { readonly isModel: boolean; readonly parts: readonly JsonRecord[] };

export function faults(body: Uint8Array): readonly string[] {
  const parsed = parsedBody(body);
  if (!parsed) return ['body-is-json'];
  const contents = objectsOf(parsed['contents']).map(contentOf);
  if (contents.length === 0) return ['messages-not-empty'];
  const found: string[] = [];
  if (contents[0]!.isModel) found.push('first-is-user');
  const turns: { isModel: boolean; parts: JsonRecord[] }[] = [];
  for (const [index, { isModel, parts }] of contents.entries()) {
    if (parts.length === 0) found.push('content-not-empty');
    if (!isModel && contents[index - 1]?.isModel === false) found.push('roles-alternate');
    const last = turns.at(-1);
    if (last?.isModel === isModel) last.parts.push(...parts);
    else turns.push({ isModel, parts: [...parts] });
  }
  for (const [index, turn] of turns.entries()) found.push(...pairing(turn, turns[index + 1], index === 0));
  return found;
}

function contentOf(content: JsonRecord): ParsedContent {
  const parts = content['parts'];
  return {
    isModel: content['role'] === 'model',
    parts: isRecord(parts) ? [parts] : objectsOf(parts),
  };
}

/** "the number of function response parts is equal to the number of function call parts of the function call turn" */
function pairing(turn: ParsedContent, next: ParsedContent | undefined, isFirst: boolean): readonly string[] {
  const found: string[] = [];
  const given = turn.isModel ? [] : inside(turn.parts, 'functionResponse');
  if (isFirst && given.length > 0) found.push('results-answer-calls');
  for (const result of given) {
    const response = valueOf(result, 'response');
    if (response !== undefined && response !== null && !isRecord(response)) found.push('response-is-object');
  }
  if (!turn.isModel) return found;
  const calls = inside(turn.parts, 'functionCall');
  const answers = next ? inside(next.parts, 'functionResponse') : [];
  if (answers.length < calls.length) found.push('calls-answered-next');
  if (answers.length > calls.length) found.push('results-answer-calls');
  const open = calls.map(nameOf);
  for (const name of answers.map(nameOf)) {
    const at = open.indexOf(name);
    if (at < 0) found.push('results-name-calls');
    else open.splice(at, 1);
  }
  return found;
}

function nameOf(held: JsonRecord): unknown {
  return valueOf(held, 'name');
}

function inside(parts: readonly JsonRecord[], name: string): readonly JsonRecord[] {
  return parts.flatMap((part) => {
    const held = valueOf(part, name);
    return isRecord(held) ? [held] : [];
  });
}
