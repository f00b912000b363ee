import type { Platform } from '../kit/platform.ts';
import { printableAscii } from '../kit/printable.ts';
import { type Index, type IndexEntry, platformKey, readPlatform, type Skipped, uniquePlatforms } from './manifest.ts';
import {
  containerdFit,
  containerdNames,
  crioRank,
  type FitNode,
  nameOf,
  nodeOf,
  nodesLike,
  printedName,
} from './node-fit.ts';

/** The container runtimes whose choice is known. */
export type Runtime = 'containerd' | 'CRI-O';

/** What an entry of an index turns out to be, once it has been read: a nested index, an image, or nothing of use. */
export type Child =
  | Index
  | { readonly kind: 'image'; readonly platform: Platform }
  | { readonly kind: 'refused'; readonly reason: string }
  /** Its manifest is there, and was not read. */
  | { readonly kind: 'held' }
  /** Its manifest is not there. */
  | { readonly kind: 'missing'; readonly reason: string };
export type Children = ReadonlyMap<string, Child>;

/**
 * An entry that decides: by its content, or only by its presence. `depth`: that of an index there; the root has 1. `name`: its
 * platform, for messages.
 */
export type Needed = {
  readonly digest: string;
  readonly depth: number;
  readonly by: 'content' | 'presence';
  readonly name: string;
};

export type Selection =
  | { readonly kind: 'needs'; readonly children: readonly Needed[] }
  | {
      readonly kind: 'selected';
      /** Not unique; in the order of the index. */
      readonly platforms: readonly Platform[];
      /** Returns the entries that do not count, with the reasons. Only commands show them. */
      readonly skipped: () => readonly Skipped[];
      /** The only runtime that takes all of these platforms. Absent: both do. */
      readonly only?: Runtime;
    };

/**
 * What a runtime gets on a node: images of the node's own architecture. Undefined: no entry is for it, or it fails on the entry that
 * it chooses.
 */
type Taken =
  | {
      readonly platforms: readonly Platform[];
      /** That of the entry that the runtime takes. */
      readonly digest: string;
      /** Whether they are in an index within the index: CRI-O does not pull them. */
      readonly isNested: boolean;
    }
  | undefined;

type Reader = {
  readonly node: FitNode;
  readonly children: Children;
  readonly need: (needed: Needed) => void;
  /** Whether the manifests that an index names may be missing. */
  readonly isSparse: boolean;
};

/** A node that no entry names: for it, runtimes choose an entry without a platform. */
const UNNAMED: FitNode = { os: 'linux', architecture: '?' };

/**
 * Decides which platforms of an index count: those of nodes on which both containerd and CRI-O choose an image of the
 * node's own architecture. If there is no such node, those that containerd takes, else those that CRI-O takes: without
 * any platform the image would count as unknown, and its pods could be placed on any node.
 *
 * It follows PullImage of containerd 2.4, with and without the transfer service, and go.podman.io/image 5.42 (`ChooseInstance`). A test
 * asks these packages about thousands of indexes. CRI-O chooses an index within the index, too, but does not pull it: such
 * platforms count, and `only` is containerd. For operating systems other than Linux, which CRI-O does not serve,
 * containerd's choice counts, without versions and features.
 *
 * @param children what was read so far, by digest; the answer is `needs` as long as others decide
 * @param isSparse whether each entry that a runtime would choose must be there
 * @throws ImageError `too-large` if it names too many platforms
 */
export function select(root: Index, children: Children, isSparse = false): Selection {
  const needed = new Map<string, Needed>();
  const need = (entry: Needed): void => {
    if (entry.by === 'content' || !needed.has(entry.digest)) needed.set(entry.digest, entry);
  };
  const nodes = uniquePlatforms([...nodesOf(root, children).values()]);
  const asked = sortedOf(root).unnamed.length === 0 ? nodes : [...nodes, UNNAMED];
  const taken = asked.map((node) => {
    const reader = { node, children, need, isSparse };
    return { node, containerd: byContainerd(root, reader, 1), 'CRI-O': byCrio(root, reader, 1) };
  });
  if (needed.size > 0) return { kind: 'needs', children: [...needed.values()] };

  const onLinux = taken.filter(({ node }) => node.os === 'linux');
  const isShared = onLinux.some((each) => each.containerd && each['CRI-O']);
  const takes = (runtime: Runtime) => (each: (typeof taken)[number]) =>
    each[runtime] !== undefined && !(runtime === 'CRI-O' && each[runtime]?.isNested);
  const alone = isShared ? undefined : RUNTIMES.find((runtime) => onLinux.some(takes(runtime)));
  const counted = taken.flatMap((each) => {
    const { os } = each.node;
    const first = os === 'linux' ? each[alone ?? 'containerd'] : each.containerd;
    const isAgreed = os !== 'linux' || (alone === undefined ? each['CRI-O'] !== undefined : takes(alone)(each));
    return first !== undefined && isAgreed ? [{ ...each, platforms: first.platforms }] : [];
  });
  const names = new Set(counted.map(({ node }) => nameOf(node)));
  const digestsOf = (runtime: Runtime): ReadonlySet<string> =>
    new Set(taken.flatMap((each) => each[runtime]?.digest ?? []));
  const only =
    alone ??
    (counted.some(({ node, 'CRI-O': byName }) => node.os === 'linux' && byName?.isNested) ? 'containerd' : undefined);
  return {
    kind: 'selected',
    platforms: counted.flatMap(({ platforms }) => platforms),
    skipped: () =>
      leftOut(root, { children, names, taken: { containerd: digestsOf('containerd'), 'CRI-O': digestsOf('CRI-O') } }),
    ...(only === undefined ? {} : { only }),
  };
}

const RUNTIMES: readonly Runtime[] = ['containerd', 'CRI-O'];

/** What each node, in each round of reads, would otherwise look for among all entries. */
type Sorted = {
  readonly named: readonly { readonly digest: string; readonly node: FitNode | undefined }[];
  /** The entries that may be for a node, by its name, in order. */
  readonly byNode: ReadonlyMap<string, readonly IndexEntry[]>;
  readonly unnamed: readonly IndexEntry[];
};

const SORTED = new WeakMap<Index, Sorted>();

function sortedOf(index: Index): Sorted {
  const before = SORTED.get(index);
  if (before !== undefined) return before;
  const byNode = new Map<string, IndexEntry[]>();
  const unnamed: IndexEntry[] = [];
  const named = index.entries.map((entry) => {
    const { platform, digest = '' } = entry;
    if (platform === undefined) unnamed.push(entry);
    const node = platform && nodeOf(platform);
    for (const name of platform === undefined ? [] : nodesLike(platform, node)) {
      const found = byNode.get(name);
      if (found === undefined) byNode.set(name, [entry]);
      else found.push(entry);
    }
    return { digest, node };
  });
  const sorted = { named, byNode, unnamed };
  SORTED.set(index, sorted);
  return sorted;
}

/** Returns the nodes that the entries name, and what was read so far. */
function nodesOf(index: Index, children: Children, nodes = new Map<string, FitNode>(), seen = new Set<string>()) {
  const add = (node: FitNode | undefined): void => {
    const name = node && nameOf(node);
    if (node !== undefined && name !== undefined && !nodes.has(name)) nodes.set(name, node);
  };
  for (const { digest, node } of sortedOf(index).named) {
    add(node);
    const child = children.get(digest);
    if (child === undefined || seen.has(digest)) continue;
    seen.add(digest);
    if (child.kind === 'image') add({ os: child.platform.os, architecture: child.platform.architecture });
    else if (child.kind === 'index') nodesOf(child, children, nodes, seen);
  }
  return nodes;
}

function byContainerd(index: Index, reader: Reader, depth: number): Taken {
  const { node } = reader;
  const { byNode, unnamed } = sortedOf(index);
  const ranked = (byNode.get(nameOf(node)) ?? []).flatMap((entry) => {
    const fit = entry.platform && containerdFit(entry.platform, node);
    return fit === undefined ? [] : [{ entry, ...fit }];
  });
  const rank = Math.min(...ranked.map((each) => each.rank));
  const best = ranked.find((each) => each.rank === rank);
  const entry = best?.entry ?? unnamed[0];
  if (entry === undefined) return undefined;
  const { digest, kind, isAttestation } = entry;
  if (digest === undefined || isAttestation || (kind !== 'image' && kind !== 'index')) return undefined;
  if (best?.isExact === false) return undefined;
  if (kind === 'image' && entry.platform !== undefined) {
    const own = ranked.filter(({ isOwn }) => isOwn);
    return ofNamed(entry, digest, own, reader, depth);
  }
  const child = contentOf(entry, digest, reader, depth);
  if (child === undefined || child.kind !== kind) return undefined;
  if (child.kind === 'index') return byContainerd(child, reader, depth + 1);
  const { platform } = child;
  const isOwn = containerdFit({ variant: '', ...platform, hasFeatures: false }, node)?.isOwn;
  return isOwn ? { platforms: [platform], digest, isNested: depth > 1 } : undefined;
}

function byCrio(index: Index, reader: Reader, depth: number): Taken {
  const { node } = reader;
  if (node.os !== 'linux') return undefined;
  const LAST = Number.POSITIVE_INFINITY;
  const { byNode, unnamed } = sortedOf(index);
  const own = (byNode.get(nameOf(node)) ?? []).flatMap((entry) => {
    const rank = entry.platform && crioRank(entry.platform, node);
    return rank === undefined ? [] : [{ entry, rank }];
  });
  const ranked = own.length > 0 || index.isDockerList ? own : unnamed.map((entry) => ({ entry, rank: LAST }));
  const lowest = ranked.reduce((rank, each) => Math.min(rank, each.rank), LAST);
  const best = ranked.filter(({ rank }) => rank === lowest).map(({ entry }) => entry);
  const entry = best.find(({ isZstd }) => isZstd && !index.isDockerList) ?? best[0];
  if (entry === undefined) return undefined;
  const { digest, kind, isAttestation } = entry;
  // CRI-O may run schema 1. An image of that alone is not supported, and so it is not as a part.
  if (digest === undefined || isAttestation || kind === 'other' || kind === 'schema1') return undefined;
  if (entry.platform !== undefined && kind !== 'index') return ofNamed(entry, digest, ranked, reader, depth);
  const child = contentOf(entry, digest, reader, depth);
  if (child === undefined) return undefined;
  if (child.kind === 'index') return byCrio(child, reader, depth + 1);
  if (child.kind !== 'image') return undefined;
  // It starts what it has pulled, whatever the config says.
  const isNested = depth > 1;
  return nameOf(child.platform) === nameOf(node) ? { platforms: [child.platform], digest, isNested } : undefined;
}

/** Returns what a runtime gets that chooses this entry by its platform. `all`: the entries of the node's architecture. */
function ofNamed(
  chosen: IndexEntry,
  digest: string,
  all: readonly { readonly entry: IndexEntry }[],
  { children, need, isSparse }: Reader,
  depth: number,
): Taken {
  const isMissing = ({ digest: each = '' }: IndexEntry): boolean => children.get(each)?.kind === 'missing';
  for (const { entry } of isSparse ? all : []) {
    const { digest: each, platform, isAttestation } = entry;
    if (each === undefined || isAttestation || platform === undefined || children.has(each)) continue;
    need({ digest: each, depth: depth + 1, by: 'presence', name: printedName(platform) });
  }
  if (isMissing(chosen)) return undefined;
  const platforms = all.flatMap(({ entry }) => (isMissing(entry) ? [] : platformsOf(entry)));
  return { platforms, digest, isNested: depth > 1 };
}

/** Returns what was read of an entry whose content decides, or asks for it. */
function contentOf(
  { platform }: IndexEntry,
  digest: string,
  { children, need }: Reader,
  depth: number,
): Exclude<Child, { kind: 'held' }> | undefined {
  const child = children.get(digest);
  // It is there, but must be read.
  if (child !== undefined && child.kind !== 'held') return child;
  const name = platform === undefined ? 'an entry without a platform' : printedName(platform);
  need({ digest, depth: depth + 1, by: 'content', name });
  return undefined;
}

function platformsOf({ platform }: IndexEntry): Platform[] {
  const read = platform === undefined ? '' : readPlatform(platform);
  return typeof read === 'string' ? [] : [read];
}

type Verdict = {
  readonly children: Children;
  /** The nodes whose platforms count. */
  readonly names: ReadonlySet<string>;
  /** The digests of the entries that each runtime takes on any node. */
  readonly taken: Readonly<Record<Runtime, ReadonlySet<string>>>;
};

/** Returns the entries that do not count, with the reasons; and those for whose platform another entry is taken. */
function leftOut(index: Index, verdict: Verdict, seen = new Set([index])): Skipped[] {
  const { children, taken } = verdict;
  /** The digest that is taken for a platform: containerd's, else CRI-O's. */
  const firsts = new Map<string, string>();
  for (const runtime of RUNTIMES.toReversed()) {
    for (const { digest, platform } of index.entries) {
      if (platform && digest && taken[runtime].has(digest)) firsts.set(platformKey(containerdNames(platform)), digest);
    }
  }
  return index.entries.flatMap((entry) => {
    const { digest, platform } = entry;
    const child = children.get(digest ?? '');
    if (child?.kind === 'index') return seen.has(child) ? [] : leftOut(child, verdict, seen.add(child));
    const reason = reasonOf(entry, child, verdict);
    if (reason !== undefined) return [{ ...(digest === undefined ? {} : { digest }), reason }];
    const key = platform === undefined ? '' : platformKey(containerdNames(platform));
    const first = firsts.get(key);
    if (platform === undefined || digest === undefined || taken.containerd.has(digest)) return [];
    if (first === undefined || first === digest || !key.startsWith('linux/')) return [];
    const takes = taken['CRI-O'].has(digest) ? 'CRI-O takes it, and containerd takes' : 'container runtimes take';
    return [
      { digest, reason: `a second entry for ${printedName(platform)}: ${takes} ${first.slice(0, SHORT_DIGEST)}...` },
    ];
  });
}

function reasonOf(entry: IndexEntry, child: Child | undefined, verdict: Verdict): string | undefined {
  const { digest, kind, mediaType, isAttestation, platform } = entry;
  if (digest === undefined) return 'an entry without a digest that can be verified';
  if (isAttestation) return 'an attestation';
  if (kind === 'other') return `of type "${printableAscii(mediaType, 100)}"`;
  if (child?.kind === 'refused' || child?.kind === 'missing') return child.reason;
  if (platform === undefined) {
    if (child?.kind !== 'image')
      return 'without a platform, and not the first such entry: container runtimes read only that one';
    if (verdict.names.has(nameOf(child.platform))) return undefined;
    const text = `without a platform, for ${nameOf(child.platform)} by its config`;
    return `${text}: not what all container runtimes take`;
  }
  if (platform.architecture === '') return 'a platform without an architecture';
  const read = readPlatform(platform);
  if (typeof read === 'string') return read;
  const name = printedName(platform);
  const node = nodeOf(platform);
  const fits = {
    containerd: node !== undefined && kind !== 'untyped' && containerdFit(platform, node)?.isExact === true,
    'CRI-O': node?.os === 'linux' && crioRank(platform, node) !== undefined,
  };
  const takers = RUNTIMES.filter((runtime) => fits[runtime]);
  if (kind === 'schema1') return `${name} of Docker schema 1, which containerd no longer runs`;
  if (takers.length === 0) return `${name}: no container runtime takes it from an index`;
  if (node !== undefined && verdict.names.has(nameOf(node))) return undefined;
  const of = kind === 'untyped' ? ' without a media type' : '';
  if (takers.length === 1 && node?.os === 'linux') return `${name}${of}: only ${takers[0]} takes it`;
  return `${name}: container runtimes choose another entry`;
}

/** `sha256:` and twelve digits. */
const SHORT_DIGEST = 19;
