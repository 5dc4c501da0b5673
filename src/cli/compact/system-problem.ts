/** Errors of the system and of the unpacker in a sentence. Pure. */
import { LeporelloError } from '../../errors.ts';

/** What the system or the unpacker says; undefined for errors of another kind, and where nobody reads what we write. */
export function systemProblem(error: unknown, file: string): string | undefined {
  if (LeporelloError.isInstance(error) || !(error instanceof Error) || !('code' in error)) return undefined;
  if (error.code === 'EPIPE') return undefined;
  const isPacked = String(error.code).startsWith('Z_');
  return `${isPacked ? `${file} is damaged or ends too early` : 'reading or writing failed'}: ${error.message}`;
}
