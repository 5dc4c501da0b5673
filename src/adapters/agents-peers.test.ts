/** Shortens one conversation with the limit of a session of OpenAI Agents JS and with our folds, and compares its form. docs/defects.md has the results. */
import { type AgentInputItem, MemorySession } from '@openai/agents';
import { expect, it } from 'vitest';
import { foldingEarly, log } from '../../test/support/folded-logs.ts';
import { createLeporello } from '../library/leporello.ts';

/** An item by its kind, and the call that it belongs to. */
type Shape = {
  readonly kind: 'message' | 'reasoning' | 'call' | 'result';
  readonly call?: string | null | undefined;
};

/** Counts results without their call, calls without the reasoning that led to them, and reasoning that no item follows. */
function faultsIn(list: readonly Shape[]) {
  const calls = new Set(list.flatMap(({ kind, call }) => (kind === 'call' ? [call] : [])));
  return {
    orphans: list.filter(({ kind, call }) => kind === 'result' && !calls.has(call)).length,
    unreasoned: list.filter(({ kind }, at) => kind === 'call' && list[at - 1]?.kind !== 'reasoning').length,
    lonely: list.filter(({ kind }, at) => kind === 'reasoning' && list[at + 1]?.kind !== 'call').length,
  };
}

const steps = Array.from({ length: 20 }, (_, at) => at);

it('keeps results with their calls and calls with their reasoning; a limit of a session cuts between them', async () => {
  const session = new MemorySession();
  const items = steps.flatMap((at): AgentInputItem[] => [
    { type: 'reasoning', id: `rs_${at}`, content: [] },
    { type: 'function_call', callId: `c${at}`, name: 'read', arguments: '{}', status: 'completed' },
    {
      type: 'function_call_result',
      callId: `c${at}`,
      name: 'read',
      status: 'completed',
      output: { type: 'text', text: log(at) },
    },
  ]);
  await session.addItems([{ role: 'user', content: 'Read all.' }, ...items]);
  const kinds = { reasoning: 'reasoning', function_call: 'call', function_call_result: 'result' } as const;
  const cut = { orphans: 0, unreasoned: 0 };
  for (let limit = 1; limit <= 60; limit++) {
    const found = faultsIn(
      (await session.getItems(limit)).map((item) => ({
        kind: kinds[item.type as keyof typeof kinds] ?? 'message',
        call: 'callId' in item ? item.callId : undefined,
      })),
    );
    cut.orphans += Math.min(1, found.orphans);
    cut.unreasoned += Math.min(1, found.unreasoned);
  }
  expect(cut).toEqual({ orphans: 20, unreasoned: 20 });

  const input = [
    { role: 'user', content: 'Read all.' },
    ...steps.flatMap((at) => [
      { type: 'reasoning', id: `rs_${at}`, summary: [], encrypted_content: `thought ${at}` },
      { type: 'function_call', call_id: `c${at}`, name: 'read', arguments: '{}' },
      { type: 'function_call_output', call_id: `c${at}`, output: log(at) },
    ]),
  ];
  const tools = [{ type: 'function', name: 'read', parameters: { type: 'object' } }];
  const prepared = await createLeporello(foldingEarly).prepare({ body: { model: 'gpt-5', tools, input } });
  const sent = prepared.json() as { readonly input: readonly { type?: string; call_id?: string }[] };
  expect(JSON.stringify(sent)).toContain('[Folded');
  const wire = { reasoning: 'reasoning', function_call: 'call', function_call_output: 'result' } as const;
  const shapes = sent.input.map(
    ({ type, call_id: call }): Shape => ({ kind: wire[type as keyof typeof wire] ?? 'message', call }),
  );
  expect(faultsIn(shapes)).toEqual({ orphans: 0, unreasoned: 0, lonely: 0 });
});
