/** What a model says to requests without tools, by which a client wants a title or a choice. Pure. */
import { isObject } from '../support/fake-provider/json.ts';
import type { JsonObject } from '../support/fake-provider/script.ts';

/** A text, or the least that the schema allows where one is asked for. */
export function sideAnswer(body: JsonObject): string {
  const schema = schemaIn(body);
  return schema ? JSON.stringify(leastOf(schema)) : 'Reading log files';
}

function schemaIn(body: JsonObject): JsonObject | undefined {
  for (const path of schemaPaths) {
    const found = path.reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), body);
    if (isObject(found)) return found;
  }
  return undefined;
}

const schemaPaths = [
  ['response_format', 'json_schema', 'schema'],
  ['text', 'format', 'schema'],
  ['output_config', 'format', 'schema'],
  ['generationConfig', 'responseJsonSchema'],
  ['generationConfig', 'responseSchema'],
];

function leastOf(schema: JsonObject): unknown {
  if (Array.isArray(schema['enum'])) return schema['enum'][0];
  const { properties } = schema;
  switch (String(schema['type']).toLowerCase()) {
    case 'object':
      return Object.fromEntries(
        Object.entries(isObject(properties) ? properties : {}).map(([name, inner]) => [
          name,
          isObject(inner) ? leastOf(inner) : '',
        ]),
      );
    case 'array':
      return [];
    case 'boolean':
      return false;
    case 'integer':
    case 'number':
      return 1;
    default:
      return 'Reading log files';
  }
}
