/**
 * Finds what generateContent refuses in calls and responses: each turn of calls is answered in the next turn, with one response
 * for each call.
 */
import { fieldOf, objectAt, textAt } from './gemini-fields.ts';
import type { JsonObject } from './script.ts';

export type Turn = { readonly isModel: boolean; readonly parts: readonly JsonObject[] };

export function pairingRefusal(turns: readonly Turn[]): string | undefined {
  for (const [index, turn] of turns.entries()) {
    const calls = inside(turn, 'functionCall', true);
    const next = turns[index + 1];
    const answers = inside(next, 'functionResponse', false);
    if (answers.length > 0 && calls.length === 0)
      return 'Please ensure that function response turn comes immediately after a function call turn.';
    if (answers.length !== calls.length)
      return 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.';
    const refused = mismatch(calls, answers);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

type Named = { readonly id: string | undefined; readonly name: string | undefined };

function inside(turn: Turn | undefined, field: string, isModel: boolean): readonly Named[] {
  if (turn?.isModel !== isModel) return [];
  return turn.parts
    .filter((part) => fieldOf(part, field) !== undefined)
    .map((part) => ({
      id: textAt(objectAt(part, field), 'id'),
      name: textAt(objectAt(part, field), 'name'),
    }));
}

/** Pairs by id if there is one, else by name; without any ids, in order. */
function mismatch(calls: readonly Named[], answers: readonly Named[]): string | undefined {
  const open = [...calls];
  for (const answer of answers) {
    const at = open.findIndex(
      (call) =>
        (answer.id !== undefined && call.id === answer.id) ||
        (answer.id === undefined && call.name === answer.name),
    );
    const [call] = at < 0 ? [] : open.splice(at, 1);
    if (!call || call.name !== answer.name)
      return `The function response \`${answer.name}\`${answer.id === undefined ? '' : ` with id \`${answer.id}\``} does not match any function call of the function call turn.`;
  }
  const hasIds = [...calls, ...answers].some(({ id }) => id !== undefined);
  const isOrdered = calls.every(({ name }, n) => name === answers[n]?.name);
  return hasIds || isOrdered
    ? undefined
    : 'Function responses without ids must be in the order of their function calls.';
}
