import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { at } from '../simulator/json.ts';
import { startTestRegistry, type TestRegistry } from '../simulator/registry/registry.ts';
import { ours } from '../support/objects.ts';
import { PODS, type Product, startProduct, tolerated } from '../support/product.ts';
import type { RunningController } from '../support/running.ts';

const SUCCESS = 'archaware_config_reload_success';

/** The controller checks the file every two seconds. */
describe("a change of run's configuration file", () => {
  let product: Product;
  let directory: string;
  let file: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'archaware-'));
    file = join(directory, 'config.yaml');
    product = await startProduct();
  });
  afterEach(async () => {
    await product.stop();
    await rm(directory, { recursive: true });
  });

  /** Replaces the file in one step: a half-written one would be refused, and applied only at the next check. */
  const write = async (configuration: unknown) => {
    await writeFile(`${file}.next`, typeof configuration === 'string' ? configuration : stringify(configuration));
    await rename(`${file}.next`, file);
  };
  const run = async (configuration: unknown, flags: readonly string[] = []) => {
    await write(configuration);
    const controller = await product.run(['--config', file, ...flags]);
    // Before nodes are tainted, a pod without a toleration could be bound.
    await product.eventuallyTainted();
    return controller;
  };
  const eventuallyLogged = (controller: RunningController, ...words: readonly string[]) =>
    product.eventually(`a line of the log with ${words.join(', ')}`, async () =>
      controller.logs().find((line) => words.every((word) => line.includes(word))),
    );
  /** A pod whose two images have no architecture in common. */
  const createTorn = (name: string, labels: Readonly<Record<string, string>> = {}) =>
    product.cluster.createPod({
      name,
      images: [product.image('amd', ['amd64']), product.image('arm', ['arm64'])],
      metadata: { labels },
    });
  const release = (podSelector: string) => ({ name: 'release', podSelector, noCommonArchitecture: 'release' });

  it('applies a policy to held and waiting pods, and to nothing else, without a restart', async () => {
    // Tags are known for one second, so a new decision causes a new lookup.
    const images = { unresolvable: 'wait', fallbackAfter: '0s', cache: { tagTtl: '1s' } };
    const unknown = `${product.registry.host}/nowhere:1`;
    const architectures = { schedulable: ['arm64'] };
    const controller = await run({ images, architectures });
    await createTorn('held', { app: 'torn' });
    const others = [product.image('other-amd', ['amd64']), product.image('other-arm', ['arm64'])];
    await product.cluster.createPod({ name: 'other', images: others });
    await product.cluster.createPod({ name: 'waits', images: [unknown], metadata: { labels: { app: 'unknown' } } });
    const both = [product.image('app', ['amd64', 'arm64'])];
    await product.cluster.createPod({ name: 'placed', images: both, metadata: { labels: { app: 'placed' } } });
    await product.eventuallyTolerates('default', 'placed', ours('arm64'));
    await product.eventually('it to be bound', async () => at(await product.get(`${PODS}/placed`), 'spec', 'nodeName'));
    await product.eventuallyEvent('default', 'NoCommonArchitecture', /^no architecture.*\/amd:1/);
    await product.eventuallyEvent('default', 'NoCommonArchitecture', /^no architecture.*other-amd/);
    await product.eventuallyEvent('default', 'ImageUnresolvable', /nowhere/);
    const writes = product.written().length;
    expect(await controller.metric(SUCCESS)).to.equal(1);

    const open = { name: 'open', namespaces: ['def*'], podSelector: 'app=unknown', unresolvable: 'fallback' };
    const wide = { name: 'wide', podSelector: 'app=placed', schedulable: [] };
    await write({ images, architectures, policies: [release('app=torn'), { ...open, fallback: ['arm64'] }, wide] });
    await product.eventuallyTolerates('default', 'held', ours('arm64'));
    await product.eventuallyTolerates('default', 'waits', ours('arm64'));
    // A policy that allows more comes too late for pods that are done, and changes nothing.
    await product.eventually('an idle queue', async () => (await controller.metric('archaware_workqueue_depth')) === 0);
    await product.eventuallyEvent('default', 'OpenPlacement', /^policy release: /);
    await product.eventuallyEvent('default', 'OpenPlacement', /^policy open: .*nowhere/);
    await eventuallyLogged(controller, '"keys":["policies"]', 'configuration reloaded');
    expect(tolerated((await product.get(`${PODS}/other`)).spec)).to.deep.equal([]);
    expect(product.written().slice(writes)).to.have.members([`PATCH ${PODS}/held`, `PATCH ${PODS}/waits`]);
    expect(product.lookUps('app')).to.equal(1);
    expect(product.lookUps('other-amd')).to.equal(1);
  });

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

  it('is refused as a whole if it is invalid, with an Event and a metric, until it is corrected', async () => {
    const controller = await run({ images: { unresolvable: 'wait' } });
    await createTorn('held', { app: 'torn' });
    await product.eventuallyEvent('default', 'NoCommonArchitecture', /held|no architecture/);
    await write({ policies: [release('app=torn'), { name: 'B', fallback: ['x86_64'] }], workers: 0 });
    const told = await product.eventuallyEvent('archaware', 'ConfigurationRejected', /the last valid/);
    for (const problem of ['policies[1].name: got "B"', 'policies[1].fallback[0]: got "x86_64"', 'workers: got 0']) {
      expect(told).to.contain(problem);
      await eventuallyLogged(controller, '"level":"error"', JSON.stringify(problem).slice(1, -1));
    }
    expect(await controller.metric(SUCCESS)).to.equal(0);
    // A configuration that cannot be applied is refused in the same way, as a whole.
    const dockerConfigFiles = [join(directory, 'gone.json')];
    await write({ policies: [release('app=torn')], credentials: { dockerConfigFiles } });
    await product.eventuallyEvent('archaware', 'ConfigurationRejected', /gone\.json: .*ENOENT/);
    expect(await controller.metric(SUCCESS)).to.equal(0);
    await product.cluster.createPod({ name: 'later', images: [product.image('app', ['arm64'])] });
    await product.eventuallyTolerates('default', 'later', ours('arm64'));
    expect(tolerated((await product.get(`${PODS}/held`)).spec)).to.deep.equal([]);

    await write({ policies: [release('app=torn')] });
    await product.eventuallyTolerates('default', 'held', ours('amd64', 'arm64'));
    await product.eventually('the metric', async () => (await controller.metric(SUCCESS)) === 1);
  });

  it('causes one warning for architectures that no node has, at the start and when they change', async () => {
    const absent = (controller: RunningController) =>
      controller.logs().flatMap((line) => (line.includes('architectures that no node has') ? [JSON.parse(line)] : []));
    const controller = await run({ architectures: { schedulable: ['amd64', 'riscv64'] } });
    await eventuallyLogged(controller, '"level":"warn"', 'architectures that no node has');
    await write({ architectures: { schedulable: ['amd64', 'riscv64'] }, images: { fallbackAfter: '1m' } });
    await eventuallyLogged(controller, 'configuration reloaded', 'images.fallbackAfter');
    await write({
      architectures: { schedulable: ['amd64'], preferred: {}, fallback: [] },
      policies: [{ name: 'p', fallback: ['amd64'], preferred: {} }],
    });
    await eventuallyLogged(controller, 'configuration reloaded', 'policies');
    await write({ policies: [{ name: 'p', fallback: ['s390x'] }] });
    await eventuallyLogged(controller, '"level":"warn"', 's390x');
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
