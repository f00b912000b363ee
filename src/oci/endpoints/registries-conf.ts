import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '../../kit/errors.ts';
import { printableAscii } from '../../kit/printable.ts';
import { ImageError } from '../errors.ts';
import { parseReference, type Reference, tryReference } from '../reference.ts';
import { parseEndpointAddress } from './endpoint.ts';
import {
  createFiles,
  explained,
  type FileProblem,
  isTable,
  oneAfterTheOther,
  parseToml,
  readFlag,
  readTable,
  readText,
  reportOnce,
  type Table,
  wrong,
} from './operator-file.ts';

/** A place that a `registries.conf` names: host[:port], maybe with the beginning of a repository; empty: as in the image. */
type RegistryPlace = { readonly location: string; readonly insecure: boolean };

/** A `[[registry]]` table. */
type ConfRegistry = RegistryPlace & {
  /** `example.com/foo`, or `*.example.com` */
  readonly prefix: string;
  readonly blocked: boolean;
  readonly mirrors: readonly (RegistryPlace & { readonly only?: 'tags' | 'digests' })[];
  readonly file: string;
};

/** Where CRI-O requests an image. */
export type PullSource = {
  /** The image under the name that it has there. */
  readonly image: Reference;
  /** As the file has it; empty: the image's own registry. */
  readonly location: string;
  readonly insecure: boolean;
  /** Whether the file names the host, and not only the image. */
  readonly isNamed: boolean;
  /** Why nothing may be requested there. */
  readonly refusal?: string;
};

const FIELDS = ['prefix', 'location', 'insecure', 'blocked', 'mirror-by-digest-only', 'pull-from-mirror', 'mirror'];
const MIRROR_FIELDS = ['location', 'insecure', 'pull-from-mirror'];
/** About short names, which Kubernetes never asks for: an image without a registry is one of docker.io there. */
const IGNORED = ['unqualified-search-registries', 'short-name-mode', 'aliases', 'credential-helpers'];
const ONLY = new Map([
  ['all', undefined],
  ['digest-only', 'digests'],
  ['tag-only', 'tags'],
] as const);

/**
 * Parses a `registries.conf`, version 2, or one of its drop-in files (containers-registries.conf(5)).
 *
 * @throws Error naming the key or the line, and the problem
 */
export function parseRegistriesConf(text: string, file: string): { registries: ConfRegistry[]; warnings: string[] } {
  const warnings: string[] = [];
  const { at, fields } = readTable(parseToml(text), '', ['registry', 'registries', ...IGNORED], warnings);
  if (fields.has('registries'))
    throw new Error('registries: the file must be in version 2 of the format, [[registry]]');
  const registries: ConfRegistry[] = [];
  const settings = new Map<string, string>();
  for (const table of tables(at, 'registry', fields.get('registry'), FIELDS, warnings)) {
    const registry = readRegistry(table, file, warnings);
    const { prefix, location, insecure, blocked } = registry;
    const of = location || prefix;
    const setting = `${insecure} ${blocked}`;
    if ((settings.get(of) ?? setting) !== setting) {
      throw new Error(
        `${table.at.slice(0, -1)}: "${printableAscii(of, 120)}" has another insecure or blocked in another table`,
      );
    }
    settings.set(of, setting);
    // The first table of a prefix is the one that counts.
    if (!registries.some((other) => other.prefix === prefix)) registries.push(registry);
  }
  return { registries, warnings };
}

function readRegistry(table: Table, file: string, warnings: string[]): ConfRegistry {
  const location = readPlace(table, 'location');
  const prefix = readPlace(table, 'prefix', '*.') || location;
  if (prefix === '') throw new Error(`${table.at}prefix: expected prefix or location, got neither`);
  if (location === '' && !prefix.startsWith('*.')) {
    throw new Error(`${table.at}location: expected one, because prefix does not begin with "*."`);
  }
  const byDigest = readFlag(table, 'mirror-by-digest-only') ?? false;
  if (table.fields.has('pull-from-mirror')) throw new Error(`${table.at}pull-from-mirror: is a key of mirrors only`);
  const mirrors = tables(table.at, 'mirror', table.fields.get('mirror'), MIRROR_FIELDS, warnings).map((mirror) => {
    const at = readPlace(mirror, 'location');
    if (at === '') throw new Error(`${mirror.at}location: expected a host, got none`);
    const pull = mirror.fields.get('pull-from-mirror') ?? '';
    if (byDigest && pull !== '') throw new Error(`${mirror.at}pull-from-mirror: excludes mirror-by-digest-only`);
    const found = [...ONLY].find(([name]) => name === (pull || 'all'));
    if (found === undefined) throw wrong(`${mirror.at}pull-from-mirror`, pull, 'all, digest-only or tag-only');
    const only = byDigest ? 'digests' : found[1];
    return { location: at, insecure: readFlag(mirror, 'insecure') ?? false, ...(only && { only }) };
  });
  const [insecure, blocked] = [readFlag(table, 'insecure') ?? false, readFlag(table, 'blocked') ?? false];
  return { prefix, location, insecure, blocked, mirrors, file };
}

function tables(at: string, name: string, value: unknown = [], known: readonly string[], warnings: string[]): Table[] {
  if (!Array.isArray(value)) throw wrong(`${at}${name}`, value, `tables such as [[${name}]]`);
  return value.map((each: unknown, index) => {
    const own = `${at}${name}[${index}]`;
    if (!isTable(each)) throw wrong(own, each, 'a table');
    return readTable(each, `${own}.`, known, warnings);
  });
}

/** Returns a name without the slashes at its end, its host in lower case, as in parsed references. */
function readPlace({ at, fields }: Table, field: string, wildcard = ''): string {
  const value = fields.get(field) ?? '';
  if (typeof value !== 'string') throw wrong(`${at}${field}`, value, 'a text');
  let end = value.length;
  while (value.charAt(end - 1) === '/') end -= 1;
  const text = value.slice(0, end);
  if (text === '') return '';
  const isWild = wildcard !== '' && text.startsWith(wildcard);
  const name = isWild ? text.slice(wildcard.length) : text;
  if (isWild && /[/@:]/.test(name)) throw new Error(`${at}${field}: a wildcard is only possible as in *.example.com`);
  if (/^https?:\/\//.test(name)) throw new Error(`${at}${field}: expected no scheme`);
  explained(`${at}${field}`, () => parseEndpointAddress(name.split('/', 1)[0] ?? ''));
  return text.replace(/^[^/]+/, (host) => host.toLowerCase());
}

/**
 * Returns where CRI-O requests an image, in order: the mirrors, then the location; what is blocked only if nothing else is left.
 * Undefined if no table is about the image.
 *
 * @param registries by the order of their prefixes
 */
export function pullSources(
  { name, digest }: Reference,
  registries: readonly ConfRegistry[],
): readonly PullSource[] | undefined {
  const chosen = tableOf(name, registries);
  if (chosen === undefined) return undefined;
  const mirrors = chosen.mirrors.filter(({ only }) => only !== (digest === undefined ? 'digests' : 'tags'));
  const rest = name.slice(matching(name, chosen.prefix));
  const sources: PullSource[] = [];
  for (const { location, insecure } of [...mirrors, chosen]) {
    const there = location === '' ? name : `${location}${rest}`;
    const image = tryReference(there);
    if (image instanceof ImageError || image.name !== there) {
      // CRI-O then asks none of them.
      const refusal = `${chosen.file} leads to "${printableAscii(there, 120)}", which is not the full name of an image`;
      return [{ image: parseReference(name), location: '', insecure, isNamed: false, refusal }];
    }
    const isNamed = image.registry === location.split('/', 1)[0];
    const other = tableOf(image.name, registries);
    const refusal = `${other?.prefix} is blocked by ${other?.file}`;
    sources.push({ image, location, insecure, isNamed, ...(other?.blocked === true ? { refusal } : {}) });
  }
  const usable = sources.filter(({ refusal }) => refusal === undefined);
  return usable.length > 0 ? usable : sources.slice(-1);
}

/** Returns the table with the longest prefix of a name. */
function tableOf(name: string, registries: readonly ConfRegistry[]): ConfRegistry | undefined {
  const about = registries.filter(({ prefix }) => matching(name, prefix) >= 0);
  return about.toSorted((one, other) => other.prefix.length - one.prefix.length)[0];
}

/** Returns how many characters of a name a prefix matches; -1 if it does not. `a.b` also matches `a.b:5000`, as there. */
function matching(name: string, prefix: string): number {
  const isWild = prefix.startsWith('*.');
  const text = isWild ? prefix.slice(1) : prefix;
  const at = isWild ? name.indexOf(text) : name.startsWith(text) ? 0 : -1;
  const end = at + text.length;
  return at < 0 || name.slice(0, at).includes('/') || !['', ':', '/', '@'].includes(name.charAt(end)) ? -1 : end;
}

/**
 * What CRI-O's files say of registries. An invalid file changes nothing: what was read before stays.
 *
 * Reads a `registries.conf`, or a directory with it and with `registries.conf.d`, whose files of this ending follow in the order of
 * their names. Empty until the first reload; with an empty `path` it stays empty.
 *
 * @param onIgnored gets what a reload ignores in a file, once until it changes
 */
export function createRegistriesConf(path: string, onIgnored: (problem: FileProblem) => void = () => undefined) {
  const reportIgnored = reportOnce(onIgnored);
  let registries: readonly ConfRegistry[] = [];
  let named: ReadonlySet<string> = new Set();
  const files = createFiles(
    path,
    () => filesOf(path),
    async (file) => parseRegistriesConf(await readText(file), file),
  );

  async function load(): Promise<readonly FileProblem[]> {
    const problems = await files.reload();
    if (problems.length > 0) return problems;
    const read = [...files.values()];
    reportIgnored(read.flatMap(([file, { warnings }]) => warnings.map((problem) => ({ file, problem }))));
    const merged = new Map(read.flatMap(([, each]) => each.registries.map((registry) => [registry.prefix, registry])));
    registries = [...merged.values()].sort((one, other) => (one.prefix < other.prefix ? -1 : 1));
    const places = registries.flatMap((each) => [
      each.prefix,
      each.location,
      ...each.mirrors.map(({ location }) => location),
    ]);
    named = new Set(places.filter((place) => !/^(?:\*|$)/.test(place)).map((place) => place.replace(/\/.*/s, '')));
    return [];
  }

  return {
    /** Returns where an image is requested; undefined if no table is about it. */
    sources: (reference: Reference) => pullSources(reference, registries),
    namedHosts: (): ReadonlySet<string> => named,
    reload: oneAfterTheOther(load),
    paths: path === '' ? [] : [path],
  };
}

async function filesOf(path: string): Promise<string[]> {
  if (!(await stat(path)).isDirectory()) return [path];
  const own = (await readdir(path)).filter((name) => name === 'registries.conf');
  const directory = join(path, 'registries.conf.d');
  const names = await readdir(directory).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  });
  const dropIns = names.filter((name) => name.endsWith('.conf')).sort();
  const files = [...own.map((name) => join(path, name)), ...dropIns.map((name) => join(directory, name))];
  if (files.length === 0) throw new Error('there is no registries.conf and no registries.conf.d/*.conf');
  return files;
}
