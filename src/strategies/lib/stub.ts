/**
 * The texts that stand in for what was folded: what it was, how big, and how to get it back. Pure functions of the original, so the
 * same fold gives the same bytes. Whatever is quoted from the original is JSON-quoted and short: a stub is data, not instructions.
 */

/** What stands in place of a tool result. The call that was answered stands right before it, so nothing is said of that. */
export function resultStub(folded: {
  readonly text: string;
  readonly memory: string;
  readonly recallTool: string | undefined;
}): string {
  const { text, memory, recallTool } = folded;
  const begins = firstLine(text);
  return (
    `[Folded tool result: ${size(text)}. ` +
    `${begins === '' ? '' : `It begins ${quote(begins, 60)}. `}${way(memory, recallTool)}]`
  );
}

/** What stands in place of one long text in the arguments of a call. The whole arguments are kept; `path` leads to this text in them. */
export function argumentStub(folded: {
  readonly text: string;
  readonly memory: string;
  readonly path: string;
  readonly recallTool: string | undefined;
}): string {
  const { text, memory, path, recallTool } = folded;
  const begins = firstLine(text);
  // A long path would be refused, or cost more than the whole arguments.
  const shortPath = path.length > 200 ? undefined : path;
  return (
    `[Folded argument: ${size(text)}. ` +
    `${begins === '' ? '' : `It begins ${quote(begins, 60)}. `}${way(memory, recallTool, shortPath)}]`
  );
}

/** What stands in for whole messages that were dropped. */
export function messagesStub(folded: {
  readonly messages: number;
  /** Names of the tools that were called in them, with how often. */
  readonly calls: ReadonlyMap<string, number>;
  /** What the calls were about, already spelled as data. */
  readonly values: readonly string[];
  /** How what the model told the user in them begins, already spelled as data. */
  readonly said: readonly string[];
  readonly memory: string;
  readonly recallTool: string | undefined;
}): string {
  const calls = [...folded.calls].map(([name, times]) => `${label(name)} ×${times}`).join(', ');
  const named = folded.values.length === 0 ? '' : `Their calls named ${folded.values.join(', ')}. `;
  return (
    `[Folded ${folded.messages} earlier messages of this conversation${calls === '' ? '' : ` (calls: ${calls})`}. ` +
    named +
    (folded.said.length === 0 ? '' : `Replies in them began ${folded.said.join(', ')}. `) +
    `${way(folded.memory, folded.recallTool)}]`
  );
}

/** What stands in the middle of a text of which only the beginning and the end are left. */
export function clipStub(clipped: {
  readonly characters: number;
  readonly fromLine: number;
  readonly toLine: number;
  readonly memory: string;
  readonly recallTool: string | undefined;
}): string {
  const { characters, fromLine, toLine, memory, recallTool } = clipped;
  const lines = fromLine === toLine ? `of line ${fromLine}` : `with lines ${fromLine}-${toLine}`;
  return `[Folded ${characters} characters ${lines} of this text. ${way(memory, recallTool)}]`;
}

/** Stands at the end of a result of which something was left out when it came. */
export function shrunkNote(shrunk: {
  /** Of the whole. */
  readonly characters: number;
  readonly memory: string;
  readonly recallTool: string | undefined;
}): string {
  const { characters, memory, recallTool } = shrunk;
  return `[Shortened from ${characters} characters. ${way(memory, recallTool)}]`;
}

/** Stands at the end of a result whose items were made smaller. */
export function itemsNote(shortened: {
  readonly items: number;
  readonly of: number;
  readonly memory: string;
  readonly recallTool: string | undefined;
  /** Whether they are told in other words than their own. */
  readonly isReworded?: boolean;
}): string {
  const { items, of, memory, recallTool, isReworded = false } = shortened;
  const which = items === of ? `All ${of} items` : `${items} of ${of} items, the least relevant,`;
  const how = isReworded
    ? 'told in fewer words, or shortened where it says […]'
    : 'shortened where it says […]';
  return `[${which} ${how}. ${way(memory, recallTool)}]`;
}

function way(memory: string, recallTool: string | undefined, path?: string): string {
  return recallTool === undefined
    ? `It is kept as ${memory}.`
    : `To read it again call ${recallTool} with ${JSON.stringify({ id: memory, path })}.`;
}

/** Names of tools are the client's or the model's: what does not look like one is quoted. */
function label(name: string): string {
  return /^[\w.:/-]{1,64}$/.test(name) ? name : quote(name, 64);
}

function size(text: string): string {
  const lines = text.split('\n').length;
  return `${text.length} characters${lines > 1 ? `, ${lines} lines` : ''}`;
}

function firstLine(text: string): string {
  return text.trimStart().split('\n', 1)[0]!.trim();
}

/** A JSON string of at most `most` UTF-16 units of the text, never half a character. */
export function quote(text: string, most: number): string {
  return JSON.stringify(
    text.length > most
      ? `${text
          .slice(0, most)
          .toWellFormed()
          .replace(/\uFFFD$/, '')}…`
      : text,
  );
}
