/**
 * Checks that tool references reach the provider. The model sees a deferred tool's definition only after a `tool_reference` in a result
 * names it, so if a fold drops the reference, the model loses the tool. Pure.
 */
import { isObject, objectsIn, parseJson } from '../support/fake-provider/json.ts';
import type { JsonObject } from '../support/fake-provider/script.ts';

/** Returns the names of the tools that results of this request refer to. */
export function namesLoaded(body: JsonObject): readonly string[] {
  return loadingResults(body)
    .flatMap(({ content }) => objectsIn(content))
    .flatMap((block) => (block['type'] === 'tool_reference' ? String(block['tool_name']) : []));
}

/** Returns the results that contain references. */
function loadingResults(body: JsonObject): readonly JsonObject[] {
  return objectsIn(body['messages'])
    .flatMap(({ content }) => objectsIn(content))
    .filter(
      ({ type, content }) =>
        type === 'tool_result' && objectsIn(content).some((block) => block['type'] === 'tool_reference'),
    );
}

/**
 * Returns the problems in words. `sent` are the bodies that reached the provider, in order. Each must contain the references of earlier
 * ones byte for byte with their calls, and define each tool that it refers to.
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
