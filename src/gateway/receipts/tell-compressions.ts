/** Tells the log what a fold compressed: a warning where that came out far from what was asked for. */
import type { FoldReport } from '../../receipts/receipt.ts';
import type { GatewayLog } from './gateway-log.ts';

export function tellCompressions(log: GatewayLog, receipt: string, { compressions }: FoldReport): void {
  for (const { ratio, target, ...one } of compressions) {
    const fields = { receipt, ...one, ratio: round(ratio), target: target && round(target) };
    if (one.warning === 'under') log.warn(fields, 'a compression saved far less than was asked for');
    else if (one.warning === 'over') log.warn(fields, 'a compression left far less than was asked for');
    else log.info(fields, 'compressed');
  }
}

function round(ratio: number): number {
  return Math.round(ratio * 10) / 10;
}
