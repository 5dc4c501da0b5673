/** Implements `leporello compact`: folds bodies offline, one after the other, and stores their originals in the data folder. */
import type { Codec } from '../../codecs/codec.ts';
import { wireFormats } from '../../library/formats.ts';
import { createDefaultEngine } from '../../library/default-engine.ts';
import type { Engine } from '../../engine/types.ts';
import type { PreparedRequest } from '../../engine/types.ts';
import { createEncryptedStore, type EncryptedStore } from '../../store/encrypted-store.ts';
import type { CompactArgs } from '../command-args.ts';
import {
  byteLines,
  type Input,
  type InputLine,
  isBlank,
  openInput,
  recordsOf,
  systemProblem,
} from './input.ts';
import { identify } from '../compact/identify.ts';
import { openOutput, type Output } from '../compact/open-output.ts';
import { type BodyReceipt, receiptLines, receiptTable, type ReceiptView } from '../compact/receipt-table.ts';
import { loadConfig } from '../config/load-config.ts';
import { gatewaySettings } from '../config/to-settings.ts';
import { openStore } from '../open-store.ts';
import type { Terminal } from '../terminal.ts';

/** Tenant of the originals of offline runs. */
const tenant = 'compact';

const lineFeed = new Uint8Array([10]);

/** Runs the command. Resolves with the exit code, 1 when a body could not be read, could not be folded, or does not fit. */
export async function compact(args: CompactArgs, terminal: Terminal): Promise<number> {
  const { config, dataDir } = await loadConfig(args.settings, terminal);
  const input = await openInput(args.file, terminal);
  try {
    const memory = await openStore(dataDir, terminal.env, config);
    try {
      const settings = gatewaySettings(config, args.window);
      const encryptedStore = withoutFolds(createEncryptedStore(memory));
      const engine = createDefaultEngine(
        { ...settings, offerRecall: 'never', cacheMarks: false },
        encryptedStore,
      );
      const output = await openOutput(args.out, terminal);
      const run = { args, terminal, engine, input, output, maxBytes: config.limits.maxBodyBytes };
      return await compactAll(run, args.json ? receiptLines() : receiptTable());
    } finally {
      await memory.store.close();
    }
  } finally {
    input.close();
  }
}

type CompactRun = {
  readonly args: CompactArgs;
  readonly terminal: Terminal;
  readonly engine: Engine;
  readonly input: Input;
  readonly output: Output;
  readonly maxBytes: number;
};

async function compactAll(run: CompactRun, view: ReceiptView): Promise<number> {
  const { terminal, input, output } = run;
  let stopped = false;
  const forget = terminal.onStop(() => {
    stopped = true;
    input.close();
  });
  let code = 0;
  let records = 0;
  // On a terminal, the table would otherwise begin on the last line of the body.
  const isShown = terminal.isTty.out && run.args.out === undefined;
  try {
    for await (const record of recordsOf(byteLines(input.chunks))) {
      const { bytes, receipt } = await compactOne(run, record);
      await output.write(bytes);
      await output.write(record.end.length > 0 || !isShown ? record.end : lineFeed);
      if (receipt === undefined) continue;
      records += 1;
      if (!isGood(receipt)) code = 1;
      terminal.err(view.add(receipt));
    }
    await output.commit();
    if (records === 0) {
      terminal.err('leporello: The input holds no body: send a request body, or one per line.\n');
      return 1;
    }
    terminal.err(view.end());
    return code;
  } catch (error) {
    await output.discard();
    const why = stopped ? 'interrupted' : systemProblem(error, run.args.file);
    if (why === undefined) throw error;
    const kept = run.args.out === undefined ? '' : ` ${run.args.out} was not written.`;
    terminal.err(`leporello: ${why}.${kept}\n`);
    return stopped ? 130 : 1;
  } finally {
    forget();
  }
}

/** Folds one record. A blank line is copied and has no receipt. */
async function compactOne(
  { args, engine, maxBytes }: CompactRun,
  { bytes, number }: InputLine,
): Promise<{ readonly bytes: Uint8Array; readonly receipt: BodyReceipt | undefined }> {
  if (isBlank(bytes)) return { bytes, receipt: undefined };
  const started = performance.now();
  const known = identify(bytes, args.format, maxBytes);
  if (known.status === 'bad') {
    const outcome = { status: 'bad', reason: known.reason } as const;
    return { bytes, receipt: { line: number, id: `line ${number}`, outcome, report: undefined, ms: 0 } };
  }
  const { load, usualModel } = wireFormats[known.format];
  const codec = withModel(await load(), args.model, usualModel);
  const prepared = await engine.prepare({ codec, body: bytes, tenant });
  const ms = performance.now() - started;
  const receipt = { line: number, id: known.id ?? `line ${number}`, ...outcomeOf(prepared), ms };
  return { bytes: prepared.body, receipt };
}

/** Returns outcome and report for the receipt. A body that the codec could not read, which has no counter, is `bad`. */
function outcomeOf({ outcome, report, counter }: PreparedRequest): Pick<BodyReceipt, 'outcome' | 'report'> {
  if (outcome.status !== 'untouched' || counter !== undefined) return { outcome, report };
  const reason = outcome.reason.replace(/^not-this-format: /, '');
  return { outcome: { status: 'bad', reason }, report: undefined };
}

function isGood({ outcome, report }: BodyReceipt): boolean {
  return outcome.status !== 'bad' && outcome.status !== 'failed' && report?.unfit === undefined;
}

/** Returns a codec that sets the model of the conversation. The body keeps its bytes. */
function withModel(codec: Codec, model: string | undefined, usualModel: string): Codec {
  return {
    ...codec,
    read(body, reading) {
      const conversation = codec.read(body, reading);
      return { ...conversation, model: model ?? conversation.model ?? usualModel };
    },
  };
}

/**
 * Returns a store that keeps originals but no folds, so that a run does not depend on the folds of an earlier run with other settings. Within
 * a run, the fold store's own memory serves bodies that continue each other.
 */
function withoutFolds(encryptedStore: EncryptedStore): EncryptedStore {
  return {
    ...encryptedStore,
    keep: (owner, originals) => encryptedStore.keep(owner, originals),
    putSealed: async () => undefined,
    getSealedMany: async (_, keys) => keys.map(() => undefined),
    getSealedFirst: async () => undefined,
  };
}
