/**
 * Opens a network namespace in which every host name is 127.0.0.1: clients believe that they talk to their vendor, and nothing can leave
 * the machine. Linux only: it needs `unshare`, `ip`, `mount` and `openssl`, and root or user namespaces.
 */
import { execFileSync, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecureContext, type SecureContext } from 'node:tls';

const marker = 'LEPORELLO_PRIVATE_NETWORK';

export function isPrivate(): boolean {
  return process.env[marker] === '1';
}

/** Runs this program again in new namespaces; resolves to its exit code. */
export function runInPrivate(args: readonly string[]): Promise<number | null> {
  const isRoot = process.getuid?.() === 0;
  const options = ['--net', '--mount', ...(isRoot ? [] : ['--map-root-user'])];
  const program = [process.execPath, process.argv[1]!, ...args];
  const child = spawn('unshare', [...options, '--', ...program], {
    env: { ...process.env, [marker]: '1' },
    stdio: 'inherit',
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
}

export type PrivateNetwork = Disposable & {
  /** File with the certificate of the authority that signs all hosts' certificates. */
  readonly authority: string;
  /** Returns the certificate of a host. */
  readonly certificateOf: (host: string) => SecureContext;
  /** Returns the names looked up since the last call. */
  readonly takeLookups: () => readonly string[];
};

/** Opens the network; call it only if `isPrivate`. `folder` gets keys and certificates. */
export async function openPrivateNetwork(folder: string): Promise<PrivateNetwork> {
  if (!isPrivate()) throw new Error('This process is not in a private network.');
  execFileSync('ip', ['link', 'set', 'lo', 'up']);
  const resolver = join(folder, 'resolv.conf');
  writeFileSync(resolver, 'nameserver 127.0.0.1\n');
  execFileSync('mount', ['--bind', resolver, '/etc/resolv.conf']);
  const certificates = makeCertificates(folder);
  // Some programs read only the system's list of authorities, whatever their environment says.
  const system = '/etc/ssl/certs/ca-certificates.crt';
  if (existsSync(system)) execFileSync('mount', ['--bind', certificates.authority, system]);
  const lookups = new Set<string>();
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const { name, answer } = answerOf(query);
    lookups.add(name);
    socket.send(answer, from.port, from.address);
  });
  await new Promise<void>((resolve) => {
    socket.bind(53, '127.0.0.1', resolve);
  });
  return {
    ...certificates,
    takeLookups: () => {
      const taken = [...lookups].toSorted();
      lookups.clear();
      return taken;
    },
    [Symbol.dispose]: () => socket.close(),
  };
}

const openssl = (...args: readonly string[]) => execFileSync('openssl', args, { stdio: 'pipe' });

function makeCertificates(folder: string): Pick<PrivateNetwork, 'authority' | 'certificateOf'> {
  const file = (name: string) => join(folder, name);
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl(
    'req',
    '-x509',
    ...key,
    '-keyout',
    file('ca.key'),
    '-out',
    file('ca.pem'),
    '-days',
    '2',
    '-subj',
    '/CN=Leporello tests',
  );
  const known = new Map<string, SecureContext>();
  return {
    authority: file('ca.pem'),
    certificateOf(host) {
      const found = known.get(host);
      if (found) return found;
      const signed = ['-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-days', '2'];
      const names = ['-subj', `/CN=${host}`.slice(0, 64), '-addext', `subjectAltName=DNS:${host}`];
      const usage = [
        '-addext',
        'basicConstraints=critical,CA:FALSE',
        '-addext',
        'extendedKeyUsage=serverAuth',
      ];
      openssl(
        'req',
        '-x509',
        ...key,
        ...signed,
        ...names,
        ...usage,
        '-keyout',
        file(`${host}.key`),
        '-out',
        file(`${host}.pem`),
      );
      const context = createSecureContext({
        key: readFileSync(file(`${host}.key`)),
        cert: readFileSync(file(`${host}.pem`)),
      });
      known.set(host, context);
      return context;
    },
  };
}

/** Answers a query for an IPv4 address with 127.0.0.1, and other queries with no records. */
function answerOf(query: Buffer): { readonly name: string; readonly answer: Buffer } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const question = query.subarray(12, at + 5);
  const isAddress = query.readUInt16BE(at + 1) === 1;
  const head = Buffer.alloc(12);
  query.copy(head, 0, 0, 2);
  // These flags mean: a reply, recursion available, no error.
  head.writeUInt16BE(0x81_80, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(isAddress ? 1 : 0, 6);
  // The record has the question's name, type A, class IN, a lifetime of 60 s and four bytes.
  const address = [0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1];
  return {
    name: labels.join('.').toLowerCase(),
    answer: Buffer.concat([head, question, Buffer.from(isAddress ? address : [])]),
  };
}
