import { describe, expect, it } from 'vitest';
import { digestLog } from './shared-lines.ts';

const time = (second: number): string => new Date(Date.UTC(2026, 10, 21, 10, 0, second)).toISOString();
const served = (second: number): string =>
  `${time(second)} INFO request id=${second * 7} served in ${second % 90} ms`;

describe('a long log', () => {
  it('keeps the first two and the last line of repeated templates, rare lines, and trouble with adjacent lines', () => {
    const lines = Array.from({ length: 400 }, (_, second) => served(second));
    lines[150] = `${time(150)} ERROR disk of node 7 is full`;
    lines[300] = `${time(300)} INFO configuration read again`;
    expect(digestLog(lines.join('\n'))).toEqual({
      lines: 393,
      text: [
        served(0),
        served(1),
        '[147 lines left out: 147 x #-#-#T#:#:#.#Z INFO request id=# served in # ms]',
        served(149),
        lines[150],
        served(151),
        '[148 lines left out: 148 x #-#-#T#:#:#.#Z INFO request id=# served in # ms]',
        lines[300],
        '[98 lines left out: 98 x #-#-#T#:#:#.#Z INFO request id=# served in # ms]',
        served(399),
      ].join('\n'),
    });
  });

  it('keeps ten lines of the same trouble at both ends', () => {
    const lines = Array.from(
      { length: 400 },
      (_, second) => `${time(second)} WARN retry ${second} of queue failed`,
    );
    const digest = digestLog(lines.join('\n'))!;
    expect(digest.text.split('\n')).toEqual([
      ...lines.slice(0, 11),
      '[378 lines left out: 378 x #-#-#T#:#:#.#Z WARN retry # of queue failed]',
      ...lines.slice(-11),
    ]);
  });

  it('is not a listing, in which each line is new information', () => {
    const listing = Array.from(
      { length: 400 },
      (_, at) => `-rw-r--r-- 1 ada staff ${at * 31} Jan 5 14:49 file-${at}.json`,
    );
    expect(digestLog(listing.join('\n'))).toBeUndefined();
  });

  it('is kept completely if it is short, or if each line differs', () => {
    expect(digestLog(Array.from({ length: 50 }, (_, second) => served(second)).join('\n'))).toBeUndefined();
    const words = (at: number): string =>
      String.fromCharCode(97 + (at % 26), 97 + (Math.floor(at / 26) % 26));
    const lines = Array.from({ length: 400 }, (_, at) => `${time(at)} INFO ${words(at)} was read`);
    expect(digestLog(lines.join('\n'))).toBeUndefined();
  });
});
