/** Runs the experiments of a gateway: the holdout and the shadow. Loaded when the first request that they count has ended. */
import type { HeldFolds } from '../engine/types.ts';
import { createBudget } from '../experiment/budget.ts';
import { type HoldoutRunner, openHoldout } from '../experiment/holdout.ts';
import { openShadowNotes, shadowReportsOf } from '../experiment/shadow.ts';
import type { ExperimentResults } from '../experiment/spell.ts';
import { drawerOf, type FoldSettings } from '../library/default-engine.ts';
import { sha256 } from '../store/encrypted-store.ts';
import { loadModelInfo } from '../tokens/models.ts';
import type { GatewayOptions } from './options.ts';
import type { AnyReceipt, ReceiptSource } from './receipts/receipts.ts';
import { openShadow, type Shadow, type ShadowSettings } from './shadow.ts';

/** The settings of experiments. */
export type ExperimentSettings = {
  /** The share of conversations that form the control group: they are folded only if they would not fit. 0 for none, the default. */
  readonly holdout?: number;
  /**
   * How the control group's requests are sent. `unfolded`: as before the arms parted, with the recall tool and the shrinks that both arms
   * have. `untouched`: as the client sent them; to keep the arms equal until they part, no request gets the tool, a shrink or a cache mark
   * before its first fold. Default `unfolded`.
   */
  readonly control?: 'unfolded' | 'untouched';
  /** USD of a conversation that count at most. It must not depend on the data, so a change begins a new experiment. Default 10. */
  readonly capUsd?: number;
  /** Sends a share of folded requests again, and compares what the model does next. Default: none is. */
  readonly shadow?: ShadowSettings | false;
};

type ExperimentParts = Pick<
  GatewayOptions,
  | 'encryptedStore'
  | 'receipts'
  | 'totals'
  | 'metrics'
  | 'prices'
  | 'recall'
  | 'log'
  | 'clock'
  | 'newId'
  | 'whenIdle'
> & { readonly foldSettings: FoldSettings };

/** The experiments of one gateway. */
export interface Experiments {
  /** Notes a receipt. Returns at once. */
  note(tenant: string, receipt: AnyReceipt, source: ReceiptSource | undefined): void;
  /** Returns the folds of a tenant that a shadow holds, as far as that is known. */
  held(tenant: string): HeldFolds;
  /** Rejects with `store-failed`. */
  report(tenant: string): Promise<ExperimentResults>;
}

export function openExperiments(settings: ExperimentSettings, parts: ExperimentParts): Experiments {
  const holdout = holdoutOf(settings, parts);
  const shadow = shadowOf(settings, parts);
  return {
    note(tenant, receipt, source) {
      if (receipt.kind !== 'request') {
        if (receipt.kind === 'summary') holdout?.noteSummary(tenant, receipt);
        return;
      }
      if (!source?.request) return;
      const { request, prepared, reply, resender } = source;
      holdout?.note({ receipt, request, prepared });
      if (resender) shadow?.served({ tenant, receipt, request, prepared, reply, resender });
    },
    held: (tenant) => shadow?.held(tenant) ?? { sets: [] },
    async report(tenant) {
      const findings = await shadow?.findings(tenant);
      return {
        experiments: (await holdout?.report(tenant)) ?? [],
        shadows: findings ? shadowReportsOf(findings, parts.clock()) : [],
      };
    },
  };
}

function holdoutOf(
  { holdout: rate, capUsd = 10, control = 'unfolded' }: ExperimentSettings,
  { encryptedStore, foldSettings, clock, metrics }: ExperimentParts,
): HoldoutRunner | undefined {
  if (!rate) return undefined;
  const settings = digestOf([control, thatFold(foldSettings)]);
  const lost = (notes: number) => metrics?.notesLost('holdout', notes);
  return openHoldout({ encryptedStore, rate, capUsd, settings, clock, lost });
}

function shadowOf({ shadow }: ExperimentSettings, parts: ExperimentParts): Shadow | undefined {
  if (!shadow) return undefined;
  const { share = 0.1, usdPerDay = 1, billShare = 0.01, hold = 'if-harmful', logins = false } = shadow;
  const { encryptedStore, foldSettings, receipts, totals, metrics, clock } = parts;
  return openShadow({
    ...parts,
    share,
    usdPerDay,
    billShare,
    hold,
    logins,
    notes: openShadowNotes(encryptedStore),
    budget: createBudget({ encryptedStore, usdPerDay, clock }),
    draw: drawerOf(encryptedStore),
    settings: digestOf([share, thatFold(foldSettings)]),
    lost: (notes) => metrics?.notesLost('shadow', notes),
    infoOf: (model) => loadModelInfo(model, foldSettings.models ?? {}),
    ended(tenant, receipt) {
      receipts.add(tenant, receipt);
      totals.addShadow(tenant, receipt);
      metrics?.shadowEnded(receipt);
    },
  });
}

/** Returns the settings that decide what is folded: a change of another one begins no new experiment. */
function thatFold(settings: FoldSettings): FoldSettings {
  const { cacheMb: _, storeDeadlineMs: __, memoryTtlMs: ___, ...others } = settings;
  return others;
}

function digestOf(settings: unknown): string {
  return sha256(new TextEncoder().encode(JSON.stringify(settings))).slice(0, 16);
}
