import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { ours, tolerations } from '../support/objects.ts';
import { runWithWebhook } from '../support/webhook.ts';
import { patching, startWebhookServer, type WebhookServer } from '../support/webhook-server.ts';
import { pod } from '../support/workloads.ts';
import {
  admit,
  affinity,
  eventuallyReleased,
  freshImage,
  GATE,
  gates,
  inSilence,
  ON_ARM,
  patchesOf,
} from './support/placed.ts';
import { worldForAll } from './support/world.ts';

const PLUGINS = ['NodeRestriction', 'ExtendedResourceToleration', 'PodTolerationRestriction'];
const DEVICE = 'example.com/device';
const STRIP = 'zz-older';

/** In the modes that write tolerations, with the webhook. */
describe('archaware beside others that write pods, on the real control plane', () => {
  const world = worldForAll({ cluster: { apiServerArgs: [`--enable-admission-plugins=${PLUGINS.join()}`] } });
  let others: WebhookServer;

  before(async () => {
    others = await startWebhookServer();
  });
  after(() => others?.stop());
  afterEach(async () => {
    await world.stopControllers();
    await world.cluster.kubectl(['delete', 'mutatingwebhookconfiguration', 'archaware-controller', STRIP]);
  });

  /** Puts a webhook of somebody else after ours: API servers call them in the order of their names. */
  async function strip(): Promise<void> {
    others.answer(`/${STRIP}`, ({ object }) =>
      listAt(object, 'spec', 'tolerations').length > 0
        ? patching([{ op: 'remove', path: '/spec/tolerations' }])
        : { allowed: true },
    );
    const settings = { objectSelector: { matchLabels: { by: STRIP } }, reinvocationPolicy: 'IfNeeded' };
    const configuration = { metadata: { name: STRIP }, webhooks: [others.webhook(STRIP, settings)] };
    const typed = { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'MutatingWebhookConfiguration' };
    await world.cluster.apply(JSON.stringify({ ...typed, ...configuration }));
    await world.eventually('it to be called', async () => {
      await admit(world, pod('default', 'probe', { images: [world.image('multi')], labels: { by: STRIP } }), true);
      return others.requests(`/${STRIP}`).length > 0;
    });
  }

  for (const mode of ['taints', 'both'] as const) {
    it(`plug-ins may add tolerations in the request that releases a pod older than them, in the mode ${mode}`, async () => {
      others.reset();
      // Nobody keeps the port free between two controllers, so each has one of its own.
      await runWithWebhook(world, '--placement.mode', mode, '--bootstrap.timeout', '5s');
      // The plug-ins act on every write. A pod without what they add at its creation is like one from before they were switched on.
      await strip();
      const ns = await world.namespace(`others-${mode}`);
      const image = await freshImage(world, 'arm64');
      const resources = { requests: { [DEVICE]: '1', cpu: '100m' }, limits: { [DEVICE]: '1' } };
      const nowhere = { nodeSelector: { 'example.com/nowhere': 'yes' } };
      const spec = { ...nowhere, containers: [{ name: 'c', image, resources }] };
      await inSilence(world, async () => {
        const created = await admit(world, pod(ns, 'app', { images: [], labels: { by: STRIP }, spec }));
        expect([gates(created), listAt(created, 'spec', 'tolerations')]).to.deep.equal([[GATE], []]);
      });
      const released = await eventuallyReleased(world, ns, 'app');
      expect(affinity(released)).to.deep.equal(mode === 'both' ? ON_ARM : undefined);
      expect(tolerations(released)).to.deep.equal([`${DEVICE}:NoSchedule`, ...ours('arm64')]);
      const keys = listAt(released, 'spec', 'tolerations').map((one) => at(one, 'key'));
      expect(keys).to.include('node.kubernetes.io/memory-pressure');
      expect(await patchesOf(world, ns, 'app')).to.equal(1);
    });
  }
});
