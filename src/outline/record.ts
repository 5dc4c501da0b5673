/**
 * Writes nodes of an outline as records, and reads them back: a title that says what the node was for and what came of it, then as many lines as there is
 * room for; of a phase a clause for each of its sub-goals. Words are never cut. Pure.
 */
import type { CountTokens } from '../conversation/messages.ts';
import { noContent, type OutlineNode } from './node.ts';
import { wholeWords } from './outcome.ts';
import { inTurns, type OutlineLine } from './rank.ts';

/** Returns the lines of a record, most important first, without what its title says. */
function recordLines({ goal, outcome, found, done }: OutlineNode): readonly OutlineLine[] {
  const said = found
    .filter(({ text }) => !outcome.includes(text) && !goal.includes(text))
    .map((line) => (line.id === undefined ? line : { ...line, text: `${line.id} ${line.text}` }));
  const isGoal = (text: string): boolean =>
    goal !== '' && text.includes(goal) && text.length < goal.length + maxPlanCall;
  const turns = [
    { lines: said, share: 3 },
    { lines: done.filter(({ text, isUsers }) => !isUsers && !isGoal(text)), share: 2 },
  ];
  // The user's refusals and answers hold for all that follows.
  return [...done.filter(({ isUsers }) => isUsers), ...inTurns(turns)];
}

/** UTF-16 units around the goal in a call that only begins it in a plan. */
const maxPlanCall = 30;

/** Makes a node of the text of one, without its first line: a later level knows no more of it. */
export function nodeOfText(level: number, id: string, title: string, body: string): OutlineNode {
  const at = title.indexOf(arrow);
  const [goal, outcome] = at < 0 ? ['', title] : [title.slice(0, at), title.slice(at + arrow.length)];
  const found = body
    .split('\n')
    .filter((line) => line !== '')
    .map(
      (text, place): OutlineLine => ({ section: 'found', text: text.replace(/^(?:- |> )/, ''), at: place }),
    );
  return { ...noContent, level, id, goal, outcome, found, children: [], artifacts: [] };
}

/** Makes the node above others. */
export function nodeAbove(children: readonly OutlineNode[], id = ''): OutlineNode {
  const level = Math.max(...children.map((child) => child.level)) + 1;
  const artifacts = [...new Set(children.flatMap((child) => child.artifacts))];
  return { ...noContent, level, id, goal: '', outcome: '', children, artifacts };
}

const arrow = ' → ';

/** Writes what a node was for and what came of it, in at most `max` UTF-16 units; of a long one, more of what came of it. */
export function titleOf({ goal, outcome }: Pick<OutlineNode, 'goal' | 'outcome'>, max: number): string {
  if (goal === '' || outcome === '') return shortened(goal + outcome, max);
  if (goal.length + outcome.length + arrow.length <= max) return goal + arrow + outcome;
  // Two halves of a few words each would say nothing.
  if (max < minHalves)
    return outcome.endsWith(' ok') || outcome.length > max ? shortened(goal, max) : outcome;
  const forGoal = Math.max(Math.floor(max * 0.35), max - outcome.length - arrow.length);
  const name = wholeWords(goal, forGoal);
  if (name === '') return shortened(outcome, max);
  const came = wholeWords(outcome, max - name.length - arrow.length);
  return came === '' ? shortened(goal, max) : name + arrow + came;
}

/** UTF-16 units of the shortest title that has both a goal and an outcome of which not all fits. */
const minHalves = 80;

/** Returns whole words, at least one. */
function shortened(text: string, max: number): string {
  return wholeWords(text, max) || (/^\S{1,200}/.exec(text)?.[0] ?? '');
}

/** Says in a clause what a child was about, without saying nothing. */
function clauseOf(child: OutlineNode, max: number): string {
  if (child.goal !== '' || child.outcome !== '') return titleOf(child, max);
  const points =
    child.children.length > 0
      ? child.children.map((one) => clauseOf(one, max))
      : recordLines(child).map(({ text }) => text);
  const count = Math.max(1, Math.min(points.length, Math.floor(max / 30)));
  return spread(points, count)
    .map((point) =>
      shortened(point.replace(/^\[\w+[^\]]*\] /, ''), Math.max(16, Math.floor(max / count) - 2)),
    )
    .join('; ');
}

/** Picks items evenly, the first and the last among them. */
function spread<T>(items: readonly T[], max: number): readonly T[] {
  if (items.length <= max) return items;
  if (max === 1) return items.slice(-1);
  return Array.from({ length: max }, (_, at) => items[Math.round((at * (items.length - 1)) / (max - 1))]!);
}

/** Lengths of titles and clauses that are tried, longest first. */
const lengths = [740, 500, 400, 320, 260, 200, 160, 130, 100, 80, 60, 45, 32, 20] as const;

/** Tokens of a title, whatever the room. */
const minTitle = 40;

/** A node as text: its title, and the lines below it. */
export type NodeText = { readonly title: string; readonly body: string };

/** How a node is written. */
export type NodeRoom = {
  /** Tokens of the whole text. */
  readonly room: number;
  /** Counts the text with everything around it. */
  readonly tokensOf: (text: NodeText) => number;
  readonly count: CountTokens;
  /** Put before lines that tools said, so that they cannot be mistaken for ours. */
  readonly mark: string;
};

/** Writes a node in as many tokens as it has room for; a title alone may take more. */
export function spellNode(node: OutlineNode, { room, tokensOf, count, mark }: NodeRoom): NodeText {
  if (node.children.length > 0) return spellParts(node, { room, tokensOf, count, mark });
  // The lines below the title need some of the room, above all those of the user.
  const around = tokensOf({ title: '', body: '' });
  const ofUser = node.done.filter(({ isUsers, text }) => isUsers && !node.outcome.includes(text));
  const forUser = ofUser.reduce((sum, { text }) => sum + count(`\n${mark}${text}`), 0);
  const forTitle = Math.max(around + minTitle, Math.min(room * 0.6, room - forUser));
  const fits = lengths.find((max) => tokensOf({ title: titleOf(node, max), body: '' }) <= forTitle);
  const title = titleOf(node, fits ?? lengths.at(-1)!);
  const taken: OutlineLine[] = [];
  let used = tokensOf({ title, body: '' });
  for (const line of recordLines(node)) {
    if (title.includes(line.text)) continue;
    used += count(`\n${mark}${line.text}`);
    if (used > room) break;
    taken.push(line);
  }
  const spelled = (): NodeText => {
    const inOrder = taken.toSorted((a, b) => a.at - b.at);
    return {
      title,
      body: inOrder.map((line) => (line.section === 'shown' ? mark : '- ') + line.text).join('\n'),
    };
  };
  while (taken.length > 0 && tokensOf(spelled()) > room) taken.pop();
  return spelled();
}

/** Writes a line for each child, each as long as all can be, then more of what is known of them. */
function spellParts({ children }: OutlineNode, { room, tokensOf, count }: NodeRoom): NodeText {
  const spelled = (max: number, more: readonly (readonly string[])[]): NodeText => {
    const lines = children.flatMap((child, at) => {
      const clause = clauseOf(child, max);
      const head = child.id === '' ? `- ${clause}` : `[${child.id}] ${clause}`;
      return [head, ...(more[at] ?? []).map((line) => `  ${line}`)];
    });
    return { title: '', body: lines.join('\n') };
  };
  const most = lengths.find((max) => tokensOf(spelled(max, [])) <= room);
  const max = most ?? lengths.at(-1)!;
  if (max !== lengths[0]) return spelled(max, []);
  const more: string[][] = children.map(() => []);
  let used = tokensOf(spelled(max, []));
  const lines = children.map((child) =>
    child.goal === '' && child.outcome === '' ? [] : recordLines(child).map(({ text }) => text),
  );
  for (let place = 0; lines.some(({ length }) => place < length); place++) {
    for (const [at, own] of lines.entries()) {
      const line = own[place];
      if (line === undefined) continue;
      used += count(`\n  ${line}`) + 1;
      if (used > room) return spelled(max, more);
      more[at]!.push(line);
    }
  }
  return spelled(max, more);
}

/** How much of a node its text has: counts of what was there and of what is still there. */
export type KeptParts = Readonly<
  Record<'outcomes' | 'findings' | 'artifacts', { readonly kept: number; readonly of: number }>
>;

const maxCounted = 12;

/** Measures what a text keeps of a node: outcomes, sentences that were found, and files. A ratio says nothing about that. */
export function keptIn(node: OutlineNode, text: string): KeptParts {
  const all = text.toLowerCase();
  const has = (line: string): boolean => {
    const names = line.toLowerCase().match(/[\p{L}\p{N}_]{2,}/gu) ?? [];
    const counted = names.slice(0, 40);
    return counted.length > 0 && counted.filter((name) => all.includes(name)).length >= counted.length * 0.7;
  };
  const share = (lines: readonly string[]) => ({ kept: lines.filter(has).length, of: lines.length });
  const outcomes = (node.children.length > 0 ? node.children : [node]).flatMap(({ outcome }) =>
    outcome === '' ? [] : [outcome],
  );
  const findings = node.found
    .filter(({ section, text: said }) => section === 'found' && !node.outcome.includes(said))
    .slice(0, maxCounted);
  return {
    outcomes: share(outcomes),
    findings: share(findings.map((line) => line.text)),
    artifacts: share(node.artifacts.slice(0, 100).map((path) => path.split('/').at(-1) ?? path)),
  };
}
