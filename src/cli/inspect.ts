/** Implements `leporello inspect`: prints receipts with what became of each message, from the store. The gateway need not run. */
import { LeporelloError } from '../errors.ts';
import type { KeptReceipt, MessageDetail } from '../receipts/detail.ts';
import {
  count,
  duration,
  foldRepeatedBy,
  number,
  otherWords,
  outcomeWords,
  repeatsFold,
  requestReceipt,
  usdText,
  wordsOfKept,
  wordsOfTrigger,
} from '../receipts/detail.ts';
import { type Money, breakEvenText } from '../receipts/cost.ts';
import type { Receipt } from '../receipts/receipt.ts';
import { createEncryptedStore } from '../store/encrypted-store.ts';
import { type ReceiptStore, createReceiptStore } from '../store/receipt-store.ts';
import type { InspectArgs } from './command-args.ts';
import { loadConfig } from './config/load-config.ts';
import { tenantToRead } from './config/to-settings.ts';
import { openExistingStore } from './open-store.ts';
import type { Terminal } from './terminal.ts';

/** The number of receipts among which the fold of an earlier request is looked up. */
const maxSearched = 500;

/** Runs the command. Resolves with the exit code, 1 when there is no such receipt. */
export async function inspect(args: InspectArgs, terminal: Terminal): Promise<number> {
  const { config, dataDir } = await loadConfig(args.settings, terminal);
  const tenant = tenantToRead(args.tenant, config);
  const opened = await openExistingStore(dataDir, terminal.env, config);
  if ('missing' in opened) return fails(terminal, opened.missing);
  const { store } = opened;
  try {
    const encryptedStore = createEncryptedStore(opened);
    const receipts = createReceiptStore<KeptReceipt>({ encryptedStore });
    const wanted = await find(args, receipts, tenant);
    if (wanted.length === 0)
      return fails(
        terminal,
        args.receipt === undefined
          ? `The tenant ${tenant} has no receipts yet: send a request through the gateway.`
          : `The tenant ${tenant} has no receipt ${args.receipt}. It may be older than 30 days, or belong to another tenant (--tenant) or data folder (--data).`,
      );
    const all = wanted.some(repeatsFold) ? await receipts.list(tenant, maxSearched) : [];
    for (const one of wanted) {
      const fold = repeatsFold(one) ? foldRepeatedBy(one, all) : undefined;
      const text = args.json ? JSON.stringify({ ...one, repeats: fold?.id }) : spellReceipt(one, fold);
      await terminal.out(`${text}\n`);
    }
    return 0;
  } finally {
    await store.close();
  }
}

function fails(terminal: Terminal, why: string): number {
  terminal.err(`leporello: ${why}\n`);
  return 1;
}

async function find(
  { receipt, last }: InspectArgs,
  receipts: ReceiptStore<KeptReceipt>,
  tenant: string,
): Promise<readonly KeptReceipt[]> {
  if (receipt === undefined) return receipts.list(tenant, last);
  if (!/^[0-9a-f-]{36}$/.test(receipt))
    throw new LeporelloError(
      'bad-usage',
      `${JSON.stringify(receipt)} is not the id of a receipt. An id has 36 characters; a reply names its receipt in the header x-leporello-receipt, and the page in its address.`,
    );
  const found = await receipts.get(tenant, receipt);
  return found ? [found] : [];
}

/** Spells a receipt for a person. `fold`: the receipt of the fold that the request repeats. */
export function spellReceipt(one: KeptReceipt, fold?: KeptReceipt): string {
  const receipt = requestReceipt(one);
  if (!receipt) return spellOther(one);
  const { detail, asked = [] } = one;
  const lines = [
    `Receipt ${one.id}, ${new Date(receipt.at).toISOString()}`,
    `  ${receipt.path}, model ${receipt.model ?? 'unknown'}, session ${receipt.session ?? 'unknown'}`,
    `  ${outcomeWords(receipt, receipt.outcome)}`,
    ...(detail?.trigger ? [`  Why: ${wordsOfTrigger(detail.trigger, receipt)}`] : []),
    ...tokenLines(receipt),
    ...receipt.steps.map(
      ({ strategy, edits, tokensSaved, refused }) =>
        `  ${strategy}: ${count(edits, 'edit')} saved ${count(tokensSaved, 'token')}${refused === undefined ? '' : `; refused: ${refused}`}`,
    ),
    ...asked.map(
      ({ found, tokens, asked: query }) =>
        `  recall ${query}: ${found ? count(tokens, 'token') : 'not found'}`,
    ),
    ...moneyLines(receipt.money),
    ...(receipt.cutOff === undefined
      ? []
      : [`  Incomplete (${receipt.cutOff}): the output is what was reported until then.`]),
    ...(receipt.problem === undefined ? [] : [`  Problem: ${receipt.problem}`]),
    ...(receipt.unstableFrom === undefined
      ? []
      : [`  Bug: the sent prefix changed at message ${receipt.unstableFrom} without a fold.`]),
    ...messageLines(one),
    ...editLines(one),
  ];
  if (!fold) return `${lines.join('\n')}\n`;
  const since = duration(receipt.at - fold.receipt.at);
  lines.push(
    `  Repeats the fold of receipt ${fold.id}, made ${since} before: ${count(receipt.replayed, 'edit')}.`,
    ...messageLines(asRepeated(fold, detail)),
    ...editLines(fold),
  );
  return `${lines.join('\n')}\n`;
}

/** Returns a fold with what it changed only: its other messages are those of an older request, and may have changed since. */
function asRepeated(fold: KeptReceipt, now: KeptReceipt['detail']): KeptReceipt {
  if (!fold.detail) return fold;
  const { messageCount } = now ?? fold.detail;
  const messages = fold.detail.messages
    .filter(({ state }) => state !== 'sent')
    .map((row) => (row.state === 'folded' ? { ...row, state: 'replayed' as const } : row));
  return { ...fold, detail: { ...fold.detail, messageCount, messages } };
}

function spellOther({ id, receipt }: KeptReceipt): string {
  const { at, model } = receipt;
  return `Receipt ${id}, ${new Date(at).toISOString()}\n  ${model ?? 'the model in the URL'}: ${otherWords({ receipt })}\n`;
}

function tokenLines({ tokensBefore, tokensAfter, window, usage, ms }: Receipt): readonly string[] {
  const counted =
    tokensBefore === undefined || tokensAfter === undefined
      ? []
      : [
          `  tokens: ${number(tokensBefore)} came, ${number(tokensAfter)} were sent${window === undefined ? '' : ` (window ${number(window)})`}`,
        ];
  const billed =
    usage === undefined
      ? []
      : [
          `  billed: ${count(usage.input, 'input token')}, ${number(usage.cacheRead)} of them read from the cache; ${number(usage.output)} output`,
        ];
  return [...counted, ...billed, `  time added: ${duration(ms.prepare)}`];
}

function moneyLines(money: Money | undefined): readonly string[] {
  if (!money) return ['  cost: unknown (no usage or no price)'];
  const { paid, untouched, net, fold, recalls } = money;
  return [
    `  cost: paid ${usdText(paid.total)}, estimate without Leporello ${usdText(untouched.total)}, net ${usdText(net)}${breakEvenText(money)}`,
    `        of what was paid: the fold ${usdText(fold)}, recalls ${usdText(recalls)}`,
  ];
}

function messageLines({ detail }: KeptReceipt): readonly string[] {
  if (!detail || detail.messages.length === 0) return [];
  const rows = detail.messages.map(messageCells);
  const heads = ['message', 'what', 'before', 'after', ''];
  const widths = [0, 1, 2, 3].map((at) => Math.max(...[heads, ...rows].map((row) => row[at]!.length)));
  const line = ([index, what, before, after, note]: readonly string[]) =>
    `    ${index!.padStart(widths[0]!)}  ${what!.padEnd(widths[1]!)}  ${before!.padStart(widths[2]!)}  ${after!.padStart(widths[3]!)}  ${note!}`.trimEnd();
  const left = detail.messageCount - detail.messages.length;
  return [
    ...[heads, ...rows].map(line),
    ...(left > 0 ? [`    (${count(left, 'other message')}, sent as before)`] : []),
  ];
}

/** The states whose name differs from the word for people. */
const stateWords: Partial<Record<MessageDetail['state'], string>> = { sent: '', replayed: 'repeated' };

function messageCells({ index, role, what, before, after, state, kept }: MessageDetail): readonly string[] {
  const note = kept === undefined ? (stateWords[state] ?? state) : `kept: ${wordsOfKept(kept)}`;
  return [String(index), `${role}: ${what}`, number(before), number(after), note];
}

function editLines({ detail }: KeptReceipt): readonly string[] {
  if (!detail || detail.edits.length === 0) return [];
  return detail.edits.flatMap(({ message, title, memory, stub, before, after, requests, by }) => [
    `    ${by === 'fold' ? 'folded' : 'shortened on arrival'}: message ${message}, ${title}, ${number(before)} → ${count(after, 'token')}, sent with ${count(requests, 'earlier request')}${memory === undefined ? '' : `, original ${memory}`}`,
    ...stub.split('\n').map((text) => `      | ${text}`),
  ]);
}
