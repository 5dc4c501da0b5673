/** Reads the parts of a model's content in a response, as bytes and values, and hides private calls. */
import { jsonBytes } from '../../conversation/splice.ts';
import { isRecord } from '../../conversation/json-record.ts';
import { memberBytes, withMembers, elementsOf, type JsonElement } from '../event-json.ts';
import { stringOf, valueOf } from './names.ts';

/** Returns the parts of a content object; none when it has no list of them. */
export function partsOf(content: Uint8Array): readonly JsonElement[] {
  const list = memberBytes(content, 'parts');
  return list ? elementsOf(list) : [];
}

/** Returns the call in a part; undefined without one. Its id is optional. */
export function callIn(
  part: unknown,
): { readonly name: string; readonly id: string | undefined } | undefined {
  const call = valueOf(part, 'functionCall');
  if (!isRecord(call)) return undefined;
  const id = stringOf(call, 'id');
  return { name: stringOf(call, 'name') ?? '', id: id === '' ? undefined : id };
}

/** Returns the text or thought of a part; undefined for other parts. */
export function saidIn(part: unknown): { readonly text: string; readonly isThought: boolean } | undefined {
  const text = stringOf(part, 'text');
  return text === undefined ? undefined : { text, isThought: valueOf(part, 'thought') === true };
}

/**
 * Creates a filter that leaves out private calls, part by part as they arrive. Of parallel calls only the first has a signature,
 * and without one the provider refuses the turn when the client sends it back: if the first is private, the client's first call
 * takes over its signature.
 */
export function hideRecalls(recallTool: string | undefined): (part: JsonElement) => JsonElement | undefined {
  let signature: string | undefined;
  let isFirst = true;
  return (part) => {
    const call = callIn(part.value);
    if (!call) return part;
    const own = stringOf(part.value, 'thoughtSignature');
    if (call.name === recallTool) {
      if (isFirst) signature ??= own;
      return undefined;
    }
    const inherits = isFirst && own === undefined && signature !== undefined;
    isFirst = false;
    return inherits
      ? { ...part, bytes: withMembers(part.bytes, { thoughtSignature: jsonBytes(signature) }) }
      : part;
  };
}
