import { isAbsolute, join } from 'node:path';
import { printableAscii } from '../../kit/printable.ts';
import type { Trust } from '../http/trust.ts';
import { type EndpointAddress, parseEndpointAddress } from './endpoint.ts';
import { areTexts, explained, isTable, parseToml, readFlag, readTable, type Table, wrong } from './operator-file.ts';

/** Returns the repository of an image at a host, as the host's rules say. */
type Rewrite = (repository: string) => string;

/** One host to ask, with its settings. `Tls` is either the paths of files or their contents. */
export type HostEntry<Tls> = {
  /** Its path is that of the API, for example `/v2`. Absent: the registry of the image itself. */
  readonly address?: EndpointAddress;
  readonly resolvesTags: boolean;
  /** Header names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Absent if the file says nothing about TLS. */
  readonly tls?: Tls;
  readonly rewrite?: Rewrite | undefined;
};

/** Certificate files, by absolute path, or relative to the working directory if the directory is. */
export type TlsFiles = {
  readonly verify: boolean;
  /** Whether plain http is tried if the host does not speak TLS. */
  readonly plain: boolean;
  readonly authorities: readonly string[];
  readonly clients: readonly { readonly certificate: string; readonly key: string }[];
};

export type HostsFile = {
  /** In the order in which they are asked; never empty. */
  readonly entries: readonly HostEntry<TlsFiles>[];
  /** What is ignored, as containerd ignores it. */
  readonly warnings: readonly string[];
};

/** What a directory says of a registry, with its certificates loaded. */
export type HostsConfig = {
  readonly entries: readonly HostEntry<Trust>[];
  /** Whether it comes from `_default`, which names no registry. */
  readonly isDefault: boolean;
};

const FIELDS = ['capabilities', 'ca', 'client', 'skip_verify', 'header', 'override_path', 'dial_timeout'];
const CAPABILITIES: readonly unknown[] = ['pull', 'resolve', 'push', 'referrers'];

/** RFC 9110, section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Headers of the connection and of the request itself, which Go's client does not take from a configuration either. */
const OWN_HEADERS: ReadonlySet<string> = new Set(
  (
    'accept accept-encoding connection content-length expect host keep-alive ' +
    'proxy-connection te trailer transfer-encoding upgrade user-agent'
  ).split(' '),
);

/**
 * Parses containerd's `hosts.toml`; paths in it are relative to `directory`, the directory of the file.
 *
 * @throws Error naming the key or the line, and the problem; without values that may be secret
 */
export function parseHostsToml(text: string, { directory }: { readonly directory: string }): HostsFile {
  const warnings: string[] = [];
  // For this key alone containerd requires the exact spelling.
  const { host: hosts = {}, ...others } = parseToml(text);
  const root = readTable(others, '', [...FIELDS, 'server'], warnings);
  if (!isTable(hosts)) throw wrong('host', hosts, 'tables such as [host."https://mirror.example.com"]');

  const entries: HostEntry<TlsFiles>[] = [];
  for (const [name, value] of Object.entries(hosts)) {
    const at = `host."${name.includes('@') ? '…' : printableAscii(name, 120)}"`;
    if (!isTable(value)) throw wrong(at, value, 'a table');
    const table = readTable(value, `${at}.`, [...FIELDS, 'rewrite'], warnings);
    const address = explained(at, () => parseEndpointAddress(name));
    entries.push(...readEntry(table, directory, address, warnings));
  }

  const server = root.fields.get('server') ?? '';
  if (typeof server !== 'string') throw wrong('server', server, 'a host or URL');
  if (server === '') {
    for (const field of ['capabilities', 'override_path'].filter((name) => root.fields.has(name))) {
      warnings.push(`${field}: has an effect only together with server, which is not set`);
    }
  }
  const address = server === '' ? undefined : explained('server', () => parseEndpointAddress(server));
  entries.push(...readEntry(root, directory, address, warnings));
  if (entries.length === 0) throw new Error('capabilities: no host with the capability pull is left');
  return { entries, warnings };
}

/** Returns nothing if nothing may be pulled from the host. */
function readEntry(
  table: Table,
  directory: string,
  address: EndpointAddress | undefined,
  warnings: string[],
): HostEntry<TlsFiles>[] {
  const capabilities = readCapabilities(table);
  const overrides = readFlag(table, 'override_path') ?? false;
  const headers = readHeaders(table, warnings);
  const tls = readTls(table, directory);
  if (address === undefined) return [{ resolvesTags: true, headers, ...(tls && { tls }) }];
  if (!capabilities.includes('pull')) return [];
  // To containerd, http with any TLS setting means https first, unless the port is that of http.
  const plain = address.scheme === 'http' && tls !== undefined && !address.host.endsWith(':80');
  const scheme = plain ? 'https' : address.scheme;
  const path = overrides || address.path.endsWith('/v2') ? address.path : `${address.path}/v2`;
  const resolvesTags = capabilities.includes('resolve');
  const rewrite = readRewrite(table);
  const secured = tls && { tls: { ...tls, plain } };
  return [{ address: { ...address, scheme, path }, resolvesTags, headers, rewrite, ...secured }];
}

function readCapabilities({ at, fields }: Table): readonly unknown[] {
  const value = fields.get('capabilities') ?? [];
  const names = areTexts(value) ? value.map((name) => name.toLowerCase()) : [undefined];
  if (!names.every((name) => CAPABILITIES.includes(name))) {
    throw new Error(`${at}capabilities: expected a list of ${CAPABILITIES.join(', ')}`);
  }
  return names.length === 0 ? CAPABILITIES : names;
}

function readHeaders({ at, fields }: Table, warnings: string[]): Record<string, string> {
  const table = fields.get('header') ?? {};
  if (!isTable(table)) throw wrong(`${at}header`, table, 'a table');
  const headers = new Map<string, string>();
  for (const [name, value] of Object.entries(table)) {
    const field = `${at}header."${printableAscii(name, 60)}"`;
    if (!TOKEN.test(name)) throw new Error(`${field}: not a valid header name`);
    const values = listOf(value);
    if (!areTexts(values)) throw wrong(field, value, 'a text or a list of texts');
    // The message never contains the value, which may be a credential.
    if (!values.every((text) => /^[\t\x20-\x7e\x80-\xff]*$/.test(text))) {
      throw new Error(`${field}: the value has a line break or another character that no header may have`);
    }
    const lower = name.toLowerCase();
    const before = headers.get(lower);
    if (OWN_HEADERS.has(lower)) warnings.push(`${field}: ignored, because a configuration must not set this header`);
    else if (values.length > 0) headers.set(lower, [...(before === undefined ? [] : [before]), ...values].join(', '));
  }
  return Object.fromEntries(headers);
}

function readTls(table: Table, directory: string): TlsFiles | undefined {
  const { at, fields } = table;
  const skip = readFlag(table, 'skip_verify');
  const [ca, client] = [fields.get('ca'), fields.get('client')];
  if (ca === undefined && client === undefined && skip === undefined) return undefined;
  const absolute = (path: string): string => (isAbsolute(path) ? path : join(directory, path));

  const authorities = listOf(ca);
  if (!areTexts(authorities) || authorities.includes('')) throw wrong(`${at}ca`, ca, 'a path or a list of paths');
  const clients = listOf(client).map((each) => {
    const pair = listOf(each);
    const [certificate = '', key = '', ...others] = areTexts(pair) ? pair : [];
    if (certificate === '' || others.length > 0) {
      throw wrong(`${at}client`, each, 'a path, a list of paths, or a list of pairs of paths');
    }
    // Without a path of its own, the key is in the same file.
    return { certificate: absolute(certificate), key: absolute(key === '' ? certificate : key) };
  });
  return { verify: skip !== true, plain: false, authorities: authorities.map(absolute), clients };
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : value === undefined ? [] : [value];
}

/**
 * The most ways to go on that one pattern may leave open: repetitions, what may be absent, and alternatives. A search in every place is one
 * more. The author of a pod chooses the name that it is matched with, up to 255 characters.
 */
const MOST_CHOICES = 3;

/**
 * Reads the `rewrite` table of a host, which the containerd of k3s and RKE2 knows: regular expressions of Go, and what replaces them. The
 * first in the file that changes the repository counts.
 *
 * @throws Error naming the pattern and what is wrong with it
 */
function readRewrite({ at, fields }: Table): Rewrite | undefined {
  const table = fields.get('rewrite');
  if (table === undefined) return undefined;
  if (!isTable(table)) throw wrong(`${at}rewrite`, table, 'a table of patterns and their replacements');
  const rules = Object.entries(table).map(([pattern, to]): Rewrite => {
    const field = `${at}rewrite."${printableAscii(pattern, 60)}"`;
    if (typeof to !== 'string') throw wrong(field, to, 'a text');
    const expression = compiled(pattern, field);
    return (repository) => {
      let end = -1;
      return repository.replace(expression, (...found: unknown[]) => {
        const [whole, start] = [String(found[0]), Number(found.at(-2))];
        // Go leaves out an empty match at the end of the one before.
        if (whole === '' && start === end) return '';
        end = start + whole.length;
        return to.replaceAll(/\$(?:\$|(\w+)|\{(\w+)\})/g, (all, name = '', braced = name) =>
          all === '$$' ? '$' : String(found.slice(0, -2)[Number(braced)] ?? ''),
        );
      });
    };
  });
  return (repository) => rules.map((rule) => rule(repository)).find((after) => after !== repository) ?? repository;
}

function compiled(pattern: string, field: string): RegExp {
  const shape = pattern.replaceAll(/\\.|\[\^?\]?[^\][]*\]/g, 'x');
  const choices = shape.match(/[*+|]|(?<!\()\?|\{\d*,/g)?.length ?? 0;
  const isAnchored = shape.startsWith('^') && !shape.includes('|');
  if (/\\\d|\(\?[^:]|\)[*+{]/.test(pattern) || choices + (isAnchored ? 0 : 1) > MOST_CHOICES) {
    throw new Error(
      `${field}: expected a pattern from ^ on with at most ${MOST_CHOICES} of * + ? { |, none of * + { after a group, and no look-around`,
    );
  }
  try {
    return new RegExp(pattern, 'g');
  } catch {
    throw new Error(`${field}: not a regular expression`);
  }
}
