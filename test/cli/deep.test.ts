import { expect } from 'chai';
import { FIXTURES } from '../../testimg/fixtures.ts';
import { elf, layeredImage } from '../../testimg/layers.ts';
import { startTestRegistry, type TestRegistry } from '../simulator/registry/registry.ts';
import { runInProcess } from '../support/in-process.ts';

describe('--deep', () => {
  let registry: TestRegistry;
  before(async () => {
    registry = await startTestRegistry();
    for (const { tag, build, deep } of FIXTURES) if (deep !== undefined) registry.load('img', tag, build());
    const arm64 = { os: 'linux', architecture: 'arm64' };
    const files = [
      { name: 'bin/good', bytes: elf('arm64') },
      { name: 'bin/bad', bytes: elf('amd64') },
    ];
    registry.load('img', 'two', layeredImage(arm64, [files], { Entrypoint: ['good'] }));
  });
  after(() => registry.stop());

  const run = (args: readonly string[], input = '') =>
    runInProcess([...args, '--registries.insecure', registry.host], { input });
  const image = (tag: string) => `${registry.host}/img:${tag}`;

  describe('of inspect', () => {
    it('prints what each platform starts, and exits with 2 for a lie', async () => {
      const { code, stdout } = await run(['inspect', '--deep', image('lies-arm64')]);
      expect(code).to.equal(2);
      const [, programs = ''] = stdout.split('\nPrograms.\n');
      expect(programs.split('\n').map((line) => line.replaceAll(/ {2,}/g, '|'))).to.deep.equal([
        'IMAGE|VERDICT|PROGRAM|REASON|READ',
        `${image('lies-arm64')}|agrees|declares linux/amd64, /bin/app is x86-64|4.0 KiB`,
        `${image('lies-arm64')}|lies|declares linux/arm64, /bin/app is x86-64|4.0 KiB`,
        '',
      ]);
    });

    it('prints it for a program', async () => {
      const { code, stdout } = await run(['inspect', '--deep', image('lies-whole'), '-o', 'json']);
      expect(code).to.equal(2);
      const [{ deep }] = JSON.parse(stdout);
      expect(deep.map(({ bytesRead: _, ...each }: { bytesRead: number }) => each)).to.deep.equal([
        { platform: { os: 'linux', architecture: 'amd64' }, program: '/bin/app', machine: 'x86-64', verdict: 'agrees' },
        {
          platform: { os: 'linux', architecture: 'arm64' },
          program: '/bin/app',
          machine: 'x86-64',
          verdict: 'lies',
          reason: 'its config says linux/amd64',
        },
      ]);
    });

    it('exits with 0 if nothing lies', async () =>
      expect((await run(['inspect', '--deep', image('honest')])).code).to.equal(0));

    it('reads no layer without the flag', async () => {
      registry.clearRequests();
      const { code, stdout } = await run(['inspect', image('lies-arm64')]);
      expect(code).to.equal(0);
      expect(stdout).not.to.include('Programs.');
      expect(registry.requests().filter(({ path }) => path.includes('/blobs/'))).to.deep.equal([]);
    });
  });

  describe('of check', () => {
    const pod = (name: string, tag: string, more: object = {}) =>
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name },
        spec: { containers: [{ name: 'c0', image: image(tag), ...more }] },
      });

    it('misses an architecture whose program is for another one', async () => {
      const args = ['check', '-f', '-', '--on', 'amd64,arm64'];
      expect((await run(args, pod('web', 'lies-arm64'))).code).to.equal(0);
      const { code, stdout } = await run([...args, '--deep'], pod('web', 'lies-arm64'));
      expect(stdout).to.equal(
        `Pod web: no arm64: ${image('lies-arm64')} (c0) declares linux/arm64, /bin/app is x86-64\n`,
      );
      expect(code).to.equal(2);
    });

    it('reads only the architectures of --on', async () => {
      const args = ['check', '-f', '-', '--on', 'amd64', '--deep', '-o', 'json'];
      const { code, stdout } = await run(args, pod('web', 'lies-arm64'));
      const { deep, missing, objects } = JSON.parse(stdout);
      expect(deep).to.have.lengthOf(1);
      expect([missing, objects[0].architectures, code]).to.deep.equal([[], ['amd64'], 0]);
    });

    it('looks at the command of a container', async () => {
      const args = ['check', '-f', '-', '--on', 'arm64', '--deep'];
      const { code, stdout } = await run(args, pod('web', 'two', { command: ['bad'] }));
      expect(stdout).to.equal(`Pod web: no arm64: ${image('two')} (c0) declares linux/arm64, /bin/bad is x86-64\n`);
      expect(code).to.equal(2);
      expect((await run(args, pod('web', 'two', { args: ['bad'] }))).code).to.equal(0);
    });

    it('says what it could not find, which is not missing', async () => {
      const args = ['check', '-f', '-', '--on', 'arm64', '--deep'];
      const { code, stderr } = await run(args, pod('web', 'two', { command: ['/mnt/script'] }));
      expect(code).to.equal(0);
      expect(stderr).to.include(`Pod web: ${image('two')} (c0) declares linux/arm64: /mnt/script is not in the layers`);
    });
  });
});
