/** Builds the bodies of the reading benchmark: recorded sessions, if there are any, and this repository's files as an agent would read them. */
import { readdirSync, readFileSync } from 'node:fs';
import { asAnthropic } from '../../test/support/as-anthropic.ts';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../src/codecs/codec.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { readRecorded } from '../tokens/recorded.ts';

export type Body = { readonly name: string; readonly codec: Codec; readonly bytes: Uint8Array };

/** About the size of a request of a long session. */
const targetBytes = 1_300_000;

export function bodies(): readonly Body[] {
  const recorded = recordedBody();
  const source = bodyOf(toolLoop(sourceTexts()));
  const ascii = bodyOf(toolLoop(sourceTexts().map((text) => text.replaceAll(/[^\n\t\x20-\x7e]/g, '.'))));
  return [
    ...(recorded
      ? [
          { name: 'recorded agent sessions, chat', codec: openaiChat, bytes: recorded },
          {
            name: 'recorded agent sessions, messages',
            codec: anthropicMessages,
            bytes: asAnthropic(recorded),
          },
        ]
      : []),
    { name: 'source code as tool results', codec: openaiChat, bytes: source },
    {
      name: 'source code as JSON inside results',
      codec: openaiChat,
      bytes: bodyOf(toolLoop(sourceTexts().map(asJson))),
    },
    { name: 'source code, ASCII only', codec: openaiChat, bytes: ascii },
    { name: 'chat of short messages', codec: openaiChat, bytes: bodyOf(smallTalk()) },
  ];
}

function bodyOf(messages: readonly unknown[]): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ model: 'm', stream: true, messages }));
}

/** Joins the longest recorded coding sessions up to the target size. Returns undefined if there are no recordings. */
function recordedBody(): Uint8Array | undefined {
  const sessions = readRecorded()?.filter(({ source }) => source === 'entire-cli-sessions');
  if (!sessions) return undefined;
  const bySize = sessions
    .map(({ messages }) => ({ messages, size: JSON.stringify(messages).length }))
    .toSorted((a, b) => b.size - a.size);
  let size = 0;
  const messages = bySize.flatMap((session) => {
    const isIncluded = size < targetBytes;
    size += isIncluded ? session.size : 0;
    return isIncluded ? session.messages : [];
  });
  return bodyOf(messages);
}

/** Returns a conversation of calls that read files, each with a different result. */
function toolLoop(texts: readonly string[]): readonly unknown[] {
  const messages: unknown[] = [{ role: 'user', content: 'Read everything.' }];
  let size = 0;
  for (let at = 0; size < targetBytes; at++) {
    // Agents see numbered lines. The numbers also make repeated reads of a file differ.
    const lines = texts[at % texts.length]!.split('\n').slice(0, 200);
    const content = lines.map((line, n) => `${at * 200 + n}\t${line}`).join('\n');
    const call = { name: 'read', arguments: JSON.stringify({ path: `file-${at}.ts` }) };
    messages.push(
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: `call_${at}`, type: 'function', function: call }],
      },
      { role: 'tool', tool_call_id: `call_${at}`, content },
    );
    size += JSON.stringify(content).length;
  }
  return messages;
}

function sourceTexts(): readonly string[] {
  const root = new URL('../../src/', import.meta.url);
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => name.endsWith('.ts'))
    .toSorted()
    .map((name) => readFileSync(new URL(name, root), 'utf8'));
}

/** Returns the output of a tool with structured results: every quote and line end is escaped twice. */
function asJson(text: string): string {
  return JSON.stringify({ lines: text.split('\n') }).replaceAll('","', '",\n"');
}

function smallTalk(): readonly unknown[] {
  return Array.from({ length: targetBytes / 100 }, (_, at) => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    content: `Message ${at} says about as much as people say at once.`,
  }));
}
