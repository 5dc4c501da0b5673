/** What to do when the gateway cannot listen where it should. Pure. */
import { LeporelloError } from '../../errors.ts';

type Place = { readonly host: string; readonly port: number };

/** The system's error as a sentence with a way out; errors of another kind come back as they are. */
export function listenProblem(cause: unknown, { host, port }: Place): unknown {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  const sentence = sentenceFor(code, host, port);
  return sentence === undefined ? cause : new LeporelloError('bad-config', sentence, { cause });
}

function sentenceFor(code: unknown, host: string, port: number): string | undefined {
  const another = port < 65_535 ? port + 1 : port - 1;
  switch (code) {
    case 'EADDRINUSE':
      return (
        `Port ${port} on ${host} is taken: another program, perhaps another Leporello, listens there. ` +
        `Stop it, or take another port: leporello serve --port ${another} (0 takes any free one).`
      );
    case 'EACCES':
      return `This user may not listen on port ${port} of ${host}: take one above 1023, as in --port 8787.`;
    case 'EADDRNOTAVAIL':
      return `${host} is no address of this machine: take 127.0.0.1, or 0.0.0.0 for all of them (--host).`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `The host ${host} is not known: give an address of this machine, such as 127.0.0.1 (--host).`;
    default:
      return undefined;
  }
}
