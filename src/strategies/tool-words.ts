/** The words in the name of a tool: `read_file`, `ReadFile`, `fs.readFile` and `mcp__files__read` all hold the word read. */
export function wordsOf(name: string): readonly string[] {
  return name
    .slice(0, 200)
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/);
}

/** Whether a tool answers with what it found, which comes best first. */
export function isSearch(name: string): boolean {
  return wordsOf(name).some((word) => searchWords.has(word));
}

const searchWords = new Set(['search', 'find', 'query', 'retrieve', 'lookup', 'browse', 'recommend']);
