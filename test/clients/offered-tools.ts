/** Which tools a request offers, in whatever wire format, and how the one that reads a file is called. Pure. */
import { isObject, objectsIn } from '../support/fake-provider/json.ts';
import type { JsonObject, TurnPart } from '../support/fake-provider/script.ts';

export type OfferedTool = {
  readonly name: string;
  /** Takes a text instead of JSON. */
  readonly isFreeForm: boolean;
  readonly properties: readonly string[];
};

export function offeredTools(body: JsonObject): readonly OfferedTool[] {
  const inItems = objectsIn(body['input'])
    .filter((item) => item['type'] === 'additional_tools')
    .flatMap((item) => objectsIn(item['tools']));
  return [...objectsIn(body['tools']), ...inItems].flatMap(toolsOf);
}

/** A tool, or a group of them: a namespace, or function declarations. */
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

/** The call that reads this file with one of the tools; undefined where none can, as in a request for a title. */
export function readingCall(tools: readonly OfferedTool[], file: string): Call | undefined {
  for (const [name, argumentsFor] of readers) {
    const tool = tools.find((offered) => name.test(offered.name));
    if (tool) return { type: 'tool-call', name: tool.name, ...argumentsFor(tool, file) };
  }
  return undefined;
}

type Call = Extract<TurnPart, { type: 'tool-call' }>;
type Argumented = Pick<Call, 'arguments'>;

/** Best first. Arguments are spelled with a space that no serialiser would put there, to see who keeps a model's spelling. */
const readers: readonly (readonly [RegExp, (tool: OfferedTool, file: string) => Argumented])[] = [
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
