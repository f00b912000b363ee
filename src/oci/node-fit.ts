import { normaliseArchitecture } from '../kit/platform.ts';
import { printableAscii } from '../kit/printable.ts';
import { readPlatform, type StatedPlatform } from './manifest.ts';

/** A node of this architecture, without a variant of its own. */
export type FitNode = { readonly os: string; readonly architecture: string };

/**
 * containerd chooses `386` entries on nodes of amd64, and `arm` entries on nodes of arm64, that have none of their own. Then it fails:
 * its transfer service fetches only what is exactly for the node.
 */
const LESSER: ReadonlyMap<string, string> = new Map([
  ['amd64', '386'],
  ['arm64', 'arm'],
]);
/** The variants of arm that run on `v7`, the best one first. Both runtimes take that for a node. */
const ARM = ['v7', 'v6', 'v5'];
/** The variants that CRI-O chooses, the best one first, on nodes of architectures that report a variant. */
const CRIO_VARIANTS: ReadonlyMap<string, readonly string[]> = new Map([
  ['arm', [...ARM, '']],
  ['arm64', ['v8', '']],
]);
/** The only spellings that containerd knows besides Go's (containerd/platforms, `normalizeArch`). */
const CONTAINERD_NAMES: ReadonlyMap<string, string> = new Map([
  ['i386', '386'],
  ['x86_64', 'amd64'],
  ['x86-64', 'amd64'],
  ['aarch64', 'arm64'],
  ['armhf', 'arm'],
  ['armel', 'arm'],
]);
/** The variants that containerd reads as another one. `v1` of amd64 and `v8` of arm64 are what every CPU runs. */
const CONTAINERD_VARIANTS: ReadonlyMap<string, string> = new Map([
  ...['i386/', 'amd64/v1', 'arm64/8', 'arm64/v8', 'arm64/v8.0'].map((name) => [name, ''] as const),
  ...['arm/', 'arm/7'].map((name) => [name, 'v7'] as const),
  ...['5', '6', '8'].map((name) => [`arm/${name}`, `v${name}`] as const),
]);

/** Returns the nodes that a platform names, as containerd reads it. CRI-O knows no other names. */
export function nodeOf(platform: StatedPlatform): FitNode | undefined {
  const { os, architecture } = containerdNames(platform);
  if (os === 'linux') return normaliseArchitecture(architecture) === architecture ? { os, architecture } : undefined;
  const read = readPlatform(platform);
  return typeof read === 'string' ? undefined : { os: read.os, architecture: read.architecture };
}

/** Returns the names of all nodes that a platform may fit (`containerdFit`, `crioRank`), and perhaps of others. `node`: the one it names. */
export function nodesLike(platform: StatedPlatform, node: FitNode | undefined): ReadonlySet<string> {
  const { os, architecture } = containerdNames(platform);
  const names = new Set([`${os}/${architecture}`]);
  for (const [name, lesser] of LESSER) if (lesser === architecture) names.add(`${os}/${name}`);
  return node === undefined ? names : names.add(nameOf(node));
}

export function nameOf({ os, architecture }: FitNode): string {
  return `${os}/${architecture}`;
}

export function containerdNames({ os, architecture, variant }: StatedPlatform): FitNode & { readonly variant: string } {
  const lower = architecture.toLowerCase();
  const name = CONTAINERD_NAMES.get(lower) ?? lower;
  const level = variant.toLowerCase();
  const read = lower === 'armhf' ? 'v7' : lower === 'armel' ? 'v6' : CONTAINERD_VARIANTS.get(`${name}/${level}`);
  return { os: os.toLowerCase() || 'linux', architecture: name, variant: lower === 'i386' ? '' : (read ?? level) };
}

/** How an entry's platform fits a node for containerd. */
export type Fit = {
  /** Its place in containerd's order, 0 being best. */
  readonly rank: number;
  /** Whether it is of the node's own architecture. */
  readonly isOwn: boolean;
  /** Whether it is exactly for the node. The transfer service fetches no other. */
  readonly isExact: boolean;
};

/** Returns how an entry's platform fits a node; undefined: not at all. */
export function containerdFit(platform: StatedPlatform, node: FitNode): Fit | undefined {
  if (node.os !== 'linux') {
    const named = nodeOf(platform);
    return named !== undefined && nameOf(named) === nameOf(node) ? { rank: 0, isOwn: true, isExact: true } : undefined;
  }
  const { os, architecture, variant } = containerdNames(platform);
  if (os !== 'linux' || platform.hasFeatures) return undefined;
  const isOwn = architecture === node.architecture;
  if (!isOwn && architecture !== LESSER.get(node.architecture)) return undefined;
  // Nodes of arm64 run arm up to v8.
  const variants = architecture !== 'arm' ? [''] : isOwn ? ARM : ['v8', ...ARM];
  const rank = variants.indexOf(variant);
  return rank < 0
    ? undefined
    : { rank: isOwn ? rank : rank + 1, isOwn, isExact: isOwn && (rank === 0 || architecture === 'arm') };
}

/** Returns where in CRI-O's order a platform is, 0 being best; undefined: it does not fit. It compares texts as written. */
export function crioRank({ os, architecture, variant }: StatedPlatform, node: FitNode): number | undefined {
  if (os !== node.os || architecture !== node.architecture) return undefined;
  const rank = (CRIO_VARIANTS.get(architecture) ?? ['']).indexOf(variant);
  return rank < 0 ? undefined : rank;
}

export function printedName({ os, architecture, variant, hasFeatures }: StatedPlatform): string {
  const text = [os || '(no os)', architecture, variant].filter(Boolean).join('/');
  return `${printableAscii(text, 80)}${hasFeatures ? ' with os.features' : ''}`;
}
