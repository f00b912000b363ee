import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { at } from '../../hack/cluster/json.ts';
import { type LargePod, manyImages, manyLabels, manyTolerations, templateVersion } from '../support/large-objects.ts';
import { ours } from '../support/objects.ts';
import { leads, type RunningController } from '../support/running.ts';
import { pod } from '../support/workloads.ts';
import { worldForAll } from './support/world.ts';

/**
 * A part of what `npm run bench -- tenants` sends, beside a smaller heap than the manifests give (160): what was kept of all this
 * before it was counted in bytes does not fit into it.
 */
const HEAP = { environment: { NODE_OPTIONS: '--max-old-space-size=72' } };
const FLOODS: readonly [name: string, count: number, of: LargePod][] = [
  ['tolerations', 30, manyTolerations],
  ['labels', 20, manyLabels],
  ['images', 40, manyImages],
];
const VERSIONS = 120;

describe('objects of one tenant that are as large as the API server takes them', function () {
  this.timeout(240_000);
  const world = worldForAll();
  let controller: RunningController;
  let tenant: string;
  let bystanders = 0;

  before(async () => {
    tenant = await world.namespace('tenant');
    controller = await world.run([], HEAP);
  });

  /** Places a pod of another namespace, and expects that the controller that runs now has led all the time. */
  async function expectServed(): Promise<void> {
    const name = `bystander-${bystanders++}`;
    await world.create(pod('default', name, { images: [world.image('arm64')] }));
    await world.eventuallyTolerates('default', name, ours('arm64'));
    expect((await controller.get('/healthz')).status).to.equal(200);
    expect(readFileSync(`/proc/${controller.pid}/status`, 'utf8')).to.match(/^State:\s+[^Z]/m);
    expect(controller.logs().filter((line) => /lease (?:lost|not renewed)/.test(line))).to.deep.equal([]);
  }

  async function transitions(): Promise<unknown> {
    return at(await world.get('Lease', 'archaware', 'archaware-controller'), 'spec', 'leaseTransitions');
  }

  it('leave the controller running, and leading, while they are created', async () => {
    await expectServed();
    const before = await transitions();
    for (const [name, count, of] of FLOODS) {
      for (let index = 0; index < count; index += 5) {
        const some = Array.from({ length: Math.min(5, count - index) }, (_, next) => index + next);
        await Promise.all(
          some.map((each) => {
            const { labels, spec } = of(each);
            const metadata = { name: `${name}-${each}`, namespace: tenant, labels };
            return world.create({ apiVersion: 'v1', kind: 'Pod', metadata, spec });
          }),
        );
      }
      await expectServed();
    }
    expect(await transitions()).to.equal(before);
  });

  it('may change their template as often as somebody likes', async () => {
    const template = (index: number) => {
      const { labels, spec } = templateVersion(index);
      return { metadata: { labels }, spec };
    };
    const labels = { 'archaware.dev/ignore': 'true' };
    const spec = { revisionHistoryLimit: 0, selector: { matchLabels: { app: 'bomb' } }, template: template(0) };
    await world.create({
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name: 'bomb', namespace: tenant, labels },
      spec,
    });
    for (let index = 1; index <= VERSIONS; index += 1) {
      await world.patch('DaemonSet', tenant, 'bomb', [
        { op: 'replace', path: '/spec/template', value: template(index) },
      ]);
    }
    await expectServed();
  });

  it('let the next controller start, lead, and serve others', async () => {
    await world.stopControllers('SIGKILL');
    controller = await world.run([], HEAP);
    await world.eventually('the new controller to lead', () => leads(controller));
    await expectServed();
  });
});
