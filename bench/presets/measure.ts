/** Measures what each preset keeps: of planted sentences after one fold, and of the values that recorded calls used. */
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { pricesIn } from '../../src/cli/replay/conversation-body.ts';
import { engineChoice } from '../../src/cli/replay/replay.ts';
import { enginePolicy } from '../../src/replay/policies.ts';
import type { Played } from '../../src/replay/replay.ts';
import { sha256 } from '../../src/store/encrypted-store.ts';
import { type FoldPreset, presets } from '../../src/strategies/by-name.ts';
import type { TokenCounter } from '../../src/tokens/token-counter.ts';
import { type FactKind, type PlantedConversation, plantedConversations } from '../planted/generate.ts';
import { has, messagesOf } from '../planted/measure.ts';
import type { BenchOptions } from '../replay/policies.ts';

export const presetNames = Object.keys(presets) as readonly FoldPreset[];

const kinds: Readonly<Record<'findings' | 'demands' | 'outcomes', readonly FactKind[]>> = {
  findings: ['finding', 'result finding', 'decision'],
  demands: ['demand'],
  outcomes: ['outcome'],
};

export type KeptFacts = Readonly<Record<keyof typeof kinds, number>>;

/** Folds planted conversations once, in a window of which each fills nine tenths. Returns the shares of the facts that the sent request shows. */
export async function keptFacts(
  preset: FoldPreset,
  conversations: number,
  counter: TokenCounter,
): Promise<KeptFacts> {
  const kept = { findings: 0, demands: 0, outcomes: 0 };
  const all = { findings: 0, demands: 0, outcomes: 0 };
  for (const planted of plantedConversations(conversations)) {
    const text = await textUnder(preset, planted, counter);
    for (const kind of Object.keys(kinds) as (keyof typeof kinds)[]) {
      const facts = planted.facts.filter((fact) => kinds[kind].includes(fact.kind));
      all[kind] += facts.length;
      kept[kind] += facts.filter((fact) => has(text, fact)).length;
    }
  }
  return {
    findings: kept.findings / all.findings,
    demands: kept.demands / all.demands,
    outcomes: kept.outcomes / all.outcomes,
  };
}

/** Returns all texts of the sent request. */
async function textUnder(
  preset: FoldPreset,
  planted: PlantedConversation,
  counter: TokenCounter,
): Promise<string> {
  const body = bodyOf(planted);
  const { settings } = engineChoice(`${preset}=${JSON.stringify({ preset })}`);
  const conversation = openaiChat.read(body, { digest: sha256, blocks: new Map() });
  const prepare = async (window: number) => {
    const session = enginePolicy({ name: preset, settings, window, counter }).open(openaiChat);
    return (await session.send({ conversation, rerun: new Set(), at: 0 })).prepared!;
  };
  const whole = await prepare(10_000_000);
  const { body: sent } = await prepare(Math.floor(whole.report.tokensBefore! / 0.9));
  const { messages } = JSON.parse(new TextDecoder().decode(sent)) as { messages: readonly SentMessage[] };
  return messages
    .flatMap(({ content, tool_calls: calls = [] }) => [
      content ?? '',
      ...calls.map((call) => call.function.arguments),
    ])
    .join('\n');
}

type SentMessage = {
  readonly content: string | null;
  readonly tool_calls?: readonly { readonly function: { readonly arguments: string } }[];
};

function bodyOf({ groups }: PlantedConversation): Uint8Array {
  const names = [...new Set(groups.flatMap(({ calls }) => calls.map(({ tool }) => tool)))];
  const tools = names.map((name) => ({
    type: 'function',
    function: { name, parameters: { type: 'object' } },
  }));
  return new TextEncoder().encode(JSON.stringify({ model: 'planted', messages: messagesOf(groups), tools }));
}

/** The options of a replay under each preset. The policies of each conversation: the full context, then the presets. */
export const presetOptions: BenchOptions = {
  engines: presetNames.map((name) => {
    const { settings } = engineChoice(`${name}=${JSON.stringify({ preset: name })}`);
    return { name, settings: { ...settings, usdPerMillionTokens: pricesIn('anthropic') } };
  }),
  set: 'engines',
  window: 200_000,
  prefix: 15_000,
  pauses: false,
  cacheTtl: '5m',
};

/** Returns pairs of presets whose requests had the same sizes in every conversation that either of them folded. */
export function samePresets(played: readonly Played[]): readonly string[] {
  const contextsOf = (preset: FoldPreset) =>
    JSON.stringify(played.map(({ plays }) => plays.find(({ policy }) => policy === preset)?.contexts));
  return presetNames.flatMap((one, at) =>
    presetNames
      .slice(at + 1)
      .filter((other) => contextsOf(one) === contextsOf(other))
      .map((other) => `${one} and ${other}`),
  );
}
