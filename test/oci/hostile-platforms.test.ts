import { expect } from 'chai';
import { decide } from '../../src/placement/decide.ts';
import { readPod } from '../../src/placement/objects/pod.ts';
import { podPatch } from '../../src/placement/patch/patch.ts';
import { tolerationsFor } from '../../src/placement/patch/tolerations.ts';
import { noCommonArchitectureNote } from '../../src/placement/reasons.ts';
import { input } from '../placement/objects.ts';
import { says } from '../support/hostile-registry.ts';
import { type HostileWorld, manifest, putSingle, startHostileWorld } from '../support/hostile-world.ts';
import { IMAGE, indexOf, sha256 } from './server.ts';

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

describe('a hostile registry that names a platform', () => {
  let world: HostileWorld;
  beforeEach(async () => {
    world = await startHostileWorld();
  });
  afterEach(() => world.stop());

  /** Returns the values that a pod with the image would be patched with, after checking every step on the way. */
  function patched(image: string, platforms: Awaited<ReturnType<HostileWorld['resolve']>>['platforms']): string[] {
    const decision = decide(input({ [image]: { kind: 'known', platforms } }));
    if (decision.kind !== 'place') return [];
    const pod = readPod({ metadata: { name: 'a', namespace: 'b', uid: 'c' }, spec: { containers: [{ image }] } });
    const wanted = tolerationsFor({ key: 'supported-arch', effect: 'NoSchedule' }, decision.architectures);
    const operations = podPatch(pod, wanted);
    expect(JSON.stringify(operations)).to.match(/^[\x20-\x7e]+$/);
    for (const { value } of wanted) expect(value).to.match(LABEL_VALUE);
    const sets = [{ image, platforms: platforms.map(({ os, architecture }) => `${os}/${architecture}`) }];
    expect(noCommonArchitectureNote(sets, 'linux', [])).to.match(/^[\x20-\x7e]+$/);
    return wanted.map(({ value }) => value);
  }

  async function check(): Promise<readonly string[] | undefined> {
    try {
      const { platforms, skipped } = await world.resolve();
      for (const { os, variant = 'none' } of platforms) {
        expect(os).to.match(/^[a-z0-9][a-z0-9_-]*$/);
        expect(variant).to.match(/^[A-Za-z0-9][A-Za-z0-9._-]*$/);
      }
      for (const { reason, digest = 'none' } of skipped) {
        expect(reason).to.match(PRINTABLE);
        expect(digest).to.match(PRINTABLE);
      }
      return patched(world.hosts.evil, platforms);
    } catch (error) {
      // The lookup failed. It is repeated to check its error code.
      if (error instanceof Error && error.name === 'AssertionError') throw error;
      expect((await world.fails()).code).to.be.oneOf(['malformed', 'unsupported']);
      return undefined;
    }
  }

  for (const value of STRANGE) {
    it(`with the architecture ${titleOf(value)} beside a good one`, async () => {
      const index = indexOf('linux/amd64');
      const platform = { os: 'linux', architecture: value };
      index.manifests.push({ mediaType: IMAGE, digest: sha256('strange'), platform });
      world.evil.on('/v2/app/manifests/v1', manifest(index));
      expect(await check()).to.include('amd64');
      await world.expectNoHarm();
    });

    it(`with the architecture ${titleOf(value)} in its config blob`, async () => {
      putSingle(world.evil, 'app', { os: 'linux', architecture: value });
      await check();
      await world.expectNoHarm();
    });

    it(`with the OS, variant, version and features ${titleOf(value)}`, async () => {
      const index = indexOf('linux/amd64');
      for (const platform of [
        { os: value, architecture: 'arm64' },
        { os: 'linux', architecture: 's390x', variant: value },
        { os: 'linux', architecture: 'riscv64', 'os.version': value, 'os.features': value, features: value },
      ]) {
        index.manifests.push({ mediaType: IMAGE, digest: sha256(JSON.stringify(platform)), platform });
      }
      world.evil.on('/v2/app/manifests/v1', manifest(index));
      expect(await check()).to.include.members(['amd64', 's390x', 'riscv64']);
      await world.expectNoHarm();
    });

    it(`with the types and annotations ${titleOf(value)}`, async () => {
      const index = {
        ...indexOf('linux/amd64'),
        annotations: value,
        artifactType: value,
        subject: value,
      };
      const platform = { os: 'linux', architecture: 'arm64' };
      const annotations = { 'vnd.docker.reference.type': value, 'org.opencontainers.image.ref.name': value };
      index.manifests.push(
        { mediaType: value, digest: sha256('a'), platform },
        { mediaType: IMAGE, artifactType: value, digest: sha256('b'), platform },
        { mediaType: IMAGE, annotations, digest: sha256('c'), platform },
        { mediaType: IMAGE, annotations: value, urls: value, size: value, digest: sha256('d'), platform },
      );
      world.evil.on('/v2/app/manifests/v1', manifest(index));
      expect(await check()).to.have.members(['amd64', 'arm64']);
      await world.expectNoHarm();
    });

    it(`with the type of config ${titleOf(value)}`, async () => {
      const config = { mediaType: value, digest: sha256('x'), size: 1 };
      world.evil.on('/v2/app/manifests/v1', manifest({ schemaVersion: 2, config, layers: [] }, IMAGE));
      world.evil.on(`/v2/app/blobs/${sha256('x')}`, says(200, [], 'x'));
      await check();
      await world.expectNoHarm();
    });
  }

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
      return { mediaType: 'application/vnd.oci.image.index.v1+json', digest: sha256(body) };
    });
    world.evil.on('/v2/app/manifests/v1', manifest({ schemaVersion: 2, manifests }));
    expect(await world.fails()).to.include({ code: 'too-large', temporary: false });
    await world.expectNoHarm();
  });
});
