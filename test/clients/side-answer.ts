/** Answers requests without tools, with which a client asks for a title or a choice. Pure. */
import { isObject } from '../support/fake-provider/json.ts';
import type { JsonObject } from '../support/fake-provider/script.ts';

/** Returns a text, or the smallest value that the request's schema allows. */
export function sideAnswer(body: JsonObject): string {
  const schema = schemaIn(body);
  return schema ? JSON.stringify(smallestOf(schema)) : 'Reading log files';
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

function smallestOf(schema: JsonObject): unknown {
  if (Array.isArray(schema['enum'])) return schema['enum'][0];
  const { properties } = schema;
  switch (String(schema['type']).toLowerCase()) {
    case 'object':
      return Object.fromEntries(
        Object.entries(isObject(properties) ? properties : {}).map(([name, inner]) => [
          name,
          isObject(inner) ? smallestOf(inner) : '',
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
