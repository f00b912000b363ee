import { rename } from 'node:fs/promises';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { startTestRegistry, type TestRegistry } from '../simulator/registry/registry.ts';
import { folderForEach } from '../support/folder.ts';
import { ours } from '../support/objects.ts';
import { PODS, productForEach, tolerated } from '../support/product.ts';
import type { RunningController } from '../support/running.ts';

/** The controller checks the file every two seconds. */
describe("a change of run's configuration file", () => {
  const product = productForEach();
  const folder = folderForEach();

  /** Replaces the file in one step: a half-written one would be refused, and applied only at the next check. */
  const write = async (configuration: unknown) => {
    await folder.write({ next: stringify(configuration) });
    await rename(folder.at('next'), folder.at('config.yaml'));
  };
  const run = async (configuration: unknown) => {
    await write(configuration);
    const controller = await product.run(['--config', folder.at('config.yaml')]);
    // Before nodes are tainted, a pod without a toleration could be bound.
    await product.eventuallyTainted();
    return controller;
  };
  /** A pod whose two images have no architecture in common. */
  const createTorn = (name: string, labels: Readonly<Record<string, string>> = {}) =>
    product.cluster.createPod({
      name,
      images: [product.image('amd', ['amd64']), product.image('arm', ['arm64'])],
      metadata: { labels },
    });
  const release = (podSelector: string) => ({ name: 'release', podSelector, noCommonArchitecture: 'release' });

  it('is not needed when labels of a pod or a namespace change, and with them its policy', async () => {
    const gold = { name: 'gold', namespaceSelector: 'tier=gold', noCommonArchitecture: 'release' };
    await run({ policies: [release('app=torn'), gold] });
    await createTorn('a');
    await createTorn('b');
    await product.eventuallyEvent('default', 'NoCommonArchitecture', /^no architecture/);
    await product.patch(`${PODS}/a`, { metadata: { labels: { app: 'torn' } } });
    await product.eventuallyTolerates('default', 'a', ours('amd64', 'arm64'));
    expect(tolerated((await product.get(`${PODS}/b`)).spec)).to.deep.equal([]);
    await product.patch('/api/v1/namespaces/default', { metadata: { labels: { tier: 'gold' } } });
    await product.eventuallyTolerates('default', 'b', ours('amd64', 'arm64'));
  });

  it('causes one warning for architectures that no node has, at the start and when they change', async () => {
    const absent = (controller: RunningController) =>
      controller.logs().flatMap((line) => (line.includes('architectures that no node has') ? [JSON.parse(line)] : []));
    const controller = await run({ architectures: { schedulable: ['amd64', 'riscv64'] } });
    await product.eventuallyLogged(controller, '"level":"warn"', 'architectures that no node has');
    await write({ architectures: { schedulable: ['amd64', 'riscv64'] }, images: { fallbackAfter: '1m' } });
    await product.eventuallyLogged(controller, 'configuration reloaded', 'images.fallbackAfter');
    await write({
      architectures: { schedulable: ['amd64'], preferred: {}, fallback: [] },
      policies: [{ name: 'p', fallback: ['amd64'], preferred: {} }],
    });
    await product.eventuallyLogged(controller, 'configuration reloaded', 'policies');
    await write({ policies: [{ name: 'p', fallback: ['s390x'] }] });
    await product.eventuallyLogged(controller, '"level":"warn"', 's390x');
    expect(absent(controller).map(({ key, architectures }) => [key, architectures])).to.deep.equal([
      ['architectures.schedulable', ['riscv64']],
      ['policies[0].fallback', ['s390x']],
    ]);
  });

  describe('with another mirror', () => {
    let mirror: TestRegistry;
    beforeEach(async () => {
      mirror = await startTestRegistry();
    });
    afterEach(() => mirror.stop());

    it('uses that one at once, also for lookups under way, and asks nobody about known images', async () => {
      const controller = await run({ registries: { timeout: '1m' } });
      await product.cluster.createPod({ name: 'known', images: [product.image('known', ['amd64'])] });
      await product.eventuallyTolerates('default', 'known', ours('amd64'));
      product.registry.inject({ kind: 'hang' }, { path: /\/hangs\// });
      const image = product.image('hangs', ['amd64']);
      await product.cluster.createPod({ name: 'waits', images: [image] });
      await product.eventually('the lookup', async () => product.lookUps('hangs') === 1);

      mirror.put('hangs', '1', ['amd64', 'arm64']);
      const mirrors = { [product.registry.host]: { endpoints: [`http://${mirror.host}`], fallback: false } };
      await write({ registries: { timeout: '1m', mirrors } });
      await product.eventuallyTolerates('default', 'waits', ours('amd64', 'arm64'));
      await product.cluster.createPod({ name: 'again', images: [`${product.registry.host}/known:1`] });
      await product.eventuallyTolerates('default', 'again', ours('amd64'));
      expect(product.lookUps('hangs')).to.equal(1);
      expect(product.lookUps('known')).to.equal(1);
      expect(mirror.requests().filter(({ path }) => path.includes('known'))).to.deep.equal([]);
      expect(await controller.stop()).to.equal(0);
    });
  });
});
