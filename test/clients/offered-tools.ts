/** Lists the tools that a request offers, in any wire format, and makes the call that reads a file. Pure. */
import { isObject, objectsIn } from '../support/fake-provider/json.ts';
import type { JsonObject, TurnPart } from '../support/fake-provider/script.ts';

export type OfferedTool = {
  readonly name: string;
  /** Whether the tool takes a text instead of JSON. */
  readonly isFreeForm: boolean;
  readonly properties: readonly string[];
};

export function offeredTools(body: JsonObject): readonly OfferedTool[] {
  const inItems = objectsIn(body['input'])
    .filter((item) => item['type'] === 'additional_tools')
    .flatMap((item) => objectsIn(item['tools']));
  return [...objectsIn(body['tools']), ...inItems].flatMap(toolsOf);
}

/** Returns the tools of an entry, which is a tool or a group: a namespace, or function declarations. */
function toolsOf(entry: JsonObject): readonly OfferedTool[] {
  const group = entry['tools'] ?? entry['functionDeclarations'];
  if (group !== undefined) return objectsIn(group).flatMap(toolsOf);
  const inner = isObject(entry['function']) ? entry['function'] : entry;
  const name = inner['name'];
  if (typeof name !== 'string') return [];
  const schema = ['parameters', 'input_schema', 'parametersJsonSchema']
    .map((key) => inner[key])
    .find(isObject);
  const properties = Object.keys(isObject(schema?.['properties']) ? schema['properties'] : {});
  return [{ name, isFreeForm: entry['type'] === 'custom', properties }];
}

/** Returns a call that reads this file; undefined if no tool can, as in a request for a title. */
export function readingCall(tools: readonly OfferedTool[], file: string): Call | undefined {
  for (const [name, argumentsFor] of readers) {
    const tool = tools.find((offered) => name.test(offered.name));
    if (tool) return { type: 'tool-call', name: tool.name, ...argumentsFor(tool, file) };
  }
  return undefined;
}

type Call = Extract<TurnPart, { type: 'tool-call' }>;
type CallArguments = Pick<Call, 'arguments'>;

/** Readers, best first. Their arguments contain a space that no serializer writes, to see which clients keep a model's spelling. */
const readers: readonly (readonly [RegExp, (tool: OfferedTool, file: string) => CallArguments])[] = [
  [
    /^read(?:_file)?$/i,
    ({ properties }, file) => ({
      arguments: `{"${properties.find((property) => /path|file/i.test(property))}": ${JSON.stringify(file)}}`,
    }),
  ],
  [
    /^exec$/,
    (_, file) => ({
      arguments: `const read = await tools.exec_command({ cmd: ${JSON.stringify(`cat ${file}`)} });\ntext(read.output);\n`,
    }),
  ],
  [/^exec_command$/, (_, file) => ({ arguments: `{"cmd": ${JSON.stringify(`cat ${file}`)}}` })],
  [/^shell$/, (_, file) => ({ arguments: `{"command": ["cat", ${JSON.stringify(file)}]}` })],
];
