/**
 * Whether what loads a tool reached the provider: a deferred tool's definition is kept from the model until a `tool_reference` in a
 * result names it, so a reference that a fold drops is a tool that the model loses. Pure.
 */
import { isObject, objectsIn, parseJson } from '../support/fake-provider/json.ts';
import type { JsonObject } from '../support/fake-provider/script.ts';

/** Names of the tools that results of this request refer to. */
export function namesLoaded(body: JsonObject): readonly string[] {
  return loadingResults(body)
    .flatMap(({ content }) => objectsIn(content))
    .flatMap((block) => (block['type'] === 'tool_reference' ? String(block['tool_name']) : []));
}

/** Results that hold references, as they stand in the messages. */
function loadingResults(body: JsonObject): readonly JsonObject[] {
  return objectsIn(body['messages'])
    .flatMap(({ content }) => objectsIn(content))
    .filter(
      ({ type, content }) =>
        type === 'tool_result' && objectsIn(content).some((block) => block['type'] === 'tool_reference'),
    );
}

/**
 * What is wrong, in words. `sent` are the bodies that reached the provider, in their order: each must hold what loaded a tool in one
 * before it byte for byte, with the call that asked for it, and define each tool that it refers to.
 */
export function loadProblems(sent: readonly Uint8Array[]): readonly string[] {
  const loaded = new Map<unknown, string>();
  const problems: string[] = [];
  for (const [at, bytes] of sent.entries()) {
    const body = parseJson(bytes);
    if (!isObject(body) || objectsIn(body['tools']).length < 2) continue;
    const text = new TextDecoder().decode(bytes);
    for (const [id, bare] of loaded) {
      if (!text.includes(bare)) problems.push(`request ${at + 1} lacks the references of ${String(id)}`);
      if (!calls(body).some((call) => call['id'] === id))
        problems.push(`request ${at + 1} lacks the call ${String(id)}`);
    }
    for (const { tool_use_id: id, content } of loadingResults(body)) {
      const bare = JSON.stringify(content);
      if (!text.includes(bare)) problems.push(`request ${at + 1} spells ${String(id)} in an unknown way`);
      else if (!loaded.has(id)) loaded.set(id, bare);
    }
    const defined = objectsIn(body['tools']).map(({ name }) => name);
    for (const name of namesLoaded(body)) {
      if (!defined.includes(name))
        problems.push(`request ${at + 1} refers to ${name} and does not define it`);
    }
  }
  return loaded.size > 0 ? problems : ['no request holds a tool_reference'];
}

function calls(body: JsonObject): readonly JsonObject[] {
  return objectsIn(body['messages'])
    .flatMap(({ content }) => objectsIn(content))
    .filter(({ type }) => type === 'tool_use');
}
