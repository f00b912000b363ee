import { expect } from 'chai';
import { type LiveWorld, startWorld } from '../e2e/support/world.ts';
import { tolerations } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { pod } from '../support/workloads.ts';

const KINDS = ['pods', 'nodes', 'namespaces', 'daemonsets'];
/** As many silent watches of each kind as take longer than the two minutes after which a broken watch makes a replica not ready. */
const SILENT = 2;

/** Kubernetes does not promise bookmarks, and an API server without a watch cache sends none. */
describe('an API server that sends no bookmarks', function () {
  this.timeout(480_000);
  let world: LiveWorld;
  let controller: RunningController;

  before(async () => {
    world = await startWorld({ cluster: { apiServerArgs: ['--watch-cache=false'] } });
    await world.namespace('shop');
    controller = await world.run();
  });
  after(() => world?.stop());

  it('leaves a replica ready while nothing happens, and its changes are seen at once', async () => {
    const silent = (kind: string) => controller.metric('archaware_watch_restarts_total', { kind });
    while ((await Promise.all(KINDS.map(silent))).some((count) => count < SILENT)) {
      const { status, text } = await controller.get('/readyz');
      expect(`${status} ${text.trim()}`).to.equal('200 ok');
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
    expect(controller.logs().filter((line) => line.includes('changes are not seen'))).to.deep.equal([]);
    await world.create(pod('shop', 'web', { images: [world.image('arm64')] }));
    await world.eventually('the pod to be placed', async () => {
      const found = tolerations(await world.get('Pod', 'shop', 'web'));
      return found.includes('supported-arch=arm64:NoSchedule');
    });
  });
});
