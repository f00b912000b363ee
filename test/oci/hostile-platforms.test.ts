import { expect } from 'chai';
import type { Platform } from '../../src/kit/platform.ts';
import { ImageError } from '../../src/oci/errors.ts';
import { parseImageConfig, parseManifest } from '../../src/oci/manifest.ts';
import { select } from '../../src/oci/selection.ts';
import { readPod } from '../../src/placement/objects/pod.ts';
import { podPatch } from '../../src/placement/patch/patch.ts';
import { tolerationsFor } from '../../src/placement/patch/tolerations.ts';
import { noCommonArchitectureNote } from '../../src/placement/reasons.ts';
import { decideCase, input } from '../placement/objects.ts';
import { type HostileWorld, manifest, putSingle, startHostileWorld } from '../support/hostile-world.ts';
import { IMAGE, INDEX, indexOf, sha256 } from './server.ts';

/**
 * The form that the API server requires of a toleration's value: that of a label's (apimachinery, IsValidLabelValue).
 */
const LABEL_VALUE = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const PRINTABLE = /^[\x20-\x7e]{1,1000}$/;

const STRANGE: readonly unknown[] = [
  'supported-arch=arm64',
  'supported-arch=..',
  '..',
  '.',
  '',
  ' ',
  '-',
  '_',
  'arm 64',
  ' arm64 ',
  'arm64\n',
  'arm64\r\nX-Injected: yes',
  '\u001b[31marm64\u001b[0m',
  '\u001b]0;title\u0007',
  '\u009b31m',
  'arm64\0',
  'ARM64',
  '\uff41\uff52\uff4d64',
  'arm\u200d64',
  '\u202earm64',
  '\ud800',
  '\u{1f600}',
  'arm64/v8',
  '-arm64',
  '_arm64',
  'arm64-',
  'arm64_',
  'arm64.',
  'a'.repeat(33),
  'a'.repeat(10_000),
  '\n'.repeat(10_000),
  'amd64,arm64',
  'all',
  '*',
  '"',
  "'",
  '\\',
  '$(reboot)',
  '`reboot`',
  '{{ .Values }}',
  '<script>',
  '%00',
  '../../etc/passwd',
  '__proto__',
  'constructor',
  'hasOwnProperty',
  'null',
  'true',
  '1e3',
  null,
  5,
  true,
  [],
  ['arm64'],
  {},
  { toString: 'arm64' },
];

function titleOf(value: unknown): string {
  return JSON.stringify(value).slice(0, 40);
}

/** Returns the values that a pod with the image would be patched with, after checking every step on the way. */
function patched(platforms: readonly Platform[]): string[] {
  for (const { os, variant = 'none' } of platforms) {
    expect(os).to.match(/^[a-z0-9][a-z0-9_-]*$/);
    expect(variant).to.match(/^[A-Za-z0-9][A-Za-z0-9._-]*$/);
  }
  const decision = decideCase(input({ image: { kind: 'known', platforms } }));
  if (decision.kind !== 'place') return [];
  const pod = readPod({ metadata: { name: 'a', namespace: 'b' }, spec: { containers: [{ image: 'image' }] } });
  const wanted = tolerationsFor({ key: 'supported-arch', effect: 'NoSchedule' }, decision.architectures);
  expect(JSON.stringify(podPatch(pod, wanted))).to.match(/^[\x20-\x7e]+$/);
  for (const { value } of wanted) expect(value).to.match(LABEL_VALUE);
  const sets = [{ image: 'image', platforms: platforms.map(({ os, architecture }) => `${os}/${architecture}`) }];
  expect(noCommonArchitectureNote(sets, 'linux', [])).to.match(/^[\x20-\x7e]+$/);
  return wanted.map(({ value }) => value);
}

/** The values of a pod whose image has this index: a good entry for amd64, and these. */
function patchedByIndex(more: object, ...entries: object[]): string[] {
  const { manifests, ...index } = indexOf('linux/amd64');
  const body = Buffer.from(JSON.stringify({ ...index, ...more, manifests: [...manifests, ...entries] }));
  const parsed = parseManifest(body, INDEX);
  if (parsed.kind !== 'index') return expect.fail(parsed.kind);
  const chosen = select(parsed, new Map([[sha256('x'), { kind: 'refused', reason: 'nothing' }]]));
  if (chosen.kind !== 'selected') return expect.fail(chosen.kind);
  for (const { reason, digest = 'none' } of chosen.skipped()) {
    expect(reason).to.match(PRINTABLE);
    expect(digest).to.match(PRINTABLE);
  }
  return patched(chosen.platforms);
}

/** What is parsed, or nothing if it is refused for one of the reasons that a strange platform can have. */
function unlessRefused<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    expect(error.code).to.be.oneOf(['malformed', 'unsupported']);
    expect(error.message).to.match(PRINTABLE);
    return undefined;
  }
}

const entryOf = (platform: object, more: object = {}) => ({ mediaType: IMAGE, digest: sha256('x'), platform, ...more });

describe('a platform that a hostile registry names', () => {
  for (const value of STRANGE) {
    it(`as ${titleOf(value)} writes nothing into a pod that is not an architecture`, () => {
      // Container runtimes refuse an index in which a text is something else, and so does archaware.
      const isText = value === null || typeof value === 'string';
      const check = (parse: () => string[], expected: readonly string[]): void => {
        const found = unlessRefused(parse);
        if (isText) expect(found).to.have.members(expected);
        else expect(found).to.equal(undefined);
      };
      const byArchitecture = unlessRefused(() => patchedByIndex({}, entryOf({ os: 'linux', architecture: value })));
      if (isText) expect(byArchitecture).to.include('amd64');
      else expect(byArchitecture).to.equal(undefined);
      const byOs = (): string[] =>
        patchedByIndex(
          {},
          entryOf({ os: value, architecture: 'arm64' }),
          entryOf({ os: 'linux', architecture: 's390x', variant: value }),
          entryOf({ os: 'linux', architecture: 'ppc64le', 'os.features': [value] }),
          entryOf({ os: 'linux', architecture: 'riscv64', 'os.version': value, features: value }),
        );
      const ofOs = unlessRefused(byOs);
      if (isText) expect(ofOs).to.include.members(['amd64', 'riscv64']);
      else expect(ofOs).to.equal(undefined);
      const arm64 = { os: 'linux', architecture: 'arm64' };
      const annotations = { 'vnd.docker.reference.type': value, 'org.opencontainers.image.ref.name': value };
      check(
        () =>
          patchedByIndex(
            { artifactType: value, subject: value },
            entryOf({ os: 'linux', architecture: 's390x' }, { mediaType: value }),
            entryOf(arm64, { artifactType: value }),
            entryOf(arm64, { annotations, urls: value }),
          ),
        ['amd64', 'arm64'],
      );
      for (const more of [{ annotations: value }, { size: value }, { platform: value }]) {
        const found = unlessRefused(() => patchedByIndex({}, entryOf(arm64, more)));
        if (found !== undefined) expect(found).to.include('amd64');
      }
      const config = Buffer.from(JSON.stringify({ os: 'linux', architecture: value }));
      patched([unlessRefused(() => parseImageConfig(config).platform) ?? []].flat());
      const image = { schemaVersion: 2, config: { mediaType: value, digest: sha256('x'), size: 1 }, layers: [] };
      unlessRefused(() => parseManifest(Buffer.from(JSON.stringify(image)), IMAGE));
    });
  }
});

describe('a hostile registry that names a platform', () => {
  let world: HostileWorld;
  beforeEach(async () => {
    world = await startHostileWorld();
  });
  afterEach(() => world.stop());

  const strange = '\u001b[31marm64\r\n';
  it('in an index with control characters leaves the good ones, and reports the rest in printable words', async () => {
    const { manifests, ...index } = indexOf('linux/amd64');
    manifests.push(entryOf({ os: 'linux', architecture: strange }), entryOf({ os: strange, architecture: 'arm64' }));
    world.evil.on('/v2/app/manifests/v1', manifest({ ...index, manifests }));
    const { platforms, skipped } = await world.resolve();
    expect(patched(platforms)).to.deep.equal(['amd64']);
    expect(skipped).to.have.length(2);
    for (const { reason } of skipped) expect(reason).to.match(PRINTABLE);
    await world.expectNoHarm();
  });

  it('in a config blob with control characters is refused in printable words', async () => {
    putSingle(world.evil, 'app', { os: 'linux', architecture: strange });
    expect(await world.fails()).to.include({ code: 'unsupported', temporary: false });
    await world.expectNoHarm();
  });

  it('a thousand times, each a different one, is not believed', async () => {
    const names = Array.from({ length: 1000 }, (_, index) => `os${index}/amd64`);
    world.evil.on('/v2/app/manifests/v1', manifest(indexOf(...names)));
    expect(await world.fails()).to.include({ code: 'too-large', temporary: false });
    const strange = Array.from({ length: 1000 }, (_, index) => `linux/arch${index}`);
    world.evil.on('/v2/app/manifests/v1', manifest(indexOf(...strange)));
    expect(await world.fails()).to.include({ code: 'unsupported', temporary: false });
    await world.expectNoHarm();
  });

  it('a hundred times in each of twenty nested indexes is not believed', async () => {
    const manifests = Array.from({ length: 20 }, (_, outer) => {
      const names = Array.from({ length: 99 }, (_, inner) => `os${outer}x${inner}/amd64`);
      const body = JSON.stringify(indexOf(...names));
      world.evil.on(`/v2/app/manifests/${sha256(body)}`, manifest(body));
      return { mediaType: INDEX, digest: sha256(body), platform: { os: `os${outer}x0`, architecture: 'amd64' } };
    });
    world.evil.on('/v2/app/manifests/v1', manifest({ schemaVersion: 2, manifests }));
    expect(await world.fails()).to.include({ code: 'too-large', temporary: false });
    await world.expectNoHarm();
  });
});
