/**
 * Calls of the form before tools (`function_call`, answered by a message of role `function`). They have no ids: a message holds one call
 * at most, and the result behind it names the function. The ids here are ours, and stand in no body.
 */
const mark = '#function ';

export function functionId(name: string): string {
  return `${mark}${name}`;
}

/** True for the id of a call that has none. */
export function isFunctionId(id: string): boolean {
  return id.startsWith(mark);
}
