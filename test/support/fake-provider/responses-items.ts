/** Makes output items of Responses from the parts of a turn, and the events in which each is streamed. */
import { isObject, objectsIn } from './json.ts';
import { argumentsJson, pieces } from './script.ts';
import type { Answer, JsonObject, TurnPart } from './script.ts';

export type OutputItem = JsonObject & { readonly id: string; readonly type: string };

/** An event before it gets its number. */
export type Draft = JsonObject & { readonly type: string };

/** Returns one item for each part, in order. */
export function outputItems(answer: Answer, isCutOff: boolean): readonly OutputItem[] {
  return answer.parts.map((part, n) => {
    const isOpen = isCutOff && n === answer.parts.length - 1;
    return itemOf(part, `${answer.index}_${n}`, isOpen ? 'incomplete' : 'completed', answer.request.body);
  });
}

function itemOf(part: TurnPart, number: string, status: string, request: JsonObject): OutputItem {
  switch (part.type) {
    case 'text':
      return {
        id: `msg_${number}`,
        type: 'message',
        status,
        content: [outputText(part.text)],
        role: 'assistant',
      };
    case 'thinking':
      return {
        id: `rs_${number}`,
        type: 'reasoning',
        encrypted_content: part.signature,
        summary: part.text === '' ? [] : [summaryText(part.text)],
      };
    case 'tool-call': {
      const { isFreeForm, namespace } = declared(part.name, request);
      const said = argumentsJson(part);
      return {
        id: `${isFreeForm ? 'ctc' : 'fc'}_${number}`,
        type: isFreeForm ? 'custom_tool_call' : 'function_call',
        status,
        ...(isFreeForm ? { input: said } : { arguments: said }),
        call_id: part.id ?? `call_${number}`,
        name: part.name,
        ...(namespace === undefined ? {} : { namespace }),
      };
    }
    case 'block':
      return { id: `item_${number}`, type: 'unknown', ...part.block };
  }
}

type Declared = { readonly isFreeForm: boolean; readonly namespace: string | undefined };

/** Finds how the request declares a tool: in its list or in an item, as a function or free-form, alone or in a namespace. */
function declared(name: string, { tools, input }: JsonObject): Declared {
  const inItems = objectsIn(input).filter(({ type }) => type === 'additional_tools');
  for (const tool of [tools, ...inItems.map((item) => item['tools'])].flatMap(objectsIn)) {
    const isSpace = tool['type'] === 'namespace';
    const found = (isSpace ? objectsIn(tool['tools']) : [tool]).find((one) => one['name'] === name);
    if (found) {
      const namespace = isSpace ? String(tool['name']) : undefined;
      return { isFreeForm: found['type'] === 'custom', namespace };
    }
  }
  return { isFreeForm: false, namespace: undefined };
}

/** Returns the events of one item: it is added, grows, and is done. */
export function itemEvents(item: OutputItem, output_index: number, size: number): readonly Draft[] {
  const inside = (type: string, more: JsonObject): Draft => ({
    type: `response.${type}`,
    item_id: item.id,
    output_index,
    ...more,
  });
  return [
    { type: 'response.output_item.added', output_index, item: opening(item) },
    ...growing(item, size, inside),
    { type: 'response.output_item.done', output_index, item },
  ];
}

function opening(item: OutputItem): OutputItem {
  switch (item.type) {
    case 'message':
      return { ...item, status: 'in_progress', content: [] };
    case 'reasoning':
      return { ...item, summary: [] };
    case 'custom_tool_call':
      return { ...item, status: 'in_progress', input: '' };
    case 'function_call':
      return { ...item, status: 'in_progress', arguments: '' };
    default:
      return { ...item, status: 'in_progress' };
  }
}

function growing(
  item: OutputItem,
  size: number,
  inside: (type: string, more: JsonObject) => Draft,
): readonly Draft[] {
  switch (item.type) {
    case 'message': {
      const said = textIn(item['content']);
      return [
        inside('content_part.added', { content_index: 0, part: outputText('') }),
        ...pieces(said, size).map((delta) =>
          inside('output_text.delta', { content_index: 0, delta, logprobs: [] }),
        ),
        inside('output_text.done', { content_index: 0, text: said, logprobs: [] }),
        inside('content_part.done', { content_index: 0, part: outputText(said) }),
      ];
    }
    case 'reasoning': {
      const said = textIn(item['summary']);
      // Encrypted reasoning without a summary streams no text.
      if (said === '') return [];
      return [
        inside('reasoning_summary_part.added', { summary_index: 0, part: summaryText('') }),
        ...pieces(said, size).map((delta) =>
          inside('reasoning_summary_text.delta', { summary_index: 0, delta }),
        ),
        inside('reasoning_summary_text.done', { summary_index: 0, text: said }),
        inside('reasoning_summary_part.done', { summary_index: 0, part: summaryText(said) }),
      ];
    }
    case 'custom_tool_call':
      return spoken(inside, 'custom_tool_call_input', 'input', String(item['input']), size);
    case 'function_call':
      return spoken(inside, 'function_call_arguments', 'arguments', String(item['arguments']), size);
    default:
      return [];
  }
}

function spoken(
  inside: (type: string, more: JsonObject) => Draft,
  what: string,
  field: string,
  said: string,
  size: number,
): readonly Draft[] {
  return [
    ...pieces(said, size).map((delta) => inside(`${what}.delta`, { delta })),
    inside(`${what}.done`, { [field]: said }),
  ];
}

function outputText(text: string): JsonObject {
  return { type: 'output_text', annotations: [], logprobs: [], text };
}

function summaryText(text: string): JsonObject {
  return { type: 'summary_text', text };
}

function textIn(list: unknown): string {
  const [first] = Array.isArray(list) ? (list as readonly unknown[]) : [];
  return isObject(first) ? String(first['text']) : '';
}
