import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { codeOf } from '../../kit/errors.ts';
import { readAuthorities, type Trust } from '../http/trust.ts';
import { urlHost } from './endpoint.ts';
import { type HostEntry, type HostsConfig, type HostsFile, parseHostsToml, type TlsFiles } from './hosts-toml.ts';
import { type FileProblem, oneAfterTheOther, readText, reason, reportOnce } from './operator-file.ts';

export type HostsDirectory = ReturnType<typeof createHostsDirectory>;

const DEFAULT = '_default';

type Loaded = { readonly entries: HostsConfig['entries']; readonly file: string; readonly warnings: readonly string[] };

/** Reads a file during one reload; undefined if it does not exist. */
type Reader = (file: string) => Promise<string | undefined>;

/**
 * Reads containerd's directory of registries: a folder for each host[:port], `_default` for all others, and in each a
 * `hosts.toml` or certificates with the names that Docker uses. Empty until the first reload; with an empty `directory`
 * it stays empty.
 *
 * @param onIgnored gets what a reload ignores in a file, once until it changes
 */
export function createHostsDirectory(options: {
  readonly directory: string;
  readonly onIgnored?: (problem: FileProblem) => void;
}) {
  const { directory, onIgnored = () => undefined } = options;
  const reportIgnored = reportOnce(onIgnored);
  let folders: ReadonlyMap<string, Loaded> = new Map();
  /** The names of the folders by the host as image names write it, in lower case. */
  let spelled: ReadonlyMap<string, string> = new Map();
  let named: ReadonlySet<string> = new Set();
  let paths: readonly string[] = directory === '' ? [] : [directory];

  async function load(): Promise<readonly FileProblem[]> {
    if (directory === '') return [];
    const seen = new Set([directory]);
    const read: Reader = (file) => {
      seen.add(file);
      return readText(file);
    };
    const problems: FileProblem[] = [];
    const next = new Map<string, Loaded>();
    let names: string[];
    try {
      names = (await readdir(directory)).sort();
    } catch (error) {
      return [{ file: directory, problem: reason(error) }];
    }
    // Mounted ConfigMaps and Secrets are swapped by `..data` and similar names; the folders are links into it.
    for (const name of names.filter((each) => !each.startsWith('..'))) {
      const folder = join(directory, name);
      const before = folders.get(name);
      try {
        if (!(await isDirectory(folder))) continue;
        seen.add(folder);
        next.set(name, await loadFolder(folder, read));
      } catch (error) {
        problems.push({ file: folder, problem: reason(error) });
        if (before !== undefined) next.set(name, before);
      }
    }
    reportIgnored([...next.values()].flatMap(({ file, warnings }) => warnings.map((problem) => ({ file, problem }))));
    folders = next;
    // A folder whose name is in lower case already wins over others.
    const folderNames = [...next.keys()].filter((name) => name === DEFAULT || name.toLowerCase() !== DEFAULT);
    spelled = new Map([...folderNames, ...folderNames.filter(isLower)].map((name) => [name.toLowerCase(), name]));
    named = new Set([...next].flatMap(([name, loaded]) => [hostOf(name).toLowerCase(), ...hostsIn(loaded)]));
    paths = [...seen];
    return problems;
  }

  return {
    /** Returns what the last valid files say of a registry; undefined if no folder applies to it. */
    hosts(registry: string): HostsConfig | undefined {
      const name = namesOf(registry).flatMap((each) => spelled.get(each) ?? [])[0];
      const loaded = name === undefined ? undefined : folders.get(name);
      return loaded === undefined ? undefined : { entries: loaded.entries, isDefault: name === DEFAULT };
    },
    /** host[:port] of the folders, and of the hosts that their files name. */
    namedHosts: (): ReadonlySet<string> => named,
    /** Reads everything again. A folder that is invalid now keeps its previous content. */
    reload: oneAfterTheOther(load),
    /** Everything that was read or looked for: the directory, its folders and files, and certificates elsewhere. */
    get paths() {
      return paths;
    },
  };
}

/** Returns the folders of a registry in containerd's order; `host_5000_` is for file systems that allow no colons. */
function namesOf(registry: string): string[] {
  const colon = registry.lastIndexOf(':');
  const escaped = colon > 0 ? [`${registry.slice(0, colon)}_${registry.slice(colon + 1)}_`] : [];
  return [...escaped, registry, DEFAULT];
}

/** Returns the registry that a folder is for; `_default` is not a host. */
function hostOf(name: string): string {
  return name.replace(/_(\d+)_$/, ':$1');
}

function isLower(name: string): boolean {
  return name === name.toLowerCase();
}

function hostsIn({ entries }: Loaded): string[] {
  return entries.flatMap(({ address }) => (address === undefined ? [] : [urlHost(address)]));
}

async function loadFolder(folder: string, read: Reader): Promise<Loaded> {
  const file = join(folder, 'hosts.toml');
  const text = (await explained('hosts.toml', () => read(file))) ?? '';
  const { entries, warnings } =
    text === ''
      ? { entries: [await readDockerStyle(folder)], warnings: [] }
      : await explained('hosts.toml', async (): Promise<HostsFile> => parseHostsToml(text, { directory: folder }));
  return { file, warnings, entries: await Promise.all(entries.map((entry) => loadEntry(entry, file, read))) };
}

/** `*.crt` are authorities; `*.cert` and `*.key` are client certificates for the registry itself. */
async function readDockerStyle(folder: string): Promise<HostEntry<TlsFiles>> {
  const names = (await readdir(folder)).filter((name) => !name.startsWith('..')).sort();
  const ending = (end: string): string[] => names.filter((name) => name.endsWith(end));
  const authorities = ending('.crt').map((name) => join(folder, name));
  const clients = ending('.cert').map((name) => {
    const key = name.replace(/\.cert$/, '.key');
    return { certificate: join(folder, name), key: join(folder, names.includes(key) ? key : name) };
  });
  const isEmpty = authorities.length === 0 && clients.length === 0;
  const tls = isEmpty ? {} : { tls: { verify: true, plain: false, authorities, clients } };
  return { resolvesTags: true, headers: {}, ...tls };
}

async function loadEntry(
  { tls, ...entry }: HostEntry<TlsFiles>,
  from: string,
  read: Reader,
): Promise<HostEntry<Trust>> {
  if (tls === undefined) return entry;
  const { verify, plain } = tls;
  const authorities: string[] = [];
  for (const file of tls.authorities) {
    authorities.push(...(await explained(`ca ${file}`, async () => readAuthorities(await needed(read, file)))));
  }
  const clients: { certificate: string; key: string }[] = [];
  for (const { certificate, key } of tls.clients) {
    clients.push(
      await explained(`client ${certificate}`, async () => {
        const pair = { certificate: await needed(read, certificate), key: await needed(read, key) };
        checkPair(pair);
        return pair;
      }),
    );
  }
  const parts = JSON.stringify([verify, plain, authorities, clients]);
  const id = `hosts.toml ${createHash('sha256').update(parts).digest('hex')}`;
  return { ...entry, tls: { id, verify, plain, authorities, clients, file: from } };
}

async function needed(read: Reader, file: string): Promise<string> {
  const text = await read(file);
  if (text === undefined) throw new Error('does not exist');
  return text;
}

/** OpenSSL's own message may quote the file. */
function checkPair({ certificate, key }: { certificate: string; key: string }): void {
  try {
    createSecureContext({ cert: certificate, key });
  } catch {
    throw new Error('a PEM certificate and its unencrypted key are expected, in one file or two');
  }
}

/** False also for a dangling link, which exists for a moment while a mount is swapped. */
async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

function explained<T>(at: string, read: () => Promise<T>): Promise<T> {
  return read().catch((error: unknown) => {
    throw new Error(`${at}: ${reason(error)}`);
  });
}
