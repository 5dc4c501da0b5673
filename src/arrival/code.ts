/** Tells source code from other texts. Pure; reads at most 24,000 UTF-16 units. */

/** True for source code in most programming languages, by how its lines begin and end. Reads the start, the middle and the end. */
export function isCode(text: string): boolean {
  const piece = 8_000;
  const isShort = text.length <= 3 * piece;
  const starts = isShort ? [0] : [0, (text.length - piece) >> 1, text.length - piece];
  let lines = 0;
  let like = 0;
  for (const from of starts) {
    const last = isShort ? text.length : from + piece;
    for (let start = from; start < last; ) {
      const newline = text.indexOf('\n', start);
      const end = newline < 0 || newline > last ? last : newline;
      const line = text.slice(start, Math.min(end, start + maxSampled));
      start = end + 1;
      if (line.trim() === '') continue;
      lines++;
      if ((mayEndCode(line) && codeEnd.test(line)) || codeStart.test(line)) like++;
    }
  }
  return like >= 3 && like / lines > 0.25;
}

/** UTF-16 units of a line that are read. */
const maxSampled = 400;

/** False only for lines that `codeEnd` does not match: it is slow for lines of words. */
function mayEndCode(line: string): boolean {
  return ';{}([,>/)'.includes(line.charAt(line.length - 1)) || line.includes('//') || line.includes('= ');
}

const codeEnd =
  /[;{}](?:\s*\/\/.*)?$|[([],?$|[})],$|=>$|\*\/$|<\/\w+>$|^\s*<\/?\w+[^>]*>$|^\s+[\w.$]+\(.*\)$|^\s*[\w.$[\]'"]+ (?:[-+*/|&:]?=) \S/;
const codeStart =
  /^\s*(?:import|from|export|package|use|using|#include|#define|namespace|const|let|var|val|func|fn|def|class|struct|enum|interface|type|impl|public|private|protected|static|async|return|if|else|elif|for|while|switch|case|try|except|catch|throw|raise|with|end|begin|local|require|@\w+)\b|^\s*(?:\/\/|\/\*|\*\s|<!--)/;
