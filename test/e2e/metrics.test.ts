/** Tests `/metrics` of a real gateway: when idle, after requests of all kinds, and who may read it. */
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import type { Reply, ScriptRequest } from '../support/fake-provider/script.ts';
import { formats, longBody, post, requestBody } from './bodies.ts';
import { startStack } from './stack.ts';

const says = (text: string): Reply => ({ type: 'turn', parts: [{ type: 'text', text }] });

async function metricsOf(
  url: string,
  token = 'dummy',
): Promise<{ status: number; lines: readonly string[] }> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
  return { status: response.status, lines: (await response.text()).split('\n') };
}

/** Returns the series with their values, large values and fractions as `n`, histograms without buckets. */
const values = (lines: readonly string[]) =>
  lines
    .filter((line) => line !== '' && !line.startsWith('#') && !line.includes('_bucket{'))
    .map((line) => line.replace(/^leporello_/, '').replace(/ (?:\d{3,}|\d+\.\d+)$/, ' n'));

describe('metrics', () => {
  it('of an idle gateway list all series', async () => {
    await using stack = await startStack([], { openMetrics: true });
    const response = await fetch(`${stack.url}/metrics`);
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    const lines = (await response.text()).split('\n');
    const types = lines.filter((line) => line.startsWith('# TYPE leporello_'));
    expect(types.map((line) => line.slice('# TYPE leporello_'.length))).toEqual([
      'requests_total counter',
      'failures_total counter',
      'tokens_before_total counter',
      'tokens_after_total counter',
      'usd_paid_total counter',
      'usd_untouched_total counter',
      'priced_requests_total counter',
      'tokens_folded_total counter',
      'folds_total counter',
      'folds_held_total counter',
      'recalls_total counter',
      'recalls_per_folded_request histogram',
      'provider_tokens_total counter',
      'count_error_ratio histogram',
      'prefix_changes_total counter',
      'experiment_requests_total counter',
      'experiment_usd_total counter',
      'shadow_comparisons_total counter',
      'shadow_requests_total counter',
      'shadow_usd_total counter',
      'notes_lost_total counter',
      'store_seconds histogram',
      'fetched_again_total counter',
      'prepare_seconds histogram',
      'compression_ratio histogram',
      'compression_tokens_saved_total counter',
      'compression_warnings_total counter',
      'compression_problems_total counter',
      'summaries_running gauge',
      'summaries_written_total counter',
      'summaries_failed_total counter',
    ]);
    expect(values(lines)).toEqual([
      'failures_total{stage="fold"} 0',
      'failures_total{stage="upstream"} 0',
      'failures_total{stage="response"} 0',
      'recalls_total{found="yes"} 0',
      'recalls_total{found="no"} 0',
      'recalls_per_folded_request_sum 0',
      'recalls_per_folded_request_count 0',
      'count_error_ratio_sum 0',
      'count_error_ratio_count 0',
      'prefix_changes_total 0',
      'shadow_requests_total 0',
      'shadow_usd_total 0',
      'notes_lost_total{kind="receipt"} 0',
      'notes_lost_total{kind="holdout"} 0',
      'notes_lost_total{kind="shadow"} 0',
      'prepare_seconds_sum 0',
      'prepare_seconds_count 0',
      'compression_warnings_total{warning="under"} 0',
      'compression_warnings_total{warning="over"} 0',
      'compression_problems_total 0',
      'summaries_running 0',
      'summaries_written_total 0',
      'summaries_failed_total 0',
    ]);
  });

  it('count requests, folds, cost, compressions and summaries', async () => {
    const script = ({ body, model }: ScriptRequest): Reply => {
      const isForSummary = JSON.stringify(body).includes('You write down what an agent has done so far.');
      if (isForSummary) return says('Job ZEBRA-17 is next.');
      return model === 'made-up' ? { type: 'error', status: 404 } : says('Hello.');
    };
    await using stack = await startStack(script, {
      openMetrics: true,
      summaries: { kind: 'model' },
      shrinks: false,
      calibration: false,
      usdPerMillionTokens: { 'gpt-4o': { input: 1, output: 1 } },
      models: { '*': { tokenizer: { encoding: 'o200k_base' } } },
      triggers: {
        tokenBudget: { triggerTokens: 20_000, targetTokens: 600, bufferTokens: 1 },
        cacheRent: false,
        coldCache: false,
      },
    });
    const ask = async (body: string) => (await post(stack.url, 'chat', body)).text();
    await ask(longBody('chat', 14));
    await eventually(() => expect(stack.logged.join()).toContain('a summary is ready'));
    await ask(longBody('chat', 25));
    await ask(requestBody('chat', { model: 'made-up' }));
    const { lines } = await metricsOf(stack.url);
    const storeCalls = values(lines).filter((line) => line.startsWith('store_seconds_count'));
    expect(storeCalls.map((line) => line.replace(/ .*/, ''))).toContain(
      'store_seconds_count{call="putUnless",outcome="answered"}',
    );
    expect(values(lines).filter((line) => !line.startsWith('store_seconds'))).toEqual([
      'requests_total{format="openai-chat",model="gpt-4o",outcome="untouched"} 1',
      'requests_total{format="openai-chat",model="gpt-4o",outcome="compacted"} 1',
      'requests_total{format="openai-chat",model="other",outcome="untouched"} 1',
      'failures_total{stage="fold"} 0',
      'failures_total{stage="upstream"} 1',
      'failures_total{stage="response"} 0',
      'tokens_before_total{model="gpt-4o"} n',
      'tokens_after_total{model="gpt-4o"} n',
      'usd_paid_total{model="gpt-4o",for="requests"} n',
      'usd_paid_total{model="gpt-4o",for="summaries"} n',
      'usd_untouched_total{model="gpt-4o"} n',
      'priced_requests_total{model="gpt-4o"} 2',
      'tokens_folded_total{model="gpt-4o"} n',
      'folds_total{trigger="token-budget"} 1',
      'recalls_total{found="yes"} 0',
      'recalls_total{found="no"} 0',
      'recalls_per_folded_request_sum 0',
      'recalls_per_folded_request_count 1',
      'provider_tokens_total{model="gpt-4o",kind="input"} n',
      'provider_tokens_total{model="gpt-4o",kind="cache_read"} 0',
      'provider_tokens_total{model="gpt-4o",kind="cache_write"} 0',
      'provider_tokens_total{model="gpt-4o",kind="output"} 4',
      'count_error_ratio_sum n',
      'count_error_ratio_count 2',
      'prefix_changes_total 0',
      'shadow_requests_total 0',
      'shadow_usd_total 0',
      'notes_lost_total{kind="receipt"} 0',
      'notes_lost_total{kind="holdout"} 0',
      'notes_lost_total{kind="shadow"} 0',
      'prepare_seconds_sum n',
      'prepare_seconds_count 3',
      'compression_ratio_sum{level="history",by="both"} n',
      'compression_ratio_count{level="history",by="both"} 1',
      'compression_tokens_saved_total{level="history"} n',
      'compression_warnings_total{warning="under"} 0',
      'compression_warnings_total{warning="over"} 0',
      'compression_problems_total 0',
      'summaries_running 0',
      'summaries_written_total 1',
      'summaries_failed_total 0',
    ]);
  });

  it.each(formats)(
    'count negative tokens, which some servers report for "unknown", as none: %s',
    async (format) => {
      const reply: Reply = {
        type: 'turn',
        parts: [{ type: 'text', text: 'Hello.' }],
        usage: { input: 100, cacheRead: -1, output: -1 },
      };
      await using stack = await startStack(() => reply, { openMetrics: true });
      expect((await post(stack.url, format, requestBody(format))).status).toBe(200);
      const { lines } = await metricsOf(stack.url);
      const kinds = values(lines).filter((line) => line.startsWith('provider_tokens_total'));
      expect(kinds.map((line) => line.replace(/^.*kind=/, ''))).toEqual([
        '"input"} n',
        '"cache_read"} 0',
        '"cache_write"} 0',
        '"output"} 0',
      ]);
    },
  );

  it('cover all tenants: with an adminToken only its bearer may read them, without one only if the settings allow it', async () => {
    await using guarded = await startStack([], { openMetrics: true, adminToken: 'operator-operator' });
    expect((await metricsOf(guarded.url)).status).toBe(401);
    expect((await metricsOf(guarded.url, 'operator-operator')).status).toBe(200);
    await using closed = await startStack([]);
    expect((await metricsOf(closed.url)).status).toBe(403);
    await using personal = await startStack([], { tenant: 'me' });
    expect((await metricsOf(personal.url)).status).toBe(200);
  });
});
