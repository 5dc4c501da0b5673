/**
 * Usage as Gemini generateContent reports it: running totals in every chunk, and separate tokens of the provider's tools and of
 * thoughts.
 */
import type { ScriptedTurn, UsageFixture } from '../fixture.ts';
import { sseEvents } from '../sse.ts';
import { type Json, responseSaying } from './responses.ts';
import { streamSaying } from './streams.ts';

const texts = (tokenCount: number) => ({ modality: 'TEXT', tokenCount });
const images = (tokenCount: number) => ({ modality: 'IMAGE', tokenCount });

export const usage: UsageFixture = {
  rounds: [
    {
      said: {
        promptTokenCount: 300,
        cachedContentTokenCount: 100,
        toolUsePromptTokenCount: 50,
        candidatesTokenCount: 20,
        thoughtsTokenCount: 30,
        totalTokenCount: 400,
        promptTokensDetails: [texts(42), images(258)],
        cacheTokensDetails: [texts(100)],
        toolUsePromptTokensDetails: [texts(50)],
        serviceTier: 'standard',
      },
      means: { input: 350, cacheRead: 100, cacheWrite: 0, output: 50 },
    },
    {
      said: {
        promptTokenCount: 360,
        candidatesTokenCount: 10,
        totalTokenCount: 370,
        promptTokensDetails: [texts(102), images(258)],
      },
      means: { input: 360, cacheRead: 0, cacheWrite: 0, output: 10 },
    },
    {
      said: {
        promptTokenCount: 400,
        candidatesTokenCount: 8,
        thoughtsTokenCount: 2,
        totalTokenCount: 410,
        promptTokensDetails: [texts(142), images(258)],
      },
      means: { input: 400, cacheRead: 0, cacheWrite: 0, output: 10 },
    },
  ],
  total: {
    promptTokenCount: 1060,
    cachedContentTokenCount: 100,
    toolUsePromptTokenCount: 50,
    candidatesTokenCount: 38,
    thoughtsTokenCount: 32,
    totalTokenCount: 1180,
    promptTokensDetails: [texts(286), images(774)],
    cacheTokensDetails: [texts(100)],
    toolUsePromptTokensDetails: [texts(50)],
    serviceTier: 'standard',
  },
  response: responseSaying,
  stream,
  inResponse: (body) => perModality((JSON.parse(new TextDecoder().decode(body)) as Json)['usageMetadata']),
  inStream: (sse) =>
    sseEvents(sse).flatMap(({ data }) => {
      const metadata = (JSON.parse(data) as Json)['usageMetadata'];
      return metadata === undefined ? [] : [perModality(metadata)];
    }),
};

/** The prompt's tokens are known with the first chunk, the reply's grow. */
function stream(turn: ScriptedTurn, number: number, said: unknown): string {
  if (said === undefined) return streamSaying(turn, number, () => undefined);
  const {
    candidatesTokenCount: all,
    totalTokenCount,
    ...prompted
  } = said as Readonly<Record<string, number>>;
  return streamSaying(turn, number, (chunk, isLast) => {
    const candidatesTokenCount = isLast ? all! : Math.min(chunk, all!);
    return {
      ...prompted,
      candidatesTokenCount,
      totalTokenCount: totalTokenCount! - all! + candidatesTokenCount,
    };
  });
}

/** A list of details may name a modality more than once: a client adds its tokens up. */
function perModality(details: unknown): unknown {
  if (!Array.isArray(details))
    return typeof details === 'object' && details !== null
      ? Object.fromEntries(Object.entries(details).map(([key, value]) => [key, perModality(value)]))
      : details;
  const counts = new Map<string, number>();
  for (const { modality, tokenCount } of details as readonly ReturnType<typeof texts>[])
    counts.set(modality, (counts.get(modality) ?? 0) + tokenCount);
  return [...counts].map(([modality, tokenCount]) => ({ modality, tokenCount }));
}
