/** A conversation in which an agent reads long logs that differ from each other. Pure. */

export type ChatRow = {
  readonly role: string;
  readonly content: string | null;
  readonly [key: string]: unknown;
};

/** Returns a log of some 5 kB in which one line tells something. */
export function reactorLog(step: number): string {
  const lines = Array.from({ length: 150 }, (_, at) => {
    return `${at} ${((step * 7_919 + at * 104_729) % 999_983).toString(36)} module ${at % 13} loaded in ${(at * 31 + step) % 97} ms`;
  });
  lines[75] = `75 ERROR in step ${step}: the pump of reactor ${step} is blocked`;
  return lines.join('\n');
}

/** Returns a conversation of so many steps in the form of Chat Completions, each a call with its log. */
export function readsLogs(steps: number): readonly ChatRow[] {
  return [
    { role: 'system', content: 'You repair reactors.' },
    { role: 'user', content: 'Find out which pump is blocked.' },
    ...Array.from({ length: steps }, (_, step): readonly ChatRow[] => [
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          {
            id: `call-${step}`,
            type: 'function',
            function: { name: 'read_log', arguments: `{"step":${step}}` },
          },
        ],
      },
      { role: 'tool', tool_call_id: `call-${step}`, content: reactorLog(step) },
    ]).flat(),
  ];
}
