/** Request bodies of Gemini generateContent for the codec suite. */
import type { NeutralRequest, NeutralTurn, OddSpelling, RequestFixture } from '../fixture.ts';

const encoder = new TextEncoder();

function bytes(value: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(value));
}

export function body({ turns, tools }: NeutralRequest): Uint8Array {
  const system = turns.flatMap((turn) => (turn.say === 'system' ? [{ text: turn.text }] : []));
  const marked = {
    contents: turns.flatMap((turn, at) => contentsOf(turn, turns.slice(0, at))),
    ...(system.length === 0 ? {} : { systemInstruction: { parts: system } }),
    ...(tools.length === 0
      ? {}
      : {
          tools: [
            {
              functionDeclarations: tools.map((name) => ({ name, parametersJsonSchema: { type: 'object' } })),
            },
          ],
        }),
    generationConfig: { temperature: 1 },
  };
  // Arguments are in the body as the model spelled them, which no JavaScript object could hold.
  const args = turns.flatMap((turn) => (turn.say === 'assistant' ? turn.calls : []));
  let next = 0;
  return encoder.encode(
    JSON.stringify(marked).replaceAll(`"${argsMark}"`, () => args[next++]!.argumentsJson),
  );
}

const argsMark = 'the args of a call stand here';

function contentsOf(turn: NeutralTurn, before: readonly NeutralTurn[]): readonly unknown[] {
  switch (turn.say) {
    case 'system':
      return [];
    case 'user':
      return [{ role: 'user', parts: [{ text: turn.text }] }];
    case 'assistant':
      return [
        {
          role: 'model',
          parts: [
            ...(turn.reasoning === undefined ? [] : [{ text: turn.reasoning, thought: true }]),
            ...(turn.text === undefined ? [] : [{ text: turn.text }]),
            ...turn.calls.map(({ id, name }) => ({ functionCall: { id, name, args: argsMark } })),
          ],
        },
      ];
    case 'results':
      return [
        {
          role: 'user',
          parts: turn.results.map(({ id, text }) => ({
            functionResponse: { id, name: nameOf(id, before), response: { output: text } },
          })),
        },
      ];
  }
}

/** A response names the function whose call it answers. */
function nameOf(id: string, before: readonly NeutralTurn[]): string {
  const asked = before.findLast((turn) => turn.say === 'assistant');
  return asked?.calls.find((call) => call.id === id)?.name ?? 'run';
}

export const oddBodies: Readonly<Record<OddSpelling, string>> = {
  'big integers':
    '{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"id":"1","name":"f","args":{"n":12345678901234567890,"f":0.1000000000000000055}}}]},{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"output":"r","size":9007199254740993}}}]}],"generationConfig":{"seed":12345678901234567890}}',
  'key order':
    '{"tools":[{"functionDeclarations":[{"parameters":{},"name":"f"}]}],"contents":[{"parts":[{"thoughtSignature":"s","functionCall":{"args":{"b":1,"a":2,"10":3,"9":4},"id":"1","name":"f"}},{"thought":true,"text":"t"}],"role":"model"},{"parts":[{"functionResponse":{"response":{"z":"r","a":"s"},"name":"f","id":"1"}}],"role":"user"}],"10":1,"2":2}',
  'unicode escapes':
    '{"system\\u0049nstruction":{"parts":[{"text":"\\u00e9"}]},"contents":[{"role":"\\u0075ser","\\u0070arts":[{"te\\u0078t":"\\ud83d\\ude00\\/\\u0022 é😀"}]}]}',
  'duplicate keys':
    '{"contents":[{"role":"user","parts":[{"text":"a"}],"parts":[{"text":"b"}]},{"role":"model","parts":[{"text":"a","text":"b"},{"text":"c"},{"functionCall":{"name":"f","args":{"x":1,"x":2}}}]},{"role":"user","parts":[{"inlineData":{},"inline_data":{}},{"text":"d"}]}]}',
  'unknown fields':
    '{"x_new":{"a":[1,{"b":null}]},"contents":[{"role":"user","parts":[{"text":"a","mood":"calm"},{"sculpture":{"stone":true}}],"weight":0.5},{"role":"model","parts":[{"text":"t","thought":true,"depth":3},{"text":"b"}]}]}',
  'lone surrogates':
    '{"contents":[{"role":"user","parts":[{"text":"\\ud800"}]},{"role":"model","parts":[{"text":"a\\udc00b"},{"functionCall":{"id":"\\ud83d","name":"f","args":{"s":"\\ud800"}}}]},{"role":"user","parts":[{"functionResponse":{"id":"\\ud83d","name":"f","response":{"output":"\\ude00\\ud83d"}}}]}]}',
  'white space':
    ' \r\n{\t"system_instruction" : { "parts" : [ { "text" : "s" } ] } , "contents" : [ { "role" : "user" , "parts" : [ { "text" : "a" } , { "text":"b"} ] } ,\n\n {"role":"model","parts":[{"text":"c"}]}\t] , "tools":[ ] } \n',
  'messages first and last':
    '{"contents":[{"parts":[{"text":"a"}],"role":"user"},{"role":"model","parts":[{"text":"b"}]}]}',
  'numbers spelled oddly':
    '{"generationConfig":{"temperature":1.0,"topP":1E-0,"maxOutputTokens":40e2},"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{"n":1.50,"e":1e400,"z":-0}}}]}]}',
};

export const refused: RequestFixture['refused'] = {
  'messages that are no list': '{"contents":{}}',
  'messages of null': '{"contents":null}',
  'a message that is no object': '{"contents":[1]}',
  'a message without a role': { absent: "A content without a role is the user's." },
  'a message of an unknown role': '{"contents":[{"role":"narrator","parts":[{"text":"a"}]}]}',
  'a message of a role that means something to JavaScript':
    '{"contents":[{"role":"toString","parts":[{"text":"a"}]}]}',
  'messages twice': '{"contents":[],"contents":[]}',
};

const secret = { text: 'secret' };
const use = (name: string, id?: string) => ({ functionCall: { id, name, args: { a: 'secret' } } });
const answer = (name: string, id?: string) => ({
  functionResponse: { id, name, response: { output: 'secret' } },
});
const user = (...parts: readonly unknown[]) => ({ role: 'user', parts });
const model = (...parts: readonly unknown[]) => ({ role: 'model', parts });
const broken = (...contents: readonly unknown[]) => bytes({ contents });

export const brokenBodies: Readonly<Record<string, Uint8Array>> = {
  'first-is-user': broken(model(secret), user(secret)),
  'content-not-empty': broken(user(secret), model()),
  'response-is-object': broken(
    user(secret),
    model(use('f')),
    user({ functionResponse: { name: 'f', response: 'secret' } }),
  ),
  'results-answer-calls': broken(
    user(secret),
    model(use('f', '1')),
    user(answer('f', '1'), answer('f', '2')),
  ),
  'calls-answered-next': broken(user(secret), model(use('f'), use('f')), user(answer('f'), secret)),
  'one-result-a-call': broken(user(secret), model(use('f', '1')), user(answer('f', '1'), answer('f', '1'))),
  'results-in-order': broken(user(secret), model(use('f'), use('g')), user(answer('g'), answer('f'))),
  'results-name-calls': broken(user(secret), model(use('f', '1')), user(answer('g', '1'))),
};
