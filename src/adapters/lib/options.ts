/** Checks the options of adapters: an unknown one, and a value that is not allowed, throws `bad-config`. */
import {
  type Check,
  type Checks,
  allowed,
  checkSettings,
  fraction,
  object,
  offOr,
  positiveNumber,
  thingWith,
  wholeNumber,
} from '../../checks.ts';
import { isRecord } from '../../conversation/json-scan.ts';
import { isTenantLabel, tenantWords } from '../../store/encrypted-store.ts';
import type { AdapterOptions } from './model-call.ts';
import type { ResultShrinkOptions } from './shrink-results.ts';

/** Checks the options of every adapter, and returns them. Functions that use only some of them allow all, so that one object can be given to each. */
export function checkAdapterOptions<T>(options: T): T {
  checkSettings(adapterCheck, options);
  return options;
}

/** Checks the options of an adapter whose model does not say its name. */
export function checkNamedOptions(options: unknown): void {
  checkSettings(namedCheck, options);
}

/** Checks the options of an adapter that also shortens results. */
export function checkShrinkingOptions(options: unknown): void {
  checkSettings(shrinkingCheck, options);
}

/** Checks the options by which results are shortened, and returns them. */
export function checkResultShrinkOptions<T>(options: T): T {
  checkSettings(resultShrinkCheck, options);
  return options;
}

/** Checks tools by their names, and returns them. */
export function checkTools<T>(tools: T): T {
  checkSettings(allowed('an object of tools by name', isRecord), tools, 'tools');
  return tools;
}

/** Checks the owner of originals. */
export const tenantCheck: Check = allowed(tenantWords, isTenantLabel);

const text = allowed('a text', (value) => typeof value === 'string');

const adapterChecks: Checks<AdapterOptions> = {
  tenant: tenantCheck,
  maxRecallRounds: wholeNumber(0),
  maxRecallTokens: wholeNumber(1),
  onPrepared: allowed('a function', (value) => typeof value === 'function'),
};

const adapterCheck = object<AdapterOptions>(adapterChecks);

const namedCheck = object<AdapterOptions & { readonly model?: string }>({ ...adapterChecks, model: text });

const resultShrinkCheck = object<ResultShrinkOptions>({
  model: text,
  windowTokens: wholeNumber(1),
  triggerShare: fraction(),
  targetShare: fraction(),
  question: text,
  summarizer: thingWith('a summarizer', 'summarize'),
  waitMs: positiveNumber,
  tenant: tenantCheck,
});

const shrinkingCheck = object<
  AdapterOptions & {
    readonly shrinkResults?: ResultShrinkOptions | false;
    readonly recall?: 'hidden' | 'tool';
  }
>({
  ...adapterChecks,
  shrinkResults: offOr(resultShrinkCheck),
  recall: allowed('hidden or tool', (value) => value === 'hidden' || value === 'tool'),
});
