/** Exchanges of Gemini generateContent as its servers stream them, written by hand: signatures on parts, code that ran, sources at the end. */
import type { StreamFixture } from '../fixture.ts';

const usage = (prompt: number, candidates: number, more: Readonly<Record<string, number>> = {}) => {
  const counted = Object.values(more).reduce((sum, count) => sum + count, prompt + candidates);
  const others = Object.entries(more).map(([key, count]) => `"${key}TokenCount":${count},`);
  return `"usageMetadata":{"promptTokenCount":${prompt},"candidatesTokenCount":${candidates},${others.join('')}"totalTokenCount":${counted},"promptTokensDetails":[{"modality":"TEXT","tokenCount":${prompt}}]}`;
};
const chunk = (id: string, parts: string, usageJson: string, more = '') =>
  `data: {"candidates":[{"content":{"parts":[${parts}],"role":"model"}${more},"index":0}],${usageJson},"modelVersion":"gemini-2.5-pro","responseId":"${id}"}\n\n`;
const call = (name: string, args: string, signature?: string) =>
  `{"functionCall":{"name":"${name}","args":${args}}${signature === undefined ? '' : `,"thoughtSignature":"${signature}"`}}`;
const stop = ',"finishReason":"STOP"';
const end = ',"finishReason":"STOP","finishMessage":"Model generated function call(s)."';

export const exchanges: StreamFixture['exchanges'] = {
  'words around a recall': {
    responses: [
      chunk('A', '{"text":"Één"}', usage(2009, 2)) +
        chunk('A', '{"text":" moment \u{1f600}… "}', usage(2009, 9)) +
        chunk('A', call('read_memory', '{"id":"mem_雨"}'), usage(2009, 31), end),
      chunk('B', '{"text":"It rains in 東"}', usage(2052, 5)) +
        chunk('B', '{"text":"京 \\u2614."}', usage(2052, 17), stop),
    ],
    client: {
      text: 'Één moment \u{1f600}… It rains in 東京 ☔.',
      reasoning: '',
      calls: [],
      finish: 'stop',
      usage: { input: 4061, cacheRead: 0, cacheWrite: 0, output: 48 },
      error: undefined,
    },
  },
  'sealed reasoning before two recalls': {
    responses: [
      chunk('A', '{"text":"Where ","thought":true}', usage(10, 0, { thoughts: 12 })) +
        chunk('A', '{"text":"was it?","thought":true}', usage(10, 0, { thoughts: 22 })) +
        chunk(
          'A',
          call('read_memory', '{"id":"m1"}', 'EqQBCkYIBxgCKkA='),
          usage(10, 18, { thoughts: 22 }),
          end,
        ),
      chunk('B', call('read_memory', '{"id":"m1","lines":"1-9"}', 'EqQBCkYIBxgCKkB='), usage(60, 20)) +
        chunk('B', '{"text":""}', usage(60, 20), stop),
      chunk('C', '{"text":" There.","thought":true}', usage(90, 0, { thoughts: 3 })) +
        chunk('C', '{"text":"In the cellar."}', usage(90, 5, { thoughts: 3 })) +
        chunk('C', '{"text":"","thoughtSignature":"EqQBCkYIBxgCKkC="}', usage(90, 5, { thoughts: 3 }), stop),
    ],
    client: {
      text: 'In the cellar.',
      reasoning: 'Where was it? There.',
      calls: [],
      finish: 'stop',
      usage: { input: 160, cacheRead: 0, cacheWrite: 0, output: 68 },
      error: undefined,
    },
  },
  'a recall among calls of the client': {
    responses: [
      chunk('A', '{"text":"Three things."}', usage(30, 3)) +
        chunk(
          'A',
          [
            '{"functionCall":{"id":"call_4","name":"run","args":{"cmd":"ls — l"}},"thoughtSignature":"Eq="}',
            '{"functionCall":{"id":"call_5","name":"read_memory","args":{"id":"m1"}}}',
            '{"functionCall":{"id":"call_6","name":"read","args":{"path":"a.ts"}}}',
          ].join(','),
          usage(30, 55),
          end,
        ),
    ],
    client: {
      text: 'Three things.',
      reasoning: '',
      calls: [
        { id: 'call_4', name: 'run', argumentsJson: '{"cmd":"ls — l"}' },
        { id: 'call_6', name: 'read', argumentsJson: '{"path":"a.ts"}' },
      ],
      finish: 'calls',
      usage: { input: 30, cacheRead: 0, cacheWrite: 0, output: 55 },
      error: undefined,
    },
  },
  'tools that the provider runs': {
    responses: [
      chunk(
        'A',
        '{"executableCode":{"language":"PYTHON","code":"print(\'météo\')\\n"}}',
        usage(20, 9, { toolUsePrompt: 300 }),
      ) +
        chunk(
          'A',
          '{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"météo\\n"}}',
          usage(20, 9, { toolUsePrompt: 1400 }),
        ) +
        chunk('A', '{"text":"It rains. "}', usage(20, 60, { toolUsePrompt: 1400 })) +
        chunk('A', call('read_memory', '{"id":"m1"}'), usage(20, 70, { toolUsePrompt: 1400 }), end),
      chunk(
        'B',
        '{"text":"As it did then."}',
        usage(1500, 6),
        `${stop},"groundingMetadata":{"webSearchQueries":["météo"],"groundingChunks":[{"web":{"uri":"https://example.com/m","title":"Météo"}}]}`,
      ),
    ],
    client: {
      text: 'It rains. As it did then.',
      reasoning: '',
      calls: [],
      finish: 'stop',
      usage: { input: 2920, cacheRead: 0, cacheWrite: 0, output: 76 },
      error: undefined,
    },
  },
};
