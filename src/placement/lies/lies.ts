import { cut } from '../../kit/cut.ts';
import { isObject, type JsonObject } from '../../kit/json.ts';
import { readArchitecture } from '../../kit/platform.ts';

/**
 * What the pods of one namespace have shown: an image's index has an entry for a platform, and the kernel refused the program in it
 * (exec format error). The platform of this digest then no longer counts.
 */
export type Showing = {
  /** The digest of the index. */
  readonly digest: string;
  /** `linux/arm64`. */
  readonly platform: string;
  readonly namespace: string;
  /** The image as that pod names it, `repository@digest`; cut. */
  readonly image: string;
  readonly node: string;
  /** When it was shown, in milliseconds since the epoch. */
  readonly atMs: number;
};

/** What is learned of images whose index has platforms that the image does not run on. */
export type Lies = {
  /**
   * Returns the platforms (`linux/arm64`) of a digest that do not count for a namespace: those that its own pods have shown, and
   * those that the pods of two namespaces have shown, because a tenant can fake a crash of its own.
   */
  lyingFor(namespace: string, digest: string): readonly string[];
  /** Keeps a showing. False if it changes nothing: it is known, or counts for all already. */
  add(showing: Showing): boolean;
  /** Returns what pods have shown of this digest, the oldest first. */
  of(digest: string): readonly Showing[];
  /** Returns everything, the oldest first. */
  all(): readonly Showing[];
  /** The number of platforms of digests that do not count for at least one namespace. */
  count(): number;
  clear(): void;
  /**
   * The uid of the object in the cluster that holds the same; undefined: none. What a file keeps of an object that is gone was removed
   * on purpose.
   */
  origin(): string | undefined;
  setOrigin(uid: string | undefined): void;
  /** Calls the listener after each change. */
  onChange(listener: () => void): void;
};

/**
 * The most bytes: of the showings of one namespace, and of all. A tenant can push digests without end. All of them together are well
 * below the 1 MiB of a ConfigMap.
 */
const MOST_BYTES = { namespace: 16 * 1024, all: 256 * 1024 };
/** How many namespaces must show a platform before it counts for none. */
const ENOUGH = 2;
const NONE: readonly string[] = [];

/** Creates the memory of what was learned. When it is full, the oldest showing of the namespace with the most bytes goes. */
export function createLies(): Lies {
  const byDigest = new Map<string, Showing[]>();
  const byNamespace = new Map<string, { shown: Showing[]; bytes: number }>();
  const listeners: (() => void)[] = [];
  let bytes = 0;
  let origin: string | undefined;

  function remove(showing: Showing): void {
    const left = (byDigest.get(showing.digest) ?? []).filter((each) => each !== showing);
    if (left.length > 0) byDigest.set(showing.digest, left);
    else byDigest.delete(showing.digest);
    const own = byNamespace.get(showing.namespace);
    if (own === undefined) return;
    own.shown = own.shown.filter((each) => each !== showing);
    own.bytes -= bytesOf(showing);
    bytes -= bytesOf(showing);
    if (own.shown.length === 0) byNamespace.delete(showing.namespace);
  }

  function makeRoom(namespace: string): void {
    while ((byNamespace.get(namespace)?.bytes ?? 0) > MOST_BYTES.namespace) removeOldest(namespace);
    while (bytes > MOST_BYTES.all) {
      const [largest] = [...byNamespace].sort(([, a], [, b]) => b.bytes - a.bytes);
      if (largest === undefined) return;
      removeOldest(largest[0]);
    }
  }

  function removeOldest(namespace: string): void {
    const [oldest] = byNamespace.get(namespace)?.shown ?? [];
    if (oldest !== undefined) remove(oldest);
  }

  const notify = (): void => {
    for (const listener of listeners) listener();
  };

  return {
    lyingFor(namespace, digest) {
      const shown = byDigest.get(digest);
      if (shown === undefined) return NONE;
      const counts = (platform: string) => {
        const by = shown.filter((each) => each.platform === platform);
        return by.length >= ENOUGH || by.some((each) => each.namespace === namespace);
      };
      return [...new Set(shown.map(({ platform }) => platform))].filter(counts).sort();
    },
    add(showing) {
      const shown = byDigest.get(showing.digest) ?? [];
      const alike = shown.filter(({ platform }) => platform === showing.platform);
      if (alike.length >= ENOUGH || alike.some(({ namespace }) => namespace === showing.namespace)) return false;
      byDigest.set(showing.digest, byTime([...shown, showing]));
      const own = byNamespace.get(showing.namespace) ?? { shown: [], bytes: 0 };
      byNamespace.set(showing.namespace, own);
      own.shown = byTime([...own.shown, showing]);
      own.bytes += bytesOf(showing);
      bytes += bytesOf(showing);
      makeRoom(showing.namespace);
      notify();
      return true;
    },
    of: (digest) => byDigest.get(digest) ?? [],
    all: () => byTime([...byDigest.values()].flat()),
    count: () => new Set([...byDigest.values()].flat().map(({ digest, platform }) => `${digest} ${platform}`)).size,
    clear() {
      if (byDigest.size === 0) return;
      byDigest.clear();
      byNamespace.clear();
      bytes = 0;
      notify();
    },
    origin: () => origin,
    setOrigin(uid) {
      if (uid === origin) return;
      origin = uid;
      notify();
    },
    onChange: (listener) => void listeners.push(listener),
  };
}

function byTime(shown: Showing[]): Showing[] {
  const key = (showing: Showing) => writeShowing(showing)[0];
  return shown.sort((a, b) => a.atMs - b.atMs || (key(a) < key(b) ? -1 : 1));
}

/** The bytes of a showing as {@link writeShowing} writes it. */
function bytesOf(showing: Showing): number {
  const [key, value] = writeShowing(showing);
  return Buffer.byteLength(key) + Buffer.byteLength(JSON.stringify(value));
}

/** Returns a showing as an entry of a file: its key is unique. */
export function writeShowing({ digest, platform, namespace, ...rest }: Showing): readonly [string, JsonObject] {
  return [`${digest} ${platform} ${namespace}`, rest];
}

const DIGEST = /^(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/;
const NAMESPACE = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const NODE = /^[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?$/;
const LONGEST_IMAGE = 256;

/** Reads an entry that {@link writeShowing} wrote; undefined if it is not one. `nowMs`: nothing was shown later. */
export function readShowing(key: string, value: unknown, nowMs: number): Showing | undefined {
  const [digest = '', platform = '', namespace = '', ...more] = key.split(' ');
  if (!isObject(value) || more.length > 0 || !DIGEST.test(digest) || !NAMESPACE.test(namespace)) return undefined;
  const [os = '', name = '', ...rest] = platform.split('/');
  if (!/^[a-z]{1,20}$/.test(os) || readArchitecture(name) !== name || rest.length > 0) return undefined;
  const { image, node, atMs } = value;
  if (typeof image !== 'string' || typeof node !== 'string' || !NODE.test(node)) return undefined;
  if (typeof atMs !== 'number' || !Number.isInteger(atMs) || atMs < 0) return undefined;
  const showing = { digest, platform, namespace, image: image.slice(0, LONGEST_IMAGE), node };
  return { ...showing, atMs: Math.min(atMs, nowMs) };
}

/** The key of the entry that names the object in the cluster with the same showings. No showing has such a key. */
const ORIGIN = 'origin';

/** Returns everything as entries of a file. */
export function writeLies(lies: Pick<Lies, 'all' | 'origin'>): (readonly [string, JsonObject])[] {
  const uid = lies.origin();
  return [...(uid === undefined ? [] : [[ORIGIN, { uid }] as const]), ...lies.all().map(writeShowing)];
}

/** Adds the entries of a file; strange ones are left out. */
export function readLies(lies: Lies, entries: Iterable<readonly [string, unknown]>, nowMs: number): void {
  for (const [key, value] of entries) {
    const showing = readShowing(key, value, nowMs);
    if (showing !== undefined) lies.add(showing);
    else if (key === ORIGIN && isObject(value) && typeof value.uid === 'string') lies.setOrigin(cut(value.uid, 64));
  }
}
