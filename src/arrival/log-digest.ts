/**
 * A long log without most of the lines that are like others. Of each template (a line with its numbers, ids and quoted values taken out)
 * the first two and the last line stay, so that the log begins and ends when it did; rare templates and what reports a trouble stay as
 * they are, with a line before and behind; where lines are missing it says how many of which template. Lossy.
 */
import { withoutSmallGaps } from './gaps.ts';
import { leftOut } from './markers.ts';

/** UTF-16 units; shorter logs stay whole. */
const FLOOR = 8_000;
/** A template with fewer lines stays whole. */
const RARE = 5;
/** Of lines that report one and the same trouble, so many stay at the beginning and at the end. */
const TROUBLES = 10;
/** Templates named where lines are missing. */
const NAMED = 3;

/** A log has a time or a level in most of its lines. In a listing each line is news, however alike they look. */
const LOG_SHARE = 0.7;
const logLine =
  /\d:\d\d:\d\d|\b(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL)\b|^\[?(?:trace|debug|info|warn|error)\b|\b\d{10}(?:\.\d+)?\b/;

/** Undefined where this is no log, or too little can go. */
export function digestLog(text: string): { readonly text: string; readonly lines: number } | undefined {
  if (text.length < FLOOR) return undefined;
  const lines = text.split('\n');
  if (lines.filter((line) => logLine.test(line)).length < lines.length * LOG_SHARE) return undefined;
  const templates = lines.map(templateOf);
  const kept = withoutSmallGaps(keep(lines, templates), lines.length);
  const gone = lines.length - kept.size;
  return gone < lines.length / 4 ? undefined : { text: write(lines, templates, kept), lines: gone };
}

/** Whatever a log line says of trouble. */
const trouble =
  /\b(?:error|errors|fail|fails|failed|failure|fatal|exception|critical|severe|panic|denied|refused|timeout|timed out|unreachable|crash\w*|abort\w*|warn|warning|cannot|unable|invalid|killed|oom)\b|\b[45]\d\d\b(?= )/i;

function keep(lines: readonly string[], templates: readonly string[]): ReadonlySet<number> {
  const places = new Map<string, number[]>();
  for (const [at, template] of templates.entries()) {
    const known = places.get(template);
    if (known) known.push(at);
    else places.set(template, [at]);
  }
  const kept = new Set<number>();
  for (const [template, all] of places) {
    const isTrouble = trouble.test(template);
    const first = isTrouble ? TROUBLES : 2;
    const last = isTrouble ? TROUBLES : 1;
    const some = all.length < RARE ? all : [...all.slice(0, first), ...all.slice(-last)];
    for (const at of some) {
      kept.add(at);
      if (!isTrouble) continue;
      if (at > 0) kept.add(at - 1);
      if (at + 1 < lines.length) kept.add(at + 1);
    }
  }
  return kept;
}

function write(lines: readonly string[], templates: readonly string[], kept: ReadonlySet<number>): string {
  const out: string[] = [];
  let gap: string[] = [];
  const close = (): void => {
    if (gap.length > 0) out.push(leftOut(gap.length, 'lines', `: ${tally(gap)}`));
    gap = [];
  };
  for (const [at, line] of lines.entries()) {
    if (!kept.has(at)) gap.push(templates[at]!);
    else {
      close();
      out.push(line);
    }
  }
  close();
  return out.join('\n');
}

function tally(templates: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const template of templates) counts.set(template, (counts.get(template) ?? 0) + 1);
  const most = [...counts].sort((one, other) => other[1] - one[1]);
  const named = most.slice(0, NAMED).map(([template, count]) => `${count} x ${clip(template, 80)}`);
  return named.join('; ') + (most.length > NAMED ? `; ${most.length - NAMED} others` : '');
}

/** What is another value each time: ids, addresses, times, numbers. Words are not: a line that says something else is another template. */
const value =
  /\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4,12}){1,4}\b|\b0x[0-9a-fA-F]+\b|\b(?=[a-fA-F]*\d)[0-9a-fA-F]{7,}\b|\d+/g;

function templateOf(line: string): string {
  return clip(line, 300).replace(value, '#').replace(/\s+/g, ' ');
}

/** Never half of a character. */
function clip(text: string, most: number): string {
  const isHalf = /[\ud800-\udbff]/.test(text.charAt(most - 1));
  return text.slice(0, isHalf ? most - 1 : most);
}
