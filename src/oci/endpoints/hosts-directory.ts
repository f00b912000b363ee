import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { codeOf } from '../../kit/errors.ts';
import { sha256 } from '../../kit/json.ts';
import { type ClientCertificate, readAuthorities, type Trust } from '../http/trust.ts';
import { urlHost } from './endpoint.ts';
import { type HostEntry, type HostsConfig, type HostsFile, parseHostsToml, type TlsFiles } from './hosts-toml.ts';
import { createFiles, type FileProblem, oneAfterTheOther, readText, reason, reportOnce } from './operator-file.ts';

const DEFAULT = '_default';

type LoadedHosts = {
  readonly name: string;
  readonly entries: HostsConfig['entries'];
  readonly ignored: readonly FileProblem[];
};

/** Reads a file during one reload. */
type HostsReader = (file: string) => Promise<string>;

/**
 * Reads containerd's directory of registries: a folder for each host[:port], `_default` for all others, and in each a
 * `hosts.toml` or certificates with the names that Docker uses. Empty until the first reload; with an empty `directory`
 * it stays empty.
 *
 * @param onIgnored gets what a reload ignores in a file, once until it changes
 */
export function createHostsDirectory(directory: string, onIgnored: (problem: FileProblem) => void = () => undefined) {
  const reportIgnored = reportOnce(onIgnored);
  /** By the host as image names write it, in lower case, or the name of the folder. */
  let folders: ReadonlyMap<string, LoadedHosts> = new Map();
  let named: ReadonlySet<string> = new Set();
  let paths = new Set(directory === '' ? [] : [directory]);
  const files = createFiles(directory, foldersIn, (folder) => loadFolder(folder, readSeen));

  async function foldersIn(): Promise<readonly string[]> {
    // Mounted ConfigMaps and Secrets are swapped by `..data` and similar names; the folders are links into it.
    const names = (await readdir(directory)).filter((name) => !name.startsWith('..')).sort();
    const found = names.map((name) => join(directory, name));
    const isFolder = await Promise.all(found.map(isDirectory));
    const list = found.filter((_, index) => isFolder[index]);
    paths = new Set([directory, ...list]);
    return list;
  }

  function readSeen(file: string): Promise<string> {
    paths.add(file);
    return readText(file);
  }

  async function load(): Promise<readonly FileProblem[]> {
    const problems = await files.reload();
    const loaded = [...files.values().values()];
    reportIgnored(loaded.flatMap(({ ignored }) => ignored));
    // A folder whose name is in lower case already wins over others.
    const usual = loaded.filter(({ name }) => name === DEFAULT || name.toLowerCase() !== DEFAULT);
    const lower = usual.filter(({ name }) => name === name.toLowerCase());
    folders = new Map([...usual, ...lower].map((each) => [each.name.toLowerCase(), each]));
    named = new Set(
      loaded.flatMap(({ name, entries }) => [
        // The registry that the folder is for; `_default` is not a host.
        name.replace(/_(\d+)_$/, ':$1').toLowerCase(),
        ...entries.flatMap(({ address }) => (address === undefined ? [] : [urlHost(address)])),
      ]),
    );
    return problems;
  }

  return {
    /** Returns what the last valid files say of a registry; undefined if no folder applies to it. */
    hosts(registry: string): HostsConfig | undefined {
      const [loaded] = namesOf(registry).flatMap((name) => folders.get(name) ?? []);
      return loaded && { entries: loaded.entries, isDefault: loaded.name === DEFAULT };
    },
    /** host[:port] of the folders, and of the hosts that their files name. */
    namedHosts: (): ReadonlySet<string> => named,
    /** Reads everything again. A folder that is invalid now keeps its previous content. */
    reload: oneAfterTheOther(load),
    /** Everything that was read or looked for: the directory, its folders and files, and certificates elsewhere. */
    get paths(): readonly string[] {
      return [...paths];
    },
  };
}

/** Returns the folders of a registry in containerd's order; `host_5000_` is for file systems that allow no colons. */
function namesOf(registry: string): string[] {
  const colon = registry.lastIndexOf(':');
  const escaped = colon > 0 ? [`${registry.slice(0, colon)}_${registry.slice(colon + 1)}_`] : [];
  return [...escaped, registry, DEFAULT];
}

async function loadFolder(folder: string, read: HostsReader): Promise<LoadedHosts> {
  const file = join(folder, 'hosts.toml');
  const { entries, warnings } = await explained('hosts.toml', async (): Promise<HostsFile> => {
    const text = await read(file).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return '';
      throw error;
    });
    return text === ''
      ? { entries: [await readDockerStyle(folder)], warnings: [] }
      : parseHostsToml(text, { directory: folder });
  });
  return {
    name: basename(folder),
    ignored: warnings.map((problem) => ({ file, problem })),
    entries: await Promise.all(entries.map((entry) => loadEntry(entry, file, read))),
  };
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
  read: HostsReader,
): Promise<HostEntry<Trust>> {
  if (tls === undefined) return entry;
  const { verify, plain } = tls;
  const authorities = await Promise.all(
    tls.authorities.map((file) => explained(`ca ${file}`, async () => readAuthorities(await read(file)))),
  );
  const clients = await Promise.all(
    tls.clients.map(({ certificate, key }) =>
      explained(`client ${certificate}`, async () =>
        checkPair({ certificate: await read(certificate), key: await read(key) }),
      ),
    ),
  );
  const trust = { verify, plain, authorities: authorities.flat(), clients };
  return { ...entry, tls: { id: `hosts.toml ${sha256(JSON.stringify(trust))}`, ...trust, file: from } };
}

/** OpenSSL's own message may quote the file. */
function checkPair(pair: ClientCertificate): ClientCertificate {
  try {
    createSecureContext({ cert: pair.certificate, key: pair.key });
    return pair;
  } catch {
    throw new Error('a PEM certificate and its unencrypted key are expected, in one file or two');
  }
}

/** False also for a dangling link, which exists for a moment while a mount is swapped. */
function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    (error: unknown) => codeOf(error) !== 'ENOENT',
  );
}

function explained<T>(at: string, read: () => Promise<T>): Promise<T> {
  return read().catch((error: unknown) => {
    throw new Error(`${at}: ${reason(error)}`);
  });
}
