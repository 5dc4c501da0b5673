/** Reads the items of a response: their text and calls, and which of them the client may see. */
import type { ModelReply, ToolCall } from '../codec.ts';
import { isRecord } from '../../conversation/json-scan.ts';
import { stringIn, elementsOf, type JsonElement } from '../event-json.ts';

export function textOfItems(items: readonly JsonElement[]): string {
  return items
    .flatMap(({ value }) => {
      const content = isRecord(value) && value['type'] === 'message' ? value['content'] : undefined;
      return Array.isArray(content) ? (content as readonly unknown[]) : [];
    })
    .map((part) => (stringIn(part, 'type') === 'output_text' ? stringIn(part, 'text') : ''))
    .join('');
}

export function isPrivate(value: unknown, recallTool: string | undefined): boolean {
  return (
    recallTool !== undefined &&
    stringIn(value, 'type') === 'function_call' &&
    stringIn(value, 'name') === recallTool
  );
}

/** Returns the calls that wait for an answer, whatever their type: the provider answers its own calls in the same output. */
export function callsOfItems(items: readonly JsonElement[]): readonly ToolCall[] {
  const outputs = new Set(
    items.map(({ value }) => `${stringIn(value, 'type')} ${stringIn(value, 'call_id')}`),
  );
  return items.flatMap(({ value }): readonly ToolCall[] => {
    const type = stringIn(value, 'type') ?? '';
    const isApproval = type === 'mcp_approval_request';
    const id = stringIn(value, isApproval ? 'id' : 'call_id');
    if (id === undefined || (!isApproval && !type.endsWith('_call'))) return [];
    if (outputs.has(`${type}_output ${id}`) || stringIn(value, 'execution') === 'server') return [];
    return [
      { id, name: stringIn(value, 'name') ?? type.replace(/_call$/, ''), argumentsJson: argumentsOf(value) },
    ];
  });
}

/**
 * True when the provider ran tools of its own, listed those of an MCP server, or compacted the conversation within the call: then
 * it read prompts that nobody sent.
 */
export function didProviderWork(items: readonly JsonElement[]): boolean {
  const others = items.filter(({ value }) => !/^(?:message|reasoning)$/.test(stringIn(value, 'type') ?? ''));
  return others.length > callsOfItems(items).length;
}

function argumentsOf(value: unknown): string {
  const fields = isRecord(value) ? value : {};
  const asked =
    fields['arguments'] ?? fields['input'] ?? fields['action'] ?? fields['actions'] ?? fields['operation'];
  return typeof asked === 'string' ? asked : JSON.stringify(asked ?? {});
}

/** Leaves out reasoning that no item of another kind follows: the provider would refuse it in the next request. */
export function withoutStrayReasoning(items: readonly JsonElement[]): readonly JsonElement[] {
  return items.filter((item, index) => {
    const next = items[index + 1];
    return !isReasoning(item) || (next !== undefined && !isReasoning(next));
  });
}

/**
 * Returns the items of a reply that the client may see: all but the private calls, and the reasoning that led to nothing else. A
 * client that sent such reasoning back would be refused: "reasoning … without its required following item".
 */
export function visibleItems(reply: ModelReply): readonly JsonElement[] {
  const items = elementsOf(reply.turn);
  const recallTool = reply.recalls[0]?.name;
  if (recallTool === undefined) return items;
  return items.filter((item, index) =>
    isReasoning(item) ? !ledToRecallsOnly(items, index, recallTool) : !isPrivate(item.value, recallTool),
  );
}

function ledToRecallsOnly(items: readonly JsonElement[], index: number, recallTool: string): boolean {
  const behind = items.slice(index + 1);
  const start = behind.findIndex((item) => !isReasoning(item));
  if (start < 0) return true;
  const rest = behind.slice(start);
  const end = rest.findIndex(isReasoning);
  return rest.slice(0, end < 0 ? undefined : end).every(({ value }) => isPrivate(value, recallTool));
}

export function isReasoning({ value }: JsonElement): boolean {
  return stringIn(value, 'type') === 'reasoning';
}
