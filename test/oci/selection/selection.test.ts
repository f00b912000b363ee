import { expect } from 'chai';
import type { Platform } from '../../../src/kit/platform.ts';
import { parseManifest } from '../../../src/oci/manifest.ts';
import { type Child, select } from '../../../src/oci/selection.ts';
import { CONFIG, IMAGE, INDEX, sha256 } from '../server.ts';

const LIST = 'application/vnd.docker.distribution.manifest.list.v2+json';
const SCHEMA1 = 'application/vnd.docker.distribution.manifest.v1+json';

type Entry = {
  readonly value: Readonly<Record<string, unknown>>;
  readonly child?: Child;
  readonly inside?: readonly Entry[];
};

/** What an entry may say beside its platform, or in its place. */
const MARKS: Readonly<Record<string, object>> = {
  zstd: { annotations: { 'io.github.containers.compression.zstd': 'true' } },
  attestation: { annotations: { 'vnd.docker.reference.type': 'attestation-manifest' } },
  artifact: { artifactType: 'application/x' },
  features: { platform: { os: 'linux', architecture: 'amd64', 'os.features': ['erofs'] } },
  empty: { platform: {} },
  untyped: { mediaType: undefined },
  schema1: { mediaType: SCHEMA1 },
  config: { mediaType: CONFIG },
  invalid: { digest: 'x' },
  one: { digest: sha256('one') },
};

let serial = 0;

/**
 * Reads entries. `amd64/v3`: an image for that platform, on linux if it names no system; `amd64+zstd`: with one of {@link MARKS}. `?amd64`: an
 * entry without a platform, whose config names this one; `?`: it is no image. `[…]`: an index of others, and `arm64=[…]` if it says so.
 */
function entriesOf(text: string): Entry[] {
  return readEntries(text.replace(/[[\]]/g, ' $& ').split(' ').filter(Boolean));
}

function readEntries(tokens: string[]): Entry[] {
  const entries: Entry[] = [];
  for (let token = tokens.shift(); token !== undefined && token !== ']'; token = tokens.shift()) {
    serial += 1;
    const [text = '', mark = ''] = token.split('+');
    const name = text.replace(/[?[=]/g, '');
    const platform = name === '' ? undefined : read(decodeURIComponent(name));
    const value = { mediaType: IMAGE, digest: sha256(`${serial}`), ...(platform && { platform }), ...MARKS[mark] };
    if (text.startsWith('?')) {
      const child: Child = platform ? { kind: 'image', platform } : { kind: 'refused', reason: 'a signature' };
      entries.push({ value: { ...value, platform: undefined }, child });
    } else if (/[[=]$/.test(text)) {
      if (text !== '[') tokens.shift();
      const inside = readEntries(tokens);
      entries.push({ value: { ...value, mediaType: INDEX }, child: indexOf(inside, INDEX), inside });
    } else entries.push({ value });
  }
  return entries;
}

function read(text: string): Platform {
  const full = /^(linux|windows|unknown|)\//i.test(text) ? text : `linux/${text}`;
  const [os = '', architecture = '', variant] = full.split('/');
  return variant === undefined ? { os, architecture } : { os, architecture, variant };
}

function indexOf(entries: readonly Entry[], mediaType: string) {
  const body = { schemaVersion: 2, mediaType, manifests: entries.map(({ value }) => value) };
  const parsed = parseManifest(Buffer.from(JSON.stringify(body)), mediaType);
  return parsed.kind === 'index' ? parsed : expect.fail(parsed.kind);
}

function childrenOf(entries: readonly Entry[]): [string, Child][] {
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

const NOBODY = 'no container runtime takes it from an index';

type Row = readonly [what: string, entries: string, expected: string, reason?: string, mediaType?: string];

describe('of an index, what counts', () => {
  const both: readonly Row[] = [
    ['usual entries', 'amd64 arm64', 'amd64 arm64'],
    // F3 a
    ['amd64/v2', 'amd64/v2 arm64', 'arm64', `linux/amd64/v2: ${NOBODY}`],
    ['amd64/v3', 'amd64/v3 arm64', 'arm64', `linux/amd64/v3: ${NOBODY}`],
    ['amd64/v4', 'amd64/v4 arm64', 'arm64', `linux/amd64/v4: ${NOBODY}`],
    ['amd64/v3 and amd64', 'amd64/v3 amd64', 'amd64', `linux/amd64/v3: ${NOBODY}`],
    ['arm64/v8', 'amd64 arm64/v8', 'amd64 arm64/v8'],
    ['arm64/v9', 'amd64 arm64/v9', 'amd64', `linux/arm64/v9: ${NOBODY}`],
    ['arm/v6 and arm/v7', 'arm/v6 arm/v7', 'arm/v6 arm/v7'],
    ['arm/v8', 'amd64 arm/v8', 'amd64', `linux/arm/v8: ${NOBODY}`],
    ['ppc64le/power10', 'amd64 ppc64le/power10', 'amd64', NOBODY],
    // F3 b
    [
      'several without a platform',
      '?amd64 ?arm64',
      'amd64',
      'without a platform, and not the first such entry: container runtimes read only that one',
    ],
    ['a platform, and several without', 'amd64 ?s390x ?arm64', 'amd64 s390x', 'not the first'],
    ['a signature without a platform first', 'arm64 ? ?amd64', 'arm64', 'a signature'],
    ['none without a platform for its own', '?amd64 amd64', 'amd64'],
    ['the level of a config', 'arm64 ?amd64/v3', 'arm64', 'linux/amd64 by its config'],
    ['an entry without a platform in a Docker list', 'arm64 ?amd64', 'arm64', 'not what all', LIST],
    // F3 c
    // F3 d
    ['os.features', 'amd64+features arm64', 'arm64', 'linux/amd64 with os.features: only CRI-O takes it'],
    // F3 e
    ['no architecture', 'arm64 linux/', 'arm64', 'a platform without an architecture'],
    ['an empty platform', 'arm64 amd64+empty', 'arm64', 'a platform without an architecture'],
    ['no operating system', 'arm64 /amd64', 'arm64', '(no os)/amd64: only containerd takes it'],
    // F3 f
    ['x86', 'arm64 x86', 'arm64', `linux/x86: ${NOBODY}`],
    ['i686', 'arm64 i686', 'arm64', `linux/i686: ${NOBODY}`],
    ['no GOARCH', 'arm64 x64', 'arm64', '"linux/x64", whose architecture is not a known GOARCH'],
    ['control characters', 'arm64 %1b[31mamd64%0d%0a', 'arm64'],
    ['a blank', 'arm64 linux/%20amd64', 'arm64', `linux/ amd64: ${NOBODY}`],
    ['x86_64', 'arm64 x86_64', 'arm64', 'linux/x86_64: only containerd takes it'],
    ['capitals', 'arm64 Linux/AMD64', 'arm64', 'Linux/AMD64: only containerd takes it'],
    // F3 g
    ['no media type', 'arm64 amd64+untyped', 'arm64', 'linux/amd64 without a media type: only CRI-O takes it'],
    ['schema 1', 'arm64 amd64+schema1', 'arm64', 'linux/amd64 of Docker schema 1, which containerd no longer runs'],
    ['the first of two of Docker schema 1', 'amd64+schema1 amd64 arm64', 'arm64', 'linux/amd64 of Docker schema 1'],
    ['nothing but Docker schema 1', 'amd64+schema1 amd64+config', ''],
    // F10
    ['an artifact type beside a platform', 'amd64+artifact', 'amd64'],
    ['an attestation', 'arm64 amd64+attestation', 'arm64', 'an attestation'],
    ['unknown', 'amd64 unknown/unknown', 'amd64', 'the platform "unknown/unknown"'],
    ['another type', 'arm64 amd64+config', 'arm64', `of type "${CONFIG}"`],
    ['the first of two, if that cannot be used', 'amd64+config amd64 arm64', 'arm64', 'another entry'],
    ['no digest', 'arm64 amd64+invalid', 'arm64', 'an entry without a digest that can be verified'],
    ['386 beside an amd64 that fails', 'amd64+config 386 arm64', '386 arm64'],
    ['arm/v6 alone', 'arm/v6 arm64', 'arm/v6 arm64'],
    ['one without a platform', '?amd64', 'amd64'],
    ['one without a platform beside an unknown one', 'arm64 ?amd64 unknown/unknown', 'amd64 arm64'],
    ['one without a platform beside one of another type', '?amd64 arm64+config', 'amd64'],
    ['an entry without a platform that has one, too', '?amd64+one s390x+one', 'amd64 s390x'],
    [
      'two entries for one platform',
      'amd64+one amd64 arm64',
      'amd64 amd64 arm64',
      `a second entry for linux/amd64: container runtimes take ${sha256('one').slice(0, 19)}...`,
    ],
    [
      'two entries for one platform, one of them with zstd',
      'amd64+one amd64+zstd',
      'amd64 amd64',
      `a second entry for linux/amd64: CRI-O takes it, and containerd takes ${sha256('one').slice(0, 19)}...`,
    ],
    ['386 alone', '386 arm64', '386 arm64'],
    ['zstd beside gzip', 'amd64 amd64+zstd', 'amd64 amd64'],
    ['versions of Windows', 'windows/amd64 arm64', 'arm64 windows/amd64'],
    ['nothing', '', ''],
    ['nothing but amd64/v3', 'amd64/v3', ''],
    ['nothing but arm64/v9', 'arm64/v9', ''],
    ['nothing but x86', 'x86', ''],
    ['nothing but a platform without an architecture', 'linux/', ''],
    ['nothing but a signature first', '? ?amd64', ''],
  ];
  for (const [what, entries, expected, reason, mediaType = INDEX] of both) {
    it(`with ${what}: ${expected || 'nothing'}`, () => {
      const { names, skipped, only } = selected(entriesOf(entries), mediaType);
      expect(names.sort().join(' ').replaceAll('linux/', '')).to.equal(expected);
      expect(only).to.equal(undefined);
      if (reason !== undefined) expect(skipped.join('\n')).to.include(reason);
      for (const each of skipped) expect(each).to.match(/^[\x20-\x7e]{1,300}$/);
    });
  }

  const alone: readonly (readonly [
    what: string,
    entries: string,
    expected: string,
    only: string,
    mediaType?: string,
  ])[] = [
    ['amd64/v1', 'amd64/v1', 'amd64/v1', 'containerd'],
    ['no operating system', '/amd64', 'amd64', 'containerd'],
    ['x86_64 and aarch64', 'x86_64 aarch64', 'amd64 arm64', 'containerd'],
    ['a nested index for arm64', 'arm64=[amd64 arm64]', 'arm64', 'containerd'],
    ['amd64, and a nested index for arm64', 'amd64 arm64=[amd64 arm64]', 'amd64 arm64', 'containerd'],
    ['amd64, and a nested index without a platform', 'amd64 [arm64 s390x]', 'amd64 arm64 s390x', 'containerd'],
    ['a nested index without a platform', '[amd64 arm64]', 'amd64 arm64', 'containerd'],
    ['two nested indexes without a platform', '[arm64] [amd64]', 'arm64', 'containerd'],
    ['a Docker list without platforms', '?arm64', 'arm64', 'containerd', LIST],
    ['no media type', 'amd64+untyped', 'amd64', 'CRI-O'],
    ['no media type, and Docker schema 1', 'amd64+schema1 arm64+untyped', 'arm64', 'CRI-O'],
    ['os.features', 'amd64+features', 'amd64', 'CRI-O'],
  ];
  for (const [what, entries, expected, only, mediaType = INDEX] of alone) {
    it(`with nothing but ${what}: ${expected}, for ${only} alone`, () => {
      const found = selected(entriesOf(entries), mediaType);
      expect(found.names.join(' ').replaceAll('linux/', '')).to.equal(expected);
      expect(found.only).to.equal(only);
    });
  }

  const reads: readonly (readonly [what: string, entries: string, reads: number])[] = [
    ['no entry that has a platform', 'amd64 arm64 windows/amd64', 0],
    ['one of many entries without a platform', '?amd64 ?arm64 ?arm', 1],
    ['no nested index that no node chooses', 'amd64 amd64=[amd64]', 0],
    ['a nested index once', '[[amd64 arm64]]', 2],
  ];
  for (const [what, entries, count] of reads) {
    it(`is found out by reading ${what}`, () => expect(selected(entriesOf(entries), INDEX).reads).to.equal(count));
  }
});
