/** Makes edits for tests. Texts leave an original, and dropped content has no id of one yet, as strategies return them. */
import type { Edit } from '../../src/conversation/edit.ts';

export const replace = (message: number, part = 0, text = 0): Edit => ({
  kind: 'replace-text',
  at: { message, part, text },
  stub: 'stub',
  memory: 'm',
});

export const dropPart = (message: number, part = 0): Edit => ({
  kind: 'drop-part',
  message,
  part,
  memory: undefined,
});

export const drop = (message: number): Edit => ({ kind: 'drop-message', message, memory: undefined });

export const insert = (before: number, text = 'stub'): Edit => ({
  kind: 'insert-message',
  before,
  role: 'user',
  text,
});
