/**
 * Is what lies in node_modules what the lockfile says? Compares two parsed lockfiles: the project's and the one that npm
 * leaves in node_modules when an install is complete. Pure.
 */

/**
 * @typedef {object} Entry  one package of a lockfile
 * @property {string} [version]
 * @property {string} [integrity]
 * @property {boolean} [link]
 * @property {boolean} [optional]
 * @property {boolean} [devOptional]
 * @property {boolean} [peer]
 * @property {boolean} [hasInstallScript]
 * @property {readonly string[]} [os]
 * @property {readonly string[]} [cpu]
 * @property {readonly string[]} [libc]
 * @property {Readonly<Record<string, string>>} [optionalDependencies]
 *
 * @typedef {{ readonly packages: Readonly<Record<string, Entry>> }} Lock
 * @typedef {{ readonly os: string, readonly cpu: string, readonly libc: string | undefined }} Machine
 */

/**
 * The paths of packages that are missing or of another version. Optional packages count only when they are made for this
 * machine: an npm run by an old Node leaves those out without a word.
 * @param {Lock} lock
 * @param {Lock} installed
 * @param {Machine} machine
 */
export function notInstalled(lock, installed, machine) {
  return Object.entries(lock.packages).flatMap(([path, wanted]) => {
    if (!path.includes('node_modules/') || wanted.link === true) return [];
    const found = installed.packages[path];
    if (found === undefined) return isNeeded(wanted, machine) ? [path] : [];
    return found.version === wanted.version && found.integrity === wanted.integrity ? [] : [path];
  });
}

/**
 * Optional packages of the lockfile that it names as dependencies but does not list: `npm ci` refuses such a lockfile.
 * @param {Lock} lock
 */
export function notListed(lock) {
  return Object.entries(lock.packages).flatMap(([path, entry]) =>
    Object.keys(entry.optionalDependencies ?? {}).filter(
      (name) =>
        !(`${path}/node_modules/${name}` in lock.packages) && !(`node_modules/${name}` in lock.packages),
    ),
  );
}

/**
 * What decides whether a package is made for this machine.
 * @returns {Machine}
 */
export function thisMachine() {
  return { os: process.platform, cpu: process.arch, libc: libc() };
}

/**
 * @param {Entry} entry
 * @param {Machine} machine
 */
function isNeeded(entry, machine) {
  const keys = /** @type {const} */ (['os', 'cpu', 'libc']);
  const bound = keys.some((key) => entry[key] !== undefined);
  const optional = entry.optional === true || entry.devOptional === true || entry.peer === true;
  if (!bound) return !optional;
  return keys.every((key) => allows(entry[key], machine[key]));
}

/**
 * npm's rule: any of the named values, and none of those with an exclamation mark.
 * @param {readonly string[] | undefined} names
 * @param {string | undefined} value
 */
function allows(names, value) {
  if (names === undefined) return true;
  if (names.includes(`!${value}`)) return false;
  const wanted = names.filter((name) => !name.startsWith('!'));
  return wanted.length === 0 || wanted.some((name) => name === value);
}

function libc() {
  if (process.platform !== 'linux') return undefined;
  // Without this a report looks up the name of every open connection. Node's types lag behind.
  Object.assign(process.report, { excludeNetwork: true });
  const report = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (process.report.getReport());
  return report.header.glibcVersionRuntime === undefined ? 'musl' : 'glibc';
}
