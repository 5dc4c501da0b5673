/**
 * Shortens the same conversations with Python packages and with Leporello, and counts what is wrong with each result: results without their calls, calls
 * without their reasoning, beginnings that changed although they had been sent, errors. It installs the packages from PyPI into virtual environments below
 * the system's temporary folder, which needs python3 with venv. Run `npm run bench bench/defects.ts`; docs/defects.md shows the result.
 *
 * Traps: the conversations are made up, so the counts say what can happen, not how often it does. A limit of every size is tried, most of which
 * nobody would choose. Every package runs with its own defaults; a setting may avoid a defect.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { openaiChat } from '../src/codecs/openai-chat/index.ts';
import { type FoldReport, createLeporello } from '../src/index.ts';
import { folderOf, installPeer, pythonPeer } from './peers/peers.ts';
import { writeResult } from './results.ts';

type Message = Readonly<Record<string, unknown>> & { readonly role: string };
type Counts = Readonly<Record<string, number | string>>;
type DefectRow = {
  readonly package: string;
  readonly version: string;
  readonly defect: string;
  readonly there: string;
  readonly here: string;
};

const numbers = Array.from({ length: 20 }, (_, at) => at);
const lines = (at: number): string =>
  Array.from({ length: 60 }, (_, line) => `log ${at} line ${line} is well`).join('\n');
const called = (id: string, name: string, args: object): Message => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name, arguments: JSON.stringify(args) } }],
});
const answered = (id: string, content: string): Message => ({ role: 'tool', tool_call_id: id, content });

/** Twenty questions with a call each, a user's words with twenty reasoned calls, and twenty files that are read and edited. */
const conversations = {
  questions: numbers.flatMap((at): readonly Message[] => [
    { role: 'user', content: `What does log ${at} say?` },
    called(`c${at}`, 'read', { at }),
    answered(`c${at}`, lines(at)),
  ]),
  reasoned: [
    { role: 'user', content: 'Read all.' },
    ...numbers.flatMap((at) => [
      { type: 'reasoning', id: `rs_${at}`, summary: [] },
      { type: 'function_call', call_id: `c${at}`, name: 'read', arguments: '{}' },
      { type: 'function_call_output', call_id: `c${at}`, output: lines(at) },
    ]),
  ],
  edits: [
    { role: 'system', content: 'You edit files.' },
    { role: 'user', content: 'Fix all files.' },
    ...numbers.flatMap((at): readonly Message[] => [
      called(`r${at}`, 'Read', { file_path: `/src/file${at}.ts` }),
      answered(`r${at}`, fileOf(at)),
      called(`e${at}`, 'Edit', { file_path: `/src/file${at}.ts`, old_string: 'value', new_string: 'number' }),
      answered(`e${at}`, 'The file was updated.'),
    ]),
  ],
} as const;

function fileOf(at: number): string {
  return Array.from(
    { length: 119 },
    (_, line) => `${line + 1}\texport const value${at}_${line} = ${line};`,
  ).join('\n');
}

/** Runs a package on the conversations. Returns what it counted; undefined if it cannot be installed. */
function countedBy(name: string, version: string, spec = name): Counts | undefined {
  const peer = pythonPeer(name, version, `${spec}==${version}`);
  const failed = installPeer(peer);
  if (failed !== undefined) {
    console.log(`${name} ${version} is not installed: ${failed} failed.`);
    return undefined;
  }
  const script = fileURLToPath(new URL('peers/defects.py', import.meta.url));
  const env = { PATH: process.env['PATH'], HOME: folderOf(peer), ...peer.env };
  const { stdout, stderr, status } = spawnSync(`${folderOf(peer)}/bin/python`, [script, name], {
    input: JSON.stringify(conversations),
    encoding: 'utf8',
    env,
  });
  if (status !== 0) throw new Error(`${name} ${version} ended with ${status}: ${stderr}`);
  return JSON.parse(stdout.trim().split('\n').at(-1)!) as Counts;
}

// The same with Leporello

const secret = new Uint8Array(32).fill(5);
const tools = ['read', 'Read', 'Edit'].map((name) => ({
  type: 'function',
  function: { name, parameters: { type: 'object' } },
}));

/** Folds the questions into windows of as many sizes as there are messages. Returns how many have a result without its call, and how many were folded. */
async function cutHere() {
  let cut = 0;
  let folded = 0;
  for (const at of conversations.questions.keys()) {
    const models = { '*': { windowTokens: 4_500 + 250 * at } };
    const body = { model: 'gpt-4o', max_tokens: 100, tools, messages: conversations.questions };
    const prepared = await createLeporello({ secret, models }).prepare({ codec: openaiChat, body });
    const { messages } = prepared.json() as { readonly messages: readonly Message[] };
    if (prepared.outcome.status === 'compacted') folded++;
    const calls = new Set<unknown>();
    const isCut = messages.some(({ role, tool_calls: made, tool_call_id: id }) => {
      for (const { id: own } of (made ?? []) as readonly { readonly id: string }[]) calls.add(own);
      return role === 'tool' && !calls.has(id);
    });
    if (isCut) cut++;
  }
  return { cut, folded };
}

/** Folds the reasoned calls into as many windows. Returns how many have a result without its call, or a call without its reasoning. */
async function reasonedHere() {
  const faults = { withoutCall: 0, withoutReasoning: 0 };
  const definitions = [{ type: 'function', name: 'read', parameters: { type: 'object' } }];
  for (const at of conversations.reasoned.slice(1).keys()) {
    const models = { '*': { windowTokens: 4_500 + 250 * at } };
    const body = {
      model: 'gpt-5',
      max_output_tokens: 100,
      tools: definitions,
      input: conversations.reasoned,
    };
    const prepared = await createLeporello({ secret, models }).prepare({ body });
    const { input } = prepared.json() as { readonly input: readonly { type?: string; call_id?: string }[] };
    const calls = new Set(input.flatMap(({ type, call_id: id }) => (type === 'function_call' ? [id] : [])));
    if (input.some(({ type, call_id: id }) => type === 'function_call_output' && !calls.has(id)))
      faults.withoutCall++;
    if (input.some(({ type }, index) => type === 'function_call' && input[index - 1]?.type !== 'reasoning'))
      faults.withoutReasoning++;
  }
  return faults;
}

/** Sends the edits request by request in a window that they fill. Returns how many do not begin with all messages of the one before, and how many were folds. */
async function changedHere() {
  const leporello = createLeporello({
    secret,
    models: { '*': { windowTokens: 16_000 } },
    calibration: false,
  });
  let before: readonly string[] = [];
  let changed = 0;
  const reports: FoldReport[] = [];
  for (let end = 4; end <= conversations.edits.length; end += 2) {
    const body = { model: 'gpt-4o', max_tokens: 100, tools, messages: conversations.edits.slice(0, end) };
    const prepared = await leporello.prepare({ body });
    reports.push(prepared.report);
    const { messages } = prepared.json() as { readonly messages: readonly Message[] };
    const sent = messages.map((message) => JSON.stringify(message));
    if (before.some((message, at) => message !== sent[at])) changed++;
    before = sent;
  }
  return {
    changed,
    folds: reports.filter(({ trigger }) => trigger !== undefined).length,
    requests: reports.length,
  };
}

const [cut, reasoned, changed] = [await cutHere(), await reasonedHere(), await changedHere()];
const cutWords = `${cut.cut} of ${conversations.questions.length} windows, of which ${cut.folded} were folded`;
const rows: DefectRow[] = [];
const row = (name: string, version: string, defect: string, there: string, here: string) =>
  rows.push({ package: name, version, defect, there, here });

const versions = {
  langchain: '1.4.7',
  litellm: '1.106.2',
  'openai-agents': '0.24.0',
  'headroom-ai': '0.42.0',
};
const langchain = countedBy('langchain', versions.langchain);
if (langchain) {
  row(
    'langchain',
    versions.langchain,
    'A result loses its call',
    `\`trim_messages\`: ${langchain['cut']} of ${langchain['limits']} windows`,
    cutWords,
  );
  row(
    'langchain',
    versions.langchain,
    'A summarizer that fails ends the run',
    `\`SummarizationMiddleware\` raises \`${langchain['refused']}\``,
    'one that fails costs the summary only (test `bad-summaries`)',
  );
}
const litellm = countedBy('litellm', versions.litellm, 'litellm[proxy]');
if (litellm) {
  row(
    'litellm',
    versions.litellm,
    'A result loses its call',
    `\`trim_messages\`: ${litellm['cut']} of ${litellm['limits']} windows`,
    cutWords,
  );
}
const agents = countedBy('openai-agents', versions['openai-agents']);
if (agents) {
  const name = 'openai-agents';
  row(
    name,
    versions[name],
    'A result loses its call',
    `\`SQLiteSession.get_items(limit)\`: ${agents['without_call']} of ${agents['limits']} limits`,
    `${reasoned.withoutCall} of ${agents['limits']} windows`,
  );
  row(
    name,
    versions[name],
    'A call loses its reasoning',
    `the same: another ${agents['without_reasoning']}`,
    `${reasoned.withoutReasoning} of ${agents['limits']} windows`,
  );
}
const headroom = countedBy('headroom-ai', versions['headroom-ai'], 'headroom-ai[proxy]');
if (headroom)
  row(
    'headroom-ai',
    versions['headroom-ai'],
    'What was sent is rewritten, so the cache is lost',
    `\`compress\`: in ${headroom['changed']} of ${headroom['requests']} requests`,
    `in ${changed.changed} of ${changed.requests}, at its ${changed.folds} folds`,
  );

console.table(rows);
if (rows.length === 6) writeResult('defects', { rows });
else console.log('Nothing is recorded: a package is missing.');
