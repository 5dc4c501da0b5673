/**
 * The texts that replace folded content: what it was, how big it is, and how to read it again. Pure functions of the original, so that the same
 * fold gives the same bytes. Quotes from the original are JSON-quoted and short: a stub is data, not instructions.
 */

/** Replaces a tool result. Its call is right before it, so the stub does not describe the call. */
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

/** Replaces one long text in the arguments of a call. The original is the whole arguments; `path` leads to this text in them. */
export function argumentStub(folded: {
  readonly text: string;
  readonly memory: string;
  readonly path: string;
  readonly recallTool: string | undefined;
}): string {
  const { text, memory, path, recallTool } = folded;
  const begins = firstLine(text);
  // A long path would be rejected, or cost more than the whole arguments.
  const shortPath = path.length > 200 ? undefined : path;
  return (
    `[Folded argument: ${size(text)}. ` +
    `${begins === '' ? '' : `It begins ${quote(begins, 60)}. `}${way(memory, recallTool, shortPath)}]`
  );
}

/** Replaces whole messages that were dropped. */
export function messagesStub(folded: {
  readonly messages: number;
  /** Names of the called tools, with their number of calls. */
  readonly calls: ReadonlyMap<string, number>;
  /** Values in the calls, already quoted. */
  readonly values: readonly string[];
  /** Beginnings of the model's replies to the user, already quoted. */
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

/** Replaces the middle of a text. */
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

/** Ends a result that was shortened on arrival. */
export function shrunkNote(shrunk: {
  /** Length of the whole result. */
  readonly characters: number;
  readonly memory: string;
  readonly recallTool: string | undefined;
}): string {
  const { characters, memory, recallTool } = shrunk;
  return `[Shortened from ${characters} characters. ${way(memory, recallTool)}]`;
}

/** Ends a result whose items were shortened. */
export function itemsNote(shortened: {
  readonly items: number;
  readonly of: number;
  readonly memory: string;
  readonly recallTool: string | undefined;
  /** True if the items were rewritten in other words. */
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

/** Writes the name of a tool. Clients and models choose names, so anything unusual is quoted. */
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

/** Quotes at most `max` UTF-16 units of a text as a JSON string, never cutting a character. */
export function quote(text: string, max: number): string {
  return JSON.stringify(
    text.length > max
      ? `${text
          .slice(0, max)
          .toWellFormed()
          .replace(/\uFFFD$/, '')}…`
      : text,
  );
}
