import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { ours, scheduledOn, tolerations } from '../support/objects.ts';
import { runWithWebhook } from '../support/webhook.ts';
import { patching, startWebhookServer, type WebhookServer } from '../support/webhook-server.ts';
import { type KubernetesObject, type PodOptions, pod } from '../support/workloads.ts';
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
import { type LiveWorld, startWorld } from './support/world.ts';

const PLUGINS = ['NodeRestriction', 'ExtendedResourceToleration', 'PodTolerationRestriction'];
const DEVICE = 'example.com/device';

/** In the modes that write tolerations, with the webhook. */
describe('archaware beside others that write pods, on the real control plane', () => {
  let world: LiveWorld;
  let others: WebhookServer;

  before(async () => {
    world = await startWorld({ cluster: { apiServerArgs: [`--enable-admission-plugins=${PLUGINS.join()}`] } });
    others = await startWebhookServer();
  });
  after(async () => {
    await others?.stop();
    await world?.stop();
  });

  for (const mode of ['taints', 'both'] as const) {
    describe(`in the mode ${mode}`, () => describeMode(mode, () => ({ world, others })));
  }
});

type Around = { readonly world: LiveWorld; readonly others: WebhookServer };
let namespaces = 0;

function describeMode(mode: 'taints' | 'both', around: () => Around): void {
  let world: LiveWorld;
  let others: WebhookServer;
  /** Known to the webhook; for both architectures, and for one. */
  let warm: { readonly multi: string; readonly arm64: string };

  before(async () => {
    ({ world, others } = around());
    others.reset();
    // Nobody keeps the port free between two controllers, so each has one of its own.
    const flags = ['--placement.mode', mode, '--images.cache.alwaysTagTtl', '1s', '--bootstrap.timeout', '5s'];
    await runWithWebhook(world, ...flags);
    warm = { multi: world.image('multi'), arm64: world.image('arm64') };
    const ns = await namespace();
    await world.create(pod(ns, 'app', { images: [warm.multi, warm.arm64] }));
    await world.eventuallyAllRun(ns, 'app', 1);
  });
  after(async () => {
    await world?.stopControllers();
    await world?.cluster.kubectl(['delete', 'mutatingwebhookconfiguration', 'archaware-controller']);
  });

  const namespace = () => world.namespace(`others-${++namespaces}`);
  const placement = (found: unknown) => [affinity(found), tolerations(found), gates(found)];

  /** Puts a webhook of somebody else before or after ours, until the test ends. API servers call them in the order of their names. */
  async function webhook(name: string, settings: Readonly<Record<string, unknown>>): Promise<void> {
    await world.cluster.apply(
      JSON.stringify({
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'MutatingWebhookConfiguration',
        metadata: { name },
        webhooks: [others.webhook(name, { objectSelector: { matchLabels: { by: name } }, ...settings })],
      }),
    );
    await world.eventually(`${name} to be called`, async () => {
      await admit(world, pod('default', 'probe', { images: [warm.multi], labels: { by: name } }), true);
      return others.requests(`/${name}`).length > 0;
    });
  }

  describe("Kubernetes' plug-ins that add tolerations", () => {
    const STRIP = 'zz-older';

    it('may do so in the request that releases a pod older than them', async () => {
      // The plug-ins act on every write. A pod without what they add at its creation is like one from before they were switched on.
      others.answer(`/${STRIP}`, ({ object }) =>
        listAt(object, 'spec', 'tolerations').length > 0
          ? patching([{ op: 'remove', path: '/spec/tolerations' }])
          : { allowed: true },
      );
      await webhook(STRIP, { reinvocationPolicy: 'IfNeeded' });
      const ns = await namespace();
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
  });

  describe("OpenKruise's DaemonSet", () => {
    /** The affinity that its controller gives the pod for a node. */
    const pinned = (node: string) => ({
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] }],
        },
      },
    });
    const kruise = (ns: string, name: string, node: string, images: PodOptions['images']): KubernetesObject => {
      const made = pod(ns, name, { images, spec: { affinity: pinned(node) } });
      const owner = {
        apiVersion: 'apps.kruise.io/v1alpha1',
        kind: 'DaemonSet',
        name: 'agent',
        uid: 'not-in-this-cluster',
      };
      return { ...made, metadata: { ...made.metadata, ownerReferences: [{ ...owner, controller: true }] } };
    };

    it('has its pods neither gated nor narrowed, and they get their tolerations', async () => {
      const ns = await namespace();
      const image = await freshImage(world, 'multi');
      await inSilence(world, async () => {
        const created = await admit(world, kruise(ns, 'app', 'arm64-1', [image]));
        expect([gates(created), tolerations(created)]).to.deep.equal([[], []]);
      });
      const found = await world.eventuallyRuns(ns, 'app');
      expect([scheduledOn(found), tolerations(found)]).to.deep.equal(['arm64-1', ours('amd64', 'arm64')]);
      // Its images run on arm64 only. With a requirement, it would wait for ever for a node that is both.
      const known = await admit(world, kruise(ns, 'known', 'amd64-1', [warm.arm64]), true);
      expect(placement(known)).to.deep.equal([pinned('amd64-1'), ours('arm64'), []]);
    });
  });
}
