/**
 * Plays coding sessions through a gateway: an agent reads files, runs tests and searches; the scripted model recalls what was folded,
 * and once asks for something that does not exist. The provider bills as if it cached every prompt.
 */
import type { Script, TurnPart } from '../support/fake-provider/script.ts';

export const sessionSettings = {
  tenant: 'local',
  models: { '*': { windowTokens: 200_000 } },
  triggers: {
    tokenBudget: { triggerTokens: 24_000, targetTokens: 9_000 },
    cacheRent: false,
    coldCache: false,
  },
  usdPerMillionTokens: {
    'claude-sonnet-5': { input: 3, cacheRead: 0.3, cacheWrite: 3.75, output: 15 },
    'gpt-5': { input: 1.25, cacheRead: 0.125, cacheWrite: 1.25, output: 10 },
  },
  calibration: false,
  offerRecall: 'always',
} as const;

/** A model that ends each turn with a text. Every seventh request it first recalls the oldest original that it sees. */
export function codingModel(): Script {
  const last = new Map<string, string>();
  let calls = 0;
  return ({ body, model }) => {
    const prompt = JSON.stringify({ ...body, stream: undefined });
    const before = last.get(model) ?? '';
    last.set(model, prompt);
    const input = Math.ceil(prompt.length / 4);
    const cacheRead = Math.floor(commonLength(before, prompt) / 4);
    const usage = { input, cacheRead, cacheWrite: input - cacheRead, output: 180 };
    calls += 1;
    const id = /mem_[a-z0-9]{16}/.exec(prompt)?.[0];
    const parts: TurnPart[] = [{ type: 'text', text: 'I will look at that next.' }];
    if (id !== undefined && calls % 7 === 0 && !prompt.includes('"recall-'))
      parts.push({
        type: 'tool-call',
        id: `recall-${calls}`,
        name: 'read_memory',
        arguments: { id, query: 'session' },
      });
    if (calls === 30)
      parts.push({
        type: 'tool-call',
        id: `recall-${calls}`,
        name: 'read_memory',
        arguments: { id: 'mem_0000000000000000' },
      });
    return { type: 'turn', parts, usage };
  };
}

function commonLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length++;
  return length;
}

/** Code that a hostile web page would like a reader's browser to run. */
export const hostile =
  '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">"\'><svg onload=window.hacked=3>';

const files = [
  'login',
  'session',
  'token',
  'routes',
  'mailer',
  'audit',
  'users',
  'limits',
  'cookies',
  'errors',
];

/** Returns the source of a file: lines that all differ, so that nothing is shortened on arrival. */
function source(name: string, at: number): string {
  const lines = Array.from(
    { length: 96 },
    (_, line) =>
      `  const ${name}${line} = await store.${['find', 'load', 'list', 'read'][line % 4]!}(${at * 131 + line * 17}, { ${name}: session.${['user', 'role', 'token'][line % 3]!}${line}, retries: ${(line * 7) % 11} });`,
  );
  const head = at === 3 ? `// ${hostile}` : `// The ${name} of the service.`;
  return [head, `export async function ${name}(session) {`, ...lines, '}'].join('\n');
}

type Message = { readonly role: string; readonly content: unknown };

/** Returns the messages of a session with this many steps. Sessions differ in their first message, so they share no fold. */
function sessionMessages(session: string, steps: number): readonly Message[] {
  const done = Array.from({ length: steps }, (_, at): readonly Message[] => {
    const name = files[at % files.length]!;
    const isTest = at % 4 === 3;
    const call = {
      type: 'tool_use',
      id: `toolu_${at}`,
      name: isTest ? 'Bash' : 'Read',
      input: isTest ? { command: `npm test -- ${name}` } : { file_path: `src/${name}.ts` },
    };
    const result = isTest
      ? `${source(name, at).split('\n').slice(0, 40).join('\n')}\n${at} passed, 1 failed: ${name} expires too early`
      : source(name, at);
    return [
      { role: 'assistant', content: [{ type: 'text', text: `Step ${at + 1}: ${name}.` }, call] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: result }] },
    ];
  });
  return [
    {
      role: 'user',
      content: `Users are logged out after five minutes. Find out why and fix it (${session}).`,
    },
    ...done.flat(),
  ];
}

const tools = ['Read', 'Bash', 'Grep'].map((name) => ({
  name,
  description: `${name}s.`,
  input_schema: { type: 'object' },
}));

export function sessionBody(session: string, steps: number): string {
  return JSON.stringify({
    model: 'claude-sonnet-5',
    max_tokens: 1_000,
    tools,
    messages: sessionMessages(session, steps),
  });
}

/** Sends a step of a session, and resolves with the id of its receipt when the reply has ended. */
export async function sendStep(url: string, session: string, steps: number): Promise<string> {
  const response = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-api-key': 'dummy',
      'x-leporello-session': session,
    },
    body: sessionBody(session, steps),
  });
  await response.text();
  if (response.status !== 200) throw new Error(`The gateway answered ${response.status}.`);
  return response.headers.get('x-leporello-receipt')!;
}

/** Plays the first `steps` steps of a session. Resolves with the ids of the receipts. */
export async function playSession(url: string, session: string, steps: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let step = 1; step <= steps; step++) ids.push(await sendStep(url, session, step));
  return ids;
}
