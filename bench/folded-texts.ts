/**
 * Writes docs/folded-texts.md: stubs, records and summaries of recorded coding sessions, as a model gets them. Run `node bench/folded-texts.ts`; it reads
 * ../shared/data and takes a minute. Sessions are taken at even distances, so nobody chose the best ones; of each, the longest text is shown,
 * or its first lines. Paths of home folders and names of people are left out, see `withoutNames`.
 */
import { writeFileSync } from 'node:fs';
import { chat } from '../src/cli/replay/sources.ts';
import { conversationBody } from '../src/cli/replay/conversation-body.ts';
import type { FoldSettings } from '../src/library/default-engine.ts';
import { messageText } from '../src/replay/needs.ts';
import { enginePolicy, type Policy } from '../src/replay/policies.ts';
import { readRecording } from '../src/replay/recording.ts';
import { play } from '../src/replay/replay.ts';
import { sha256 } from '../src/store/encrypted-store.ts';
import { loadExactCounter } from '../src/tokens/load-counter.ts';
import type { TokenCounter } from '../src/tokens/token-counter.ts';
import { type BenchRecord, readConversations } from './replay/data.ts';

const window = 32_000;

type Shown = {
  readonly title: string;
  readonly count: number;
  readonly settings: FoldSettings;
  /** Matches the texts to show. */
  readonly begins: RegExp;
};

const kinds: readonly Shown[] = [
  {
    title: 'Dropped messages (default)',
    count: 3,
    settings: {},
    begins: /^\[Folded.{0,12}\d+ earlier messages/,
  },
  {
    title: 'Records of sub-goals (`preset`)',
    count: 4,
    settings: { preset: 'production' },
    begins: /^\[(?:Steps|Phases?) folded/,
  },
  {
    title: 'Summaries (`summaries`)',
    count: 3,
    settings: { summaries: { kind: 'extractive' } },
    begins: /^\[Summary of/,
  },
];

async function main(): Promise<void> {
  const all = readConversations();
  if (all === undefined) {
    console.log('bench/folded-texts.ts skipped: there are no recorded conversations in ../shared/data.');
    return;
  }
  const counter = await loadExactCounter('o200k_base');
  const long = all
    .filter(({ source, messages }) => source.includes('entire') && messages.length >= 150)
    .toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const sections: string[] = [];
  let next = 0;
  for (const { title, count, settings, begins } of kinds) {
    const texts: string[] = [];
    while (texts.length < count && next < 30) {
      const record = long[Math.floor(((next++ * 7) % 30) * (long.length / 30))]!;
      const found = (await insertedTexts(record, settings, counter)).filter((text) => begins.test(text));
      const text = found.toSorted((a, b) => b.length - a.length)[0];
      if (text !== undefined && !isPersonal(text)) texts.push(withoutNames(excerpt(text)));
    }
    sections.push([`## ${title}`, ...texts.map((text) => `~~~text\n${text}\n~~~`)].join('\n\n'));
  }
  writeFileSync(
    new URL('../docs/folded-texts.md', import.meta.url),
    `${intro}\n\n${sections.join('\n\n')}\n`,
  );
}

const intro = `# Texts that a model reads after a fold

Ten texts that Leporello put in place of messages, in recorded sessions of a coding agent (github.com/entireio/cli, MIT license), played with a window of
32,000 tokens by \`node bench/folded-texts.ts\`. The sessions are taken at even distances, not chosen; of each, the longest text of the last request is shown. Long texts are shown up to a line, and then \`[…]\`;
folders of users are left out. [summaries.md](summaries.md) and [subgoals.md](subgoals.md) say how the texts are made.`;

/** Plays a session, and returns the texts of user messages in its last request. */
async function insertedTexts(
  record: BenchRecord,
  settings: FoldSettings,
  counter: TokenCounter,
): Promise<readonly string[]> {
  const body = conversationBody({ messages: record.messages }, 5_000, counter);
  const recording = readRecording({ id: record.id, source: record.source, format: chat, body }, counter);
  let texts: readonly string[] = [];
  const policy = enginePolicy({ name: 'texts', settings, window, counter });
  const observed: Policy = {
    ...policy,
    open(codec) {
      const session = policy.open(codec);
      return {
        async send(request) {
          const sent = await session.send(request);
          const conversation = codec.read(sent.body, { digest: sha256, blocks: new Map() });
          const users = conversation.messages.filter(({ role }) => role === 'user');
          texts = users.map((message) => messageText(conversation, message));
          return sent;
        },
      };
    },
  };
  await play(recording, observed, { window });
  return texts;
}

const maxLines = 26;
const maxLength = 5_000;

function excerpt(text: string): string {
  const lines: string[] = [];
  let length = 0;
  for (const line of text.split('\n')) {
    if (lines.length >= maxLines || length + line.length > maxLength) return [...lines, '[…]'].join('\n');
    lines.push(line);
    length += line.length;
  }
  return lines.join('\n');
}

/** True for a text with an address or a handle of a person, or a branch named after one. */
function isPersonal(text: string): boolean {
  return /origin\/[a-z]+\/|\b(?:his|her) branch\b|[\w.]+@[\w-]+\.\w|(?:^|\s)@[a-z]\w+|co-authored-by|\bauthor:/i.test(
    text,
  );
}

function withoutNames(text: string): string {
  return text.replaceAll(
    /\/(?:Users|home)\/[\w.-]+\/(?:[\w.-]+\/)*?(?=cmd\/|docs\/|\.claude|[\w.-]+(?:[\s"',)\]]|$))/g,
    '…/',
  );
}

await main();
