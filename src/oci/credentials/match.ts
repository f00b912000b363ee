import { matchesElements } from '../../kit/glob.ts';

/** A value that a credential store keeps under a registry's pattern. */
export type Keyed = { readonly pattern: string };

type Key = { readonly key: string; readonly labels: readonly string[]; readonly port: string; readonly path: string };

/** The name under which Docker's clients store Docker Hub's credentials. */
const HUB_KEY = 'index.docker.io';

/**
 * Returns the entries that the kubelet would use for an image, in its order: keys in reverse lexicographic order, and
 * entries of one key as given (pkg/credentialprovider/keyring.go). Docker Hub's old name counts only if nothing else
 * matches.
 *
 * @param name normalised, without tag and digest: `docker.io/library/nginx`
 */
export function matchCredentials<T extends Keyed>(entries: readonly T[], name: string): T[] {
  const parsed = entries.flatMap((entry) => {
    const key = parseKey(entry.pattern);
    return key ? { entry, key } : [];
  });
  const target = split(name);
  const matching = parsed
    .filter(({ key }) => matches(key, target))
    .sort(({ key: { key: one } }, { key: { key: other } }) => (one < other ? 1 : one > other ? -1 : 0));
  if (matching.length > 0) return matching.map(({ entry }) => entry);
  if (target.host !== 'docker.io') return [];
  return parsed.filter(({ key }) => key.key === HUB_KEY).map(({ entry }) => entry);
}

/** Whether the kubelet accepts a text as a pattern of image names, as in a plug-in's `matchImages`. */
export function isPattern(text: string): boolean {
  return parseKey(text) !== undefined;
}

/**
 * Returns a pattern without scheme, user information, query, and a leading `/v1` or `/v2`; undefined if it is not a
 * URL. The host is in lower case, as in image names.
 */
function parseKey(pattern: string): Key | undefined {
  const schemeless = pattern.replace(/^https?:\/\//, '').replace(/[?#].*$/s, '');
  const slash = schemeless.indexOf('/');
  const authority = slash < 0 ? schemeless : schemeless.slice(0, slash);
  const rawPath = slash < 0 ? '' : schemeless.slice(slash);
  // The prefix is removed only from a longer path: `/v2` alone stays, as with the kubelet.
  const path = /^\/v[12]\//.test(rawPath) ? rawPath.slice(3) : rawPath;
  const host = authority.slice(authority.lastIndexOf('@') + 1).replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  // Characters that Go's url.Parse refuses: control characters, spaces, and ASCII characters that a host cannot
  // contain.
  if (/[^!-$&-[\]_a-z~\u{80}-\u{10ffff}]/u.test(host) || /:(?!\d*$)/.test(host.replace(/^\[[^\]]*\]/, '')))
    return undefined;
  if (/%(?![0-9A-Fa-f]{2})/.test(path)) return undefined;
  const { labels, port } = split(host);
  return { key: path === '/' ? host : host + path, labels, port, path: path === '/' ? '' : path };
}

function split(name: string): Omit<Key, 'key'> & { host: string } {
  const slash = name.indexOf('/');
  const host = slash < 0 ? name : name.slice(0, slash);
  const [, bare = host, port = ''] = /^(\[[^\]]*\]|[^:]*):(\d*)$/.exec(host) ?? [];
  // An IPv6 address without its brackets, because a glob would read them as a character class.
  return {
    host,
    labels: bare.replace(/^\[([^:]*:.*)\]$/, '$1').split('.'),
    port,
    path: slash < 0 ? '' : name.slice(slash),
  };
}

function matches(key: Key, target: Omit<Key, 'key'>): boolean {
  return (
    key.port === target.port &&
    key.labels.length === target.labels.length &&
    // A plain prefix: `/team` also matches `/team-b/x`, as with the kubelet.
    target.path.startsWith(key.path) &&
    key.labels.every((label, index) => matchesPathGlob(label, target.labels[index] ?? ''))
  );
}

/**
 * Matches one label against a glob of Go's `path.Match`: `*` and `[a-z]`. Its `?` and `[^a-z]` cannot occur here: in a
 * URL, `?` begins the query, and `^` is not allowed in a host. A class without an end matches nothing.
 */
function matchesPathGlob(glob: string, label: string): boolean {
  const elements = glob.match(/[^[]|\[.[^\]]*\]/gsy) ?? [];
  return elements.join('').length === glob.length && matchesElements(elements, label, isMember);
}

function isMember(element: string, character: string): boolean {
  if (element.length === 1) return element === character;
  for (const [, low = '', high = low] of element.slice(1, -1).matchAll(/(.)(?:-(.))?/gs)) {
    if (low <= character && character <= high) return true;
  }
  return false;
}
