/** Finds the rules that an Anthropic Messages body breaks, with `JSON.parse` alone. https://docs.anthropic.com/en/api/messages */
import type { JsonRecord } from '../../conversation/json-record.ts';
import { isFilled, objectsOf, parsedBody } from '../parsed-body.ts';

/** Neighboring messages of one side are one turn to the provider. */
type MergedTurn = { readonly role: unknown; readonly blocks: JsonRecord[] };

export function faults(body: Uint8Array): readonly string[] {
  const parsed = parsedBody(body);
  if (!parsed) return ['body-is-json'];
  const messages = objectsOf(parsed['messages']);
  if (messages.length === 0) return ['messages-not-empty'];
  const found: string[] = [];
  const turns: MergedTurn[] = [];
  for (const [index, message] of messages.entries()) {
    const { role, content } = message;
    const isEnd = role === 'assistant' && index === messages.length - 1;
    if (!isFilled(content) && !isEnd && message['output_config'] === undefined)
      found.push('content-not-empty');
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : objectsOf(content);
    if (Array.isArray(content) && blocks.some(({ type, text }) => type === 'text' && text === ''))
      found.push('text-not-empty');
    if (role === 'system') continue;
    const last = turns.at(-1);
    if (last?.role === role) last?.blocks.push(...blocks);
    else turns.push({ role, blocks: [...blocks] });
  }
  if (turns[0]?.role === 'assistant' && turns[0].blocks[0]?.['type'] !== 'compaction')
    found.push('first-is-user');
  for (const [index, turn] of turns.entries())
    found.push(...pairing(turn, turns[index + 1], turns[index - 1]));
  return found;
}

function pairing(
  turn: MergedTurn,
  next: MergedTurn | undefined,
  before: MergedTurn | undefined,
): readonly string[] {
  const found: string[] = [];
  if (turn.role === 'assistant') {
    const ids = idsOf(turn, 'tool_use', 'id');
    if (new Set(ids).size < ids.length) found.push('call-ids-differ');
    const answered = new Set(leadingResults(next));
    for (const id of ids) if (!answered.has(id)) found.push('calls-answered-next');
    return found;
  }
  const asked = new Set(before?.role === 'assistant' ? idsOf(before, 'tool_use', 'id') : []);
  const results = idsOf(turn, 'tool_result', 'tool_use_id');
  for (const id of results) if (!asked.has(id)) found.push('results-answer-calls');
  if (new Set(results).size < results.length) found.push('one-result-a-call');
  return found;
}

function idsOf({ blocks }: MergedTurn, kind: string, key: string): readonly unknown[] {
  return blocks.filter(({ type }) => type === kind).map((block) => block[key]);
}

/** Results count only ahead of any other content. */
function leadingResults(turn: MergedTurn | undefined): readonly unknown[] {
  if (!turn || turn.role === 'assistant') return [];
  const end = turn.blocks.findIndex(({ type }) => type !== 'tool_result');
  const results = end < 0 ? turn.blocks : turn.blocks.slice(0, end);
  return results.map((block) => block['tool_use_id']);
}
