import { expect } from 'chai';
import type { Platform } from '../../../src/kit/platform.ts';
import { parseManifest } from '../../../src/oci/manifest.ts';
import { type Child, select } from '../../../src/oci/selection.ts';
import { CONFIG, IMAGE, INDEX, sha256 } from '../server.ts';

const LIST = 'application/vnd.docker.distribution.manifest.list.v2+json';
const SCHEMA1 = 'application/vnd.docker.distribution.manifest.v1+json';

type Entry = { readonly value: Readonly<Record<string, unknown>>; readonly child?: Child };

let serial = 0;
/** `arm64/v9` as `linux/arm64/v9`; other systems are named. */
function full(text: string): string {
  return /^(linux|windows|unknown|)\//i.test(text) ? text : `linux/${text}`;
}

/** An entry for a platform, written as `amd64/v3`; the content behind it is not read. */
function entry(platform: string, more: object = {}): Entry {
  const [os, architecture, variant] = full(platform).split('/');
  const stated = { os, architecture, ...(variant === undefined ? {} : { variant }) };
  serial += 1;
  return { value: { mediaType: IMAGE, digest: sha256(`${platform} ${serial}`), platform: stated, ...more } };
}

/** An entry without a platform, whose config names this one; undefined: it is no image. */
function unnamed(platform: string | undefined, more: object = {}): Entry {
  serial += 1;
  const child: Child =
    platform === undefined ? { kind: 'refused', reason: 'a signature' } : { kind: 'image', platform: read(platform) };
  return { value: { mediaType: IMAGE, digest: sha256(`unnamed ${serial}`), ...more }, child };
}

function read(text: string): Platform {
  const [os = '', architecture = '', variant] = full(text).split('/');
  return variant === undefined ? { os, architecture } : { os, architecture, variant };
}

/** An entry that is an index of others; `platform` is what the entry says of itself. */
function nested(entries: readonly Entry[], platform?: string): Entry & { readonly inside: readonly Entry[] } {
  serial += 1;
  const digest = sha256(`nested ${serial}`);
  const [os, architecture] = platform === undefined ? [] : full(platform).split('/');
  const value = { mediaType: INDEX, digest, ...(platform === undefined ? {} : { platform: { os, architecture } }) };
  return { value, child: indexOf(entries, INDEX), inside: entries };
}

function indexOf(entries: readonly Entry[], mediaType: string) {
  const body = { schemaVersion: 2, mediaType, manifests: entries.map(({ value }) => value) };
  const parsed = parseManifest(Buffer.from(JSON.stringify(body)), mediaType);
  return parsed.kind === 'index' ? parsed : expect.fail(parsed.kind);
}

function childrenOf(entries: readonly (Entry & { readonly inside?: readonly Entry[] })[]): [string, Child][] {
  return entries.flatMap(({ value, child, inside = [] }) => [
    ...(child === undefined ? [] : [[String(value.digest), child] as [string, Child]]),
    ...childrenOf(inside),
  ]);
}

/** Reads what is asked for, and nothing else. */
function selected(entries: readonly Entry[], mediaType: string) {
  const root = indexOf(entries, mediaType);
  const all = new Map(childrenOf(entries));
  const children = new Map<string, Child>();
  let selection = select(root, children);
  while (selection.kind === 'needs') {
    for (const { digest } of selection.children) children.set(digest, all.get(digest) ?? expect.fail(digest));
    selection = select(root, children);
  }
  const names = selection.platforms.map(({ os, architecture, variant }) =>
    [os, architecture, variant].filter(Boolean).join('/'),
  );
  return {
    names,
    skipped: selection.skipped().map(({ reason }) => reason),
    only: selection.only,
    reads: children.size,
  };
}

const amd64 = (more: object = {}): Entry => entry('amd64', more);
const arm64 = (more: object = {}): Entry => entry('arm64', more);
const NOBODY = 'no container runtime takes it from an index';

type Row = readonly [what: string, entries: () => Entry[], expected: string, reason?: string, mediaType?: string];

describe('of an index, what counts', () => {
  const both: readonly Row[] = [
    ['usual entries', () => [amd64(), arm64()], 'amd64 arm64'],
    // F3 a
    ['amd64/v2', () => [entry('amd64/v2'), arm64()], 'arm64', `linux/amd64/v2: ${NOBODY}`],
    ['amd64/v3', () => [entry('amd64/v3'), arm64()], 'arm64', `linux/amd64/v3: ${NOBODY}`],
    ['amd64/v4', () => [entry('amd64/v4'), arm64()], 'arm64', `linux/amd64/v4: ${NOBODY}`],
    ['amd64/v3 and amd64', () => [entry('amd64/v3'), amd64()], 'amd64', `linux/amd64/v3: ${NOBODY}`],
    ['arm64/v8', () => [amd64(), entry('arm64/v8')], 'amd64 arm64/v8'],
    ['arm64/v9', () => [amd64(), entry('arm64/v9')], 'amd64', `linux/arm64/v9: ${NOBODY}`],
    ['arm/v6 and arm/v7', () => [entry('arm/v6'), entry('arm/v7')], 'arm/v6 arm/v7'],
    ['arm/v8', () => [amd64(), entry('arm/v8')], 'amd64', `linux/arm/v8: ${NOBODY}`],
    ['ppc64le/power10', () => [amd64(), entry('ppc64le/power10')], 'amd64', NOBODY],
    // F3 b
    [
      'several without a platform',
      () => [unnamed('amd64'), unnamed('arm64')],
      'amd64',
      'without a platform, and not the first such entry: container runtimes read only that one',
    ],
    [
      'a platform, and several without',
      () => [amd64(), unnamed('s390x'), unnamed('arm64')],
      'amd64 s390x',
      'not the first',
    ],
    [
      'a signature without a platform first',
      () => [arm64(), unnamed(undefined), unnamed('amd64')],
      'arm64',
      'a signature',
    ],
    ['none without a platform for its own', () => [unnamed('amd64'), amd64()], 'amd64'],
    ['the level of a config', () => [arm64(), unnamed('amd64/v3')], 'arm64', 'linux/amd64 by its config'],
    ['an entry without a platform in a Docker list', () => [arm64(), unnamed('amd64')], 'arm64', 'not what all', LIST],
    // F3 c
    // F3 d
    [
      'os.features',
      () => [amd64({ platform: { os: 'linux', architecture: 'amd64', 'os.features': ['erofs'] } }), arm64()],
      'arm64',
      'linux/amd64 with os.features: only CRI-O takes it',
    ],
    // F3 e
    ['no architecture', () => [arm64(), entry('linux/')], 'arm64', 'a platform without an architecture'],
    ['an empty platform', () => [arm64(), amd64({ platform: {} })], 'arm64', 'a platform without an architecture'],
    ['no operating system', () => [arm64(), entry('/amd64')], 'arm64', '(no os)/amd64: only containerd takes it'],
    // F3 f
    ['x86', () => [arm64(), entry('x86')], 'arm64', `linux/x86: ${NOBODY}`],
    ['i686', () => [arm64(), entry('i686')], 'arm64', `linux/i686: ${NOBODY}`],
    ['no GOARCH', () => [arm64(), entry('x64')], 'arm64', '"linux/x64", whose architecture is not a known GOARCH'],
    ['control characters', () => [arm64(), entry('\u001b[31mamd64\r\n')], 'arm64'],
    ['a blank', () => [arm64(), entry('linux/ amd64')], 'arm64', `linux/ amd64: ${NOBODY}`],
    ['x86_64', () => [arm64(), entry('x86_64')], 'arm64', 'linux/x86_64: only containerd takes it'],
    ['capitals', () => [arm64(), entry('Linux/AMD64')], 'arm64', 'Linux/AMD64: only containerd takes it'],
    // F3 g
    [
      'no media type',
      () => [arm64(), amd64({ mediaType: undefined })],
      'arm64',
      'linux/amd64 without a media type: only CRI-O takes it',
    ],
    [
      'Docker schema 1',
      () => [arm64(), amd64({ mediaType: SCHEMA1 })],
      'arm64',
      'linux/amd64 of Docker schema 1, which containerd no longer runs',
    ],
    [
      'the first of two of Docker schema 1',
      () => [amd64({ mediaType: SCHEMA1 }), amd64(), arm64()],
      'arm64',
      'linux/amd64 of Docker schema 1',
    ],
    ['nothing but Docker schema 1', () => [amd64({ mediaType: SCHEMA1 }), amd64({ mediaType: CONFIG })], ''],
    // F10
    ['an artifact type beside a platform', () => [amd64({ artifactType: 'application/x' })], 'amd64'],
    [
      'an attestation',
      () => [arm64(), amd64({ annotations: { 'vnd.docker.reference.type': 'attestation-manifest' } })],
      'arm64',
      'an attestation',
    ],
    ['unknown', () => [amd64(), entry('unknown/unknown')], 'amd64', 'the platform "unknown/unknown"'],
    ['another type', () => [arm64(), amd64({ mediaType: CONFIG })], 'arm64', `of type "${CONFIG}"`],
    [
      'the first of two, if that cannot be used',
      () => [amd64({ mediaType: CONFIG }), amd64(), arm64()],
      'arm64',
      'another entry',
    ],
    ['no digest', () => [arm64(), amd64({ digest: 'x' })], 'arm64', 'an entry without a digest that can be verified'],
    ['386 beside an amd64 that fails', () => [amd64({ mediaType: CONFIG }), entry('386'), arm64()], '386 arm64'],
    ['arm/v6 alone', () => [entry('arm/v6'), arm64()], 'arm/v6 arm64'],
    ['one without a platform', () => [unnamed('amd64')], 'amd64'],
    [
      'one without a platform beside an unknown one',
      () => [arm64(), unnamed('amd64'), entry('unknown/unknown')],
      'amd64 arm64',
    ],
    [
      'one without a platform beside one of another type',
      () => [unnamed('amd64'), arm64({ mediaType: CONFIG })],
      'amd64',
    ],
    [
      'an entry without a platform that has one, too',
      () => {
        const { value, child } = unnamed('amd64');
        return [
          { value, child: child ?? expect.fail() },
          { value: { ...value, platform: { os: 'linux', architecture: 's390x' } } },
        ];
      },
      'amd64 s390x',
    ],
    [
      'two entries for one platform',
      () => [amd64({ digest: sha256('one') }), amd64(), arm64()],
      'amd64 amd64 arm64',
      `a second entry for linux/amd64: container runtimes take ${sha256('one').slice(0, 19)}...`,
    ],
    [
      'two entries for one platform, one of them with zstd',
      () => [
        amd64({ digest: sha256('one') }),
        amd64({ annotations: { 'io.github.containers.compression.zstd': 'true' } }),
      ],
      'amd64 amd64',
      `a second entry for linux/amd64: CRI-O takes it, and containerd takes ${sha256('one').slice(0, 19)}...`,
    ],
    ['386 alone', () => [entry('386'), arm64()], '386 arm64'],
    [
      'zstd beside gzip',
      () => [amd64(), amd64({ annotations: { 'io.github.containers.compression.zstd': 'true' } })],
      'amd64 amd64',
    ],
    ['versions of Windows', () => [entry('windows/amd64'), arm64()], 'arm64 windows/amd64'],
    ['nothing', () => [], ''],
  ];
  for (const [what, entries, expected, reason, mediaType = INDEX] of both) {
    it(`with ${what}: ${expected || 'nothing'}`, () => {
      const { names, skipped, only } = selected(entries(), mediaType);
      expect(names.sort().join(' ').replaceAll('linux/', '')).to.equal(expected);
      expect(only).to.equal(undefined);
      if (reason !== undefined) expect(skipped.join('\n')).to.include(reason);
      for (const each of skipped) expect(each).to.match(/^[\x20-\x7e]{1,300}$/);
    });
  }

  const alone: readonly (readonly [
    what: string,
    entries: () => Entry[],
    expected: string,
    only: string,
    mediaType?: string,
  ])[] = [
    ['amd64/v1', () => [entry('amd64/v1')], 'amd64/v1', 'containerd'],
    ['no operating system', () => [entry('/amd64')], 'amd64', 'containerd'],
    ['x86_64 and aarch64', () => [entry('x86_64'), entry('aarch64')], 'amd64 arm64', 'containerd'],
    ['a nested index for arm64', () => [nested([amd64(), arm64()], 'arm64')], 'arm64', 'containerd'],
    [
      'amd64, and a nested index for arm64',
      () => [amd64(), nested([amd64(), arm64()], 'arm64')],
      'amd64 arm64',
      'containerd',
    ],
    [
      'amd64, and a nested index without a platform',
      () => [amd64(), nested([arm64(), entry('s390x')])],
      'amd64 arm64 s390x',
      'containerd',
    ],
    ['a nested index without a platform', () => [nested([amd64(), arm64()])], 'amd64 arm64', 'containerd'],
    ['two nested indexes without a platform', () => [nested([arm64()]), nested([amd64()])], 'arm64', 'containerd'],
    ['a Docker list without platforms', () => [unnamed('arm64')], 'arm64', 'containerd', LIST],
    ['no media type', () => [amd64({ mediaType: undefined })], 'amd64', 'CRI-O'],
    [
      'no media type, and Docker schema 1',
      () => [amd64({ mediaType: SCHEMA1 }), arm64({ mediaType: undefined })],
      'arm64',
      'CRI-O',
    ],
    [
      'os.features',
      () => [amd64({ platform: { os: 'linux', architecture: 'amd64', 'os.features': ['nydus'] } })],
      'amd64',
      'CRI-O',
    ],
  ];
  for (const [what, entries, expected, only, mediaType = INDEX] of alone) {
    it(`with nothing but ${what}: ${expected}, for ${only} alone`, () => {
      const found = selected(entries(), mediaType);
      expect(found.names.join(' ').replaceAll('linux/', '')).to.equal(expected);
      expect(found.only).to.equal(only);
    });
  }

  const none: readonly (readonly [what: string, entries: () => Entry[]])[] = [
    ['amd64/v3', () => [entry('amd64/v3')]],
    ['arm64/v9', () => [entry('arm64/v9')]],
    ['x86', () => [entry('x86')]],
    ['a platform without an architecture', () => [entry('linux/')]],
    ['a signature first', () => [unnamed(undefined), unnamed('amd64')]],
  ];
  for (const [what, entries] of none) {
    it(`with nothing but ${what}: nothing`, () => {
      expect(selected(entries(), INDEX)).to.deep.include({ names: [], only: undefined });
    });
  }

  const reads: readonly (readonly [what: string, entries: () => Entry[], reads: number])[] = [
    ['no entry that has a platform', () => [amd64(), arm64(), entry('windows/amd64')], 0],
    ['one of many entries without a platform', () => [unnamed('amd64'), unnamed('arm64'), unnamed('arm')], 1],
    ['no nested index that no node chooses', () => [amd64(), nested([amd64()], 'amd64')], 0],
    ['a nested index once', () => [nested([nested([amd64(), arm64()])])], 2],
  ];
  for (const [what, entries, count] of reads) {
    it(`is found out by reading ${what}`, () => expect(selected(entries(), INDEX).reads).to.equal(count));
  }
});
