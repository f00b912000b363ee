import { createHash } from 'node:crypto';

/** An index of images, and all that it leads to, by digest. */
export type Tree = {
  readonly root: { readonly mediaType: string; readonly digest: string; readonly size: number };
  readonly objects: Readonly<Record<string, string>>;
};

/** The nodes for which runtimes choose, with the variants that Linux reports for the oldest CPUs that run a kubelet. */
export const NODES: readonly { readonly os: string; readonly architecture: string; readonly variant?: string }[] = [
  { os: 'linux', architecture: 'amd64' },
  { os: 'linux', architecture: 'arm64', variant: 'v8' },
  ...['s390x', 'ppc64le', 'riscv64', '386'].map((architecture) => ({ os: 'linux', architecture })),
  { os: 'linux', architecture: 'arm', variant: 'v7' },
];

const OCI = {
  index: 'application/vnd.oci.image.index.v1+json',
  image: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
};
const DOCKER = {
  index: 'application/vnd.docker.distribution.manifest.list.v2+json',
  image: 'application/vnd.docker.distribution.manifest.v2+json',
  config: 'application/vnd.docker.container.image.v1+json',
};
const USUAL = ['amd64', 'amd64', 'arm64', 'arm64', 's390x', 'ppc64le', 'riscv64', '386', 'arm'];
const DEEPEST = 2;

const VARIANTS: Readonly<Record<string, readonly string[]>> = {
  amd64: ['v1', 'v2', 'v3', 'v4', 'V1'],
  arm64: ['v8', 'v8', 'v8.0', '8', 'v8.2', 'v9', 'v9.0'],
  arm: ['v5', 'v6', 'v7', '7', 'v8', '6'],
  s390x: ['z15'],
  ppc64le: ['power10'],
  riscv64: ['rva23u64'],
  '386': ['softfloat'],
};
/** Other spellings, some of which a runtime reads, with the architecture of the image behind them. */
const SPELLINGS: readonly (readonly [os: string, name: string, architecture: string])[] = [
  ['linux', 'x86_64', 'amd64'],
  ['linux', 'x86-64', 'amd64'],
  ['linux', 'aarch64', 'arm64'],
  ['linux', 'AMD64', 'amd64'],
  ['Linux', 'amd64', 'amd64'],
  ['linux', 'x86', '386'],
  ['linux', 'i686', '386'],
  ['linux', 'i386', '386'],
  ['linux', 'armhf', 'arm'],
  ['linux', 'armel', 'arm'],
  ['linux', ' amd64', 'amd64'],
  [' linux', 'amd64', 'amd64'],
  ['', 'amd64', 'amd64'],
  ['', 'arm64', 'arm64'],
  ['linux', '', 'amd64'],
  ['', '', 'amd64'],
];

/**
 * Returns random indexes; the same seed gives the same ones. Images are what their entries say, and all that has a platform exists:
 * nobody can know otherwise without a request for each entry.
 */
export function treesOf(seed: number, count: number): Tree[] {
  const random = randomFrom(seed);
  return Array.from({ length: count }, () => treeOf(random));
}

function treeOf(random: () => number): Tree {
  const objects: Record<string, string> = {};
  let serial = 0;
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] ?? pick(list);
  const chance = (probability: number): boolean => random() < probability;
  const put = (mediaType: string, value: unknown) => {
    const body = JSON.stringify(value);
    const digest = digestOf(body);
    objects[digest] = body;
    return { mediaType, digest, size: body.length };
  };
  function image(architecture: string, more: object = {}) {
    const types = chance(0.3) ? DOCKER : OCI;
    serial += 1;
    const { digest, size } = put(types.config, { os: 'linux', architecture, author: `${serial}`, ...more });
    const config = { mediaType: chance(0.03) ? 'application/octet-stream' : types.config, digest, size };
    return put(types.image, { schemaVersion: 2, mediaType: types.image, config, layers: [] });
  }

  function entry(depth: number): object {
    const architecture = pick(USUAL);
    const platform = { os: 'linux', architecture };
    const [os, name, meant] = pick(SPELLINGS);
    const rows: readonly (readonly [weight: number, make: () => object])[] = [
      [40, () => ({ ...image(architecture), platform })],
      [depth < DEEPEST ? 6 : 0, () => index(depth + 1)],
      [depth < DEEPEST ? 6 : 0, () => ({ ...index(depth + 1), platform })],
      [8, () => image(architecture)],
      [2, () => image('amd64', { variant: 'v3' })],
      [2, () => ({ ...image(architecture), annotations: ZSTD })],
      [2, () => ({ ...image(architecture), platform, annotations: ZSTD })],
      [1, () => ({ mediaType: OCI.image, digest: digestOf(`${serial++}`), size: 1 })],
      [2, () => put(OCI.image, { ...EMPTY_CONFIG, artifactType: 'application/x' })],
      [
        6,
        () => ({ ...image('unknown'), platform: { os: 'unknown', architecture: 'unknown' }, annotations: ATTESTATION }),
      ],
      [3, () => ({ ...image(architecture), platform: { os: 'windows', architecture, 'os.version': '10.0' } })],
      [3, () => ({ ...image(architecture), platform: { ...platform, 'os.features': ['x'] } })],
      [1, () => ({ ...image(architecture), platform: { ...platform, 'os.features': [] } })],
      [2, () => ({ ...image(architecture), platform, artifactType: 'application/x' })],
      [8, () => ({ ...image(architecture), platform: { ...platform, variant: pick(VARIANTS[architecture] ?? []) } })],
      [5, () => ({ ...image(meant), platform: { ...(os && { os }), ...(name && { architecture: name }) } })],
      [2, () => ({ ...put('application/vnd.acme+json', { serial: serial++ }), platform })],
      [2, () => ({ ...image(architecture), platform, mediaType: undefined })],
      [depth === 0 ? 1 : 0, () => ({ ...image(architecture), platform, ...pick(WRONG_TYPES)(platform) })],
    ];
    let left = random() * rows.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, make] of rows) {
      left -= weight;
      if (left < 0) return make();
    }
    return {};
  }

  function index(depth: number) {
    const type = chance(0.6) ? OCI.index : DOCKER.index;
    const isTyped = type === DOCKER.index || chance(0.9);
    const manifests = Array.from({ length: Math.floor(random() * 4) + (depth === 0 ? 1 : 0) }, () => entry(depth));
    return put(type, { schemaVersion: 2, ...(isTyped ? { mediaType: type } : {}), manifests });
  }

  const root = index(0);
  return { root, objects };
}

/** Fields of types that Go's decoder refuses, and some that it does not. */
const WRONG_TYPES: readonly ((platform: object) => object)[] = [
  ...[{ platform: 'linux/amd64' }, { platform: null }, { size: '5' }, { mediaType: 5 }].map((wrong) => () => wrong),
  ...[{ annotations: { a: 5 } }, { annotations: null }].map((wrong) => () => wrong),
  ...[{ variant: 5 }, { variant: null }, { 'os.version': 5 }, { 'os.features': 'x' }, { 'os.features': null }].map(
    (wrong) => (platform: object) => ({ platform: { ...platform, ...wrong } }),
  ),
];
const ZSTD = { 'io.github.containers.compression.zstd': 'true' };
const ATTESTATION = { 'vnd.docker.reference.type': 'attestation-manifest' };
const EMPTY_CONFIG = {
  schemaVersion: 2,
  mediaType: OCI.image,
  config: { mediaType: 'application/vnd.oci.empty.v1+json', digest: digestOf('{}'), size: 2 },
  layers: [],
};

function digestOf(body: string): string {
  return `sha256:${createHash('sha256').update(body).digest('hex')}`;
}

/** A linear congruential generator (the constants of Numerical Recipes): the same numbers on every machine. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}
