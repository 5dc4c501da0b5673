import { describe, expect, it } from 'vitest';
import { resolveRecall } from './resolve.ts';

/** Answers a query over these texts, each the result of a call. A text is in view if `shown` has it. */
function answerTo(
  query: string,
  texts: readonly string[],
  { shown = '', maxTokens = 5_000 } = {},
): Promise<string> {
  return resolveRecall({
    argumentsJson: JSON.stringify({ query }),
    lookup: (id) => JSON.stringify(texts[Number(id)]!),
    titleOf: (id) => ({ message: Number(id), text: 'result of Read', isCall: false }),
    all: texts.map((_, index) => String(index)),
    maxTokens,
    countTokens: (text) => Math.ceil(text.length / 4),
    isShown: (text) => shown.includes(text),
  });
}

const hay = 'hay\n'.repeat(300);

describe('names in an answer to words', () => {
  const line = 'the session of the pump is loaded here';
  /** The names are between long words, so that there is no room to show their place. */
  const textWith = (names: string) => `${line}\n${hay}${'hay '.repeat(600)}${names}${' hay'.repeat(600)}`;
  const room = { maxTokens: 300 };
  const names = 'loadSessionState, session_store2, parseError, Session, sessions, sessionOf, openFile';

  it('share words with the query: those first of which most is shared', async () => {
    const answer = await answerTo('Where is the session state of the pump loaded?', [textWith(names)], room);
    expect(answer).toContain('\n[Names not in view: loadSessionState, sessionOf, session_store2]\n');
  });

  it('are not in the query, in the request, or in the answer', async () => {
    const shown = { ...room, shown: 'session_store2()' };
    expect(
      await answerTo('Where is the session of the pump loaded by sessionOf?', [textWith(names)], shown),
    ).toContain('\n[Names not in view: loadSessionState]\n');
    expect(await answerTo('Where is the session loaded?', ['the session of loadSession1'])).not.toContain(
      'Names',
    );
  });

  it('are eight at most', async () => {
    const many = Array.from({ length: 30 }, (_, at) => `sessionOf${at}`).join(' ');
    const answer = await answerTo('Where is the session of the pump loaded?', [textWith(many)], room);
    expect(/\[Names not in view: (.*)\]/.exec(answer)![1]!.split(', ')).toHaveLength(8);
  });
});

it('names the file of a line beside a match of a search, which ends with a number', async () => {
  const found = `src/agent/claude.go-431-//\nsrc/agent/claude.go-432-// error return\n${hay}the agent`;
  expect(await answerTo('Let me look at the agent.', [found])).toContain(
    '\n[Files not in view: src/agent/claude.go]\n',
  );
});

describe('lines before a quote', () => {
  const quote = 'return mergeIndex(path, options)';
  const before = Array.from({ length: 100 }, (_, line) => `\tstep${line}()`);
  const text = [...before, `\t${quote}`].join('\n');

  it('are shown as far as there is room, if the query has other words', async () => {
    const answer = await answerTo(`Let me change the order. Edit ${quote}`, [text]);
    expect(answer).toContain('step31()');
    expect(answer).not.toContain('step30()');
  });

  it('are few if the query is a quote alone: then its place is wanted', async () => {
    const answer = await answerTo(`${quote} .`, [text]);
    expect(answer).toContain('step98()');
    expect(answer).not.toContain('step80()');
  });
});

it('names a call for the next place that reads the lines around it', async () => {
  const lines = Array.from({ length: 1_000 }, (_, line) =>
    line % 100 === 50 ? `the pump ${line} leaks` : `row ${line} of much longer filler text for this test`,
  );
  const answer = await answerTo('which pump leaks?', [lines.join('\n')]);
  const [, next] = /the next: (\{.*\})\]$/.exec(answer)!;
  const [from, to] = /"lines":"(\d+)-(\d+)"/.exec(next!)!.slice(1).map(Number);
  expect(to! - from!).toBe(124);
});
