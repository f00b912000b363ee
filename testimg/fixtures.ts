/** Every shape that an image can have in a registry, each with what a resolver must find out about it. */

import type { Platform } from '../src/kit/platform.ts';
import type { ImageErrorCode } from '../src/oci/errors.ts';
import {
  artifact,
  attestation,
  descriptorOf,
  type FixturePlatform,
  type ImageFixture,
  image,
  index,
  MEDIA_TYPES,
  multiPlatform,
  schema1,
} from './build.ts';
import { elf, type LayerEntry, layeredImage } from './layers.ts';

/** The repository below a namespace that `update.sh` fills. */
export const TESTIMG_REPOSITORY = 'archaware-testimg';

/** What a resolver must answer: the platforms as a set (order and repetition do not count), or an error. */
export type Expected =
  | { readonly platforms: readonly Platform[] }
  | { readonly error: ImageErrorCode /** What the error's message must contain. */; readonly message: RegExp };

export type Fixture = {
  /** Also the tag under which it is pushed. */
  readonly tag: string;
  readonly description: string;
  readonly build: () => ImageFixture;
  readonly expected: Expected;
  /** What `inspect --deep` must say of each platform, in the order of the index; absent: the images start nothing. */
  readonly deep?: readonly string[];
  /** Why a registry may refuse to store it. The pusher then skips it, and tests against that registry do too. */
  readonly refusable?: string;
};

const linux = (architecture: string, variant?: string): FixturePlatform & Platform =>
  variant === undefined ? { os: 'linux', architecture } : { os: 'linux', architecture, variant };

const windows = (version?: string): FixturePlatform & Platform => ({
  os: 'windows',
  architecture: 'amd64',
  ...(version === undefined ? {} : { 'os.version': version }),
});

const AMD64 = linux('amd64');
const ARM64 = linux('arm64');
const BOTH = [AMD64, ARM64];
const WIDE = [
  AMD64,
  linux('arm', 'v5'),
  linux('arm', 'v7'),
  linux('arm64', 'v8'),
  linux('386'),
  linux('ppc64le'),
  linux('s390x'),
  linux('riscv64'),
];
const WINDOWS_VERSIONS = ['10.0.17763.6893', '10.0.20348.3207', '10.0.26100.3194'];

/** An image whose config states a platform, and whose program is for an architecture: both may be lies. */
function starts(stated: FixturePlatform, architecture: Parameters<typeof elf>[0]): ImageFixture {
  const below: readonly LayerEntry[] = [
    { name: 'usr/bin/', type: '5' },
    { name: 'bin', target: 'usr/bin' },
  ];
  const program = { name: 'usr/bin/app', bytes: elf(architecture) };
  return layeredImage(stated, [below, [program]], { Entrypoint: ['/bin/app'] });
}

/** The table. Tags are unique; none depends on another. */
export const FIXTURES: readonly Fixture[] = [
  {
    tag: 'multi',
    description: 'OCI index of two architectures',
    build: () => multiPlatform(BOTH),
    expected: { platforms: BOTH },
  },
  {
    tag: 'wide',
    description: 'OCI index of eight platforms with variants',
    build: () => multiPlatform(WIDE),
    expected: { platforms: WIDE },
  },
  {
    tag: 'riscv64',
    description: 'OCI index of riscv64 only',
    build: () => multiPlatform([linux('riscv64')]),
    expected: { platforms: [linux('riscv64')] },
  },
  {
    tag: 'amd64',
    description: 'single OCI manifest, amd64',
    build: () => image(AMD64),
    expected: { platforms: [AMD64] },
  },
  {
    tag: 'arm64',
    description: 'single OCI manifest, arm64 with a variant',
    build: () => image(linux('arm64', 'v8')),
    expected: { platforms: [linux('arm64', 'v8')] },
  },
  {
    tag: 'docker-list',
    description: 'Docker manifest list',
    build: () => multiPlatform([AMD64, linux('arm64', 'v8')], { flavour: 'docker' }),
    expected: { platforms: [AMD64, linux('arm64', 'v8')] },
  },
  {
    tag: 'docker-single',
    description: 'single Docker schema 2 manifest',
    build: () => image(ARM64, { flavour: 'docker' }),
    expected: { platforms: [ARM64] },
  },
  {
    tag: 'mixed',
    description: 'OCI index of Docker schema 2 manifests',
    build: () => index(BOTH.map((platform) => ({ of: image(platform, { flavour: 'docker' }), platform }))),
    expected: { platforms: BOTH },
    refusable: 'some registries do not mix the two formats',
  },
  {
    tag: 'untyped',
    description: 'OCI index whose body names no media type (OCI 1.0)',
    build: () =>
      index(
        BOTH.map((platform) => ({ of: image(platform, { typed: false }), platform })),
        { typed: false },
      ),
    expected: { platforms: BOTH },
  },
  {
    tag: 'nested',
    description: 'OCI index that holds an image and another index',
    build: () => index([{ of: image(AMD64), platform: AMD64 }, { of: multiPlatform([ARM64, linux('s390x')]) }]),
    expected: { platforms: [AMD64, ARM64, linux('s390x')] },
    refusable: 'nested indexes are not stored everywhere',
  },
  {
    tag: 'unnamed',
    description: 'OCI index with an entry without platform; its config blob answers',
    build: () => index([{ of: image(AMD64), platform: AMD64 }, { of: image(ARM64) }]),
    expected: { platforms: BOTH },
    refusable: 'some registries insist on a platform in each entry',
  },
  {
    tag: 'attestations',
    description: 'OCI index with an attestation (unknown/unknown) beside each image',
    build: () =>
      index(
        BOTH.map((platform) => ({ of: image(platform), platform })).flatMap((entry) => [entry, attestation(entry.of)]),
      ),
    expected: { platforms: BOTH },
  },
  {
    tag: 'companion',
    description: 'OCI index that holds an artifact, which says nothing of a platform, beside its image',
    build: () =>
      index([
        { of: image(AMD64), platform: AMD64 },
        {
          of: artifact({
            configType: MEDIA_TYPES.ociEmpty,
            layerType: 'text/spdx+json',
            artifactType: 'text/spdx+json',
          }),
        },
      ]),
    expected: { platforms: [AMD64] },
    refusable: 'some registries insist on a platform in each entry',
  },
  {
    tag: 'windows-mixed',
    description: 'one tag for Linux and for several versions of Windows',
    build: () => multiPlatform([...BOTH, ...WINDOWS_VERSIONS.map(windows)]),
    expected: { platforms: [...BOTH, windows()] },
  },
  {
    tag: 'windows',
    description: 'OCI index of Windows only',
    build: () => multiPlatform(WINDOWS_VERSIONS.map(windows)),
    expected: { platforms: [windows()] },
  },
  {
    tag: 'aliases',
    description: 'OCI index that says x86_64 and aarch64',
    build: () => multiPlatform([linux('x86_64'), linux('aarch64')]),
    expected: { platforms: BOTH },
    refusable: 'some registries check names of architectures',
  },
  {
    tag: 'alias-single',
    description: 'single manifest whose config blob says aarch64',
    build: () => image(linux('aarch64')),
    expected: { platforms: [ARM64] },
    refusable: 'some registries check names of architectures',
  },
  {
    tag: 'strange',
    description: 'single manifest whose config blob says armv7l, a name that Go does not have',
    build: () => image(linux('armv7l')),
    expected: { error: 'unsupported', message: /linux\/armv7l/ },
    refusable: 'some registries check names of architectures',
  },
  {
    tag: 'strange-entry',
    description: 'OCI index that says amd64, and x64, a name that Go does not have',
    build: () => multiPlatform([AMD64, linux('x64')]),
    expected: { platforms: [AMD64] },
    refusable: 'some registries check names of architectures',
  },
  {
    tag: 'sparse',
    description: 'OCI index that names a child which the registry does not have',
    build: () =>
      index([
        { of: image(AMD64), platform: AMD64 },
        { of: image(linux('arm64', 'v9')), platform: ARM64, absent: true },
      ]),
    expected: { platforms: BOTH },
    refusable: 'most registries want all children of an index',
  },
  {
    tag: 'no-platform',
    description: 'single manifest whose config blob names no platform',
    build: () => image({}),
    expected: { error: 'malformed', message: /names no architecture/ },
    refusable: 'the image specification requires os and architecture',
  },
  {
    tag: 'empty',
    description: 'OCI index without entries',
    build: () => index([]),
    expected: { error: 'unsupported', message: /platform|empty|no image/i },
    refusable: 'some registries want at least one child',
  },
  {
    tag: 'helm-chart',
    description: 'Helm chart: an artifact that is not an image',
    build: () =>
      artifact({
        configType: 'application/vnd.cncf.helm.config.v1+json',
        layerType: 'application/vnd.cncf.helm.chart.content.v1.tar+gzip',
      }),
    expected: { error: 'unsupported', message: /helm|image/i },
    refusable: 'some registries store images only',
  },
  {
    tag: 'artifact',
    description: 'OCI 1.1 artifact with the empty config',
    build: () =>
      artifact({
        artifactType: 'application/vnd.example.archaware',
        configType: MEDIA_TYPES.ociEmpty,
        layerType: 'application/vnd.example.archaware.layer',
      }),
    expected: { error: 'unsupported', message: /artifact|image/i },
    refusable: 'some registries store images only',
  },
  {
    tag: 'schema1',
    description: 'signed Docker schema 1 manifest',
    build: () => schema1(TESTIMG_REPOSITORY, 'schema1'),
    expected: { error: 'unsupported', message: /schema 1/i },
    refusable: 'schema 1 is gone from most registries',
  },
  {
    tag: 'ambiguous',
    description: 'OCI index whose body has layers as well (CVE-2021-41190)',
    build: () => {
      const child = image(ARM64);
      const layers = child.blobs.filter(({ mediaType }) => mediaType === MEDIA_TYPES.ociLayer);
      const extra = { layers: layers.map((layer) => descriptorOf(layer)) };
      return index([{ of: child, platform: ARM64 }], { extra });
    },
    expected: { error: 'malformed', message: /layers/i },
    refusable: 'a manifest that can be read as two things',
  },
  {
    tag: 'honest',
    description: 'OCI index whose programs are what it says',
    build: () =>
      index([AMD64, ARM64].map((platform) => ({ of: starts(platform, architectureOf(platform)), platform }))),
    expected: { platforms: BOTH },
    deep: ['agrees', 'agrees'],
  },
  {
    tag: 'lies-arm64',
    description: 'OCI index whose arm64 entry holds a program for amd64',
    build: () => index([AMD64, ARM64].map((platform) => ({ of: starts(platform, 'amd64'), platform }))),
    expected: { platforms: BOTH },
    deep: ['agrees', 'lies'],
  },
  {
    tag: 'lies-amd64',
    description: 'OCI index whose amd64 entry holds a program for arm64',
    build: () => index([AMD64, ARM64].map((platform) => ({ of: starts(platform, 'arm64'), platform }))),
    expected: { platforms: BOTH },
    deep: ['lies', 'agrees'],
  },
  {
    tag: 'lies-whole',
    description: 'OCI index whose arm64 entry is the image for amd64, its config included',
    build: () => index([AMD64, ARM64].map((platform) => ({ of: starts(AMD64, 'amd64'), platform }))),
    expected: { platforms: BOTH },
    deep: ['agrees', 'lies'],
  },
  {
    tag: 'lies-single',
    description: 'single manifest for arm64 with a program for amd64',
    build: () => starts(ARM64, 'amd64'),
    expected: { platforms: [ARM64] },
    deep: ['lies'],
  },
];

function architectureOf({ architecture }: FixturePlatform): 'amd64' | 'arm64' {
  return architecture === 'arm64' ? 'arm64' : 'amd64';
}
