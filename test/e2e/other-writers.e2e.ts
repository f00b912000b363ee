import { expect } from 'chai';
import { expectSuccess } from '../../hack/cluster/client.ts';
import { at, listAt } from '../../hack/cluster/json.ts';
import { nameOf, ours, runs, scheduledOn, tolerations } from '../support/objects.ts';
import { arrangeWebhook, eventuallyTrusted } from '../support/webhook.ts';
import { patching, startWebhookServer, type WebhookServer } from '../support/webhook-server.ts';
import { type KubernetesObject, type PodOptions, pod } from '../support/workloads.ts';
import { pathOf } from '../support/world.ts';
import { admit, affinity, freshImage, GATE, gates, inSilence, onArch, patchesOf, required } from './support/placed.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const PLUGINS = ['NodeRestriction', 'ExtendedResourceToleration', 'PodTolerationRestriction'];
const DEVICE = 'example.com/device';
const KUEUE = 'kueue.x-k8s.io/admission';
const LINKERD_LABEL = 'linkerd.io/control-plane-ns';

/** Both keep the annotations that a pod has. `key`: as in the path. */
const annotating = (object: unknown, key: string, value: string) => [
  ...(at(object, 'metadata', 'annotations') === undefined
    ? [{ op: 'add', path: '/metadata/annotations', value: {} }]
    : []),
  { op: 'add', path: `/metadata/annotations/${key}`, value },
];

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
  const ON_ARM = mode === 'both' ? { nodeAffinity: required([onArch('arm64')]) } : undefined;
  /** What was required first stays, and what is required now is added: both together are arm64. */
  const NARROWED =
    mode === 'both' ? { nodeAffinity: required([onArch('amd64', 'arm64'), onArch('arm64')]) } : undefined;
  let world: LiveWorld;
  let others: WebhookServer;
  /** Known to the webhook; for both architectures, and for one. */
  let warm: { readonly multi: string; readonly arm64: string };

  before(async () => {
    ({ world, others } = around());
    others.reset();
    // Nobody keeps the port free between two controllers, so each has one of its own.
    const served = await arrangeWebhook(world);
    const flags = [...served.flags, '--placement.mode', mode, '--images.cache.alwaysTagTtl', '1s'];
    await world.run([...flags, '--bootstrap.timeout', '5s']);
    await eventuallyTrusted(world);
    warm = { multi: world.image('multi'), arm64: world.image('arm64') };
    const ns = await namespace();
    await world.create(pod(ns, 'app', { images: [warm.multi, warm.arm64] }));
    await running(ns, 1);
  });
  after(async () => {
    await world?.stopControllers();
    await world?.cluster.kubectl(['delete', 'mutatingwebhookconfiguration', 'archaware-controller']);
  });

  const namespace = () => world.namespace(`others-${++namespaces}`);
  const running = (ns: string, count: number) =>
    world.eventually(`${count} pods to run`, async () => {
      const pods = await world.pods(ns, 'app');
      return pods.length === count && pods.every(runs) && pods;
    });
  const placement = (found: unknown) => [affinity(found), tolerations(found), gates(found)];
  const change = async (path: string, body: unknown) =>
    expectSuccess(path, await world.cluster.request('PATCH', path, body));

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
      const released = await world.eventually('it to be released', async () => {
        const found = await world.get('Pod', ns, 'app');
        return gates(found).length === 0 && found;
      });
      expect(affinity(released)).to.deep.equal(ON_ARM);
      expect(tolerations(released)).to.deep.equal([`${DEVICE}:NoSchedule`, ...ours('arm64')]);
      const keys = listAt(released, 'spec', 'tolerations').map((one) => at(one, 'key'));
      expect(keys).to.include('node.kubernetes.io/memory-pressure');
      expect(await patchesOf(world, ns, 'app')).to.equal(1);
    });
  });

  describe('Kueue', () => {
    /** As in a ResourceFlavor: the node's label, and a toleration of its taint. */
    const flavor = {
      nodeSelector: { 'kubernetes.io/arch': 'arm64' },
      tolerations: [{ key: 'dedicated', operator: 'Equal', value: 'batch', effect: 'NoSchedule' }],
    };

    it('holds a pod by its own gate beside ours: each removes its own, in any order', async () => {
      for (const first of ['archaware', 'Kueue'] as const) {
        const ns = await namespace();
        const image = await freshImage(world, 'arm64');
        const release = () =>
          change(pathOf('Pod', ns, 'app'), [
            { op: 'test', path: '/spec/schedulingGates/0/name', value: KUEUE },
            { op: 'remove', path: '/spec/schedulingGates/0' },
            { op: 'add', path: '/spec/nodeSelector', value: flavor.nodeSelector },
          ]);
        await inSilence(world, async () => {
          const created = await admit(
            world,
            pod(ns, 'app', { images: [image], spec: { schedulingGates: [{ name: KUEUE }] } }),
          );
          expect(gates(created)).to.deep.equal([KUEUE, GATE]);
          if (first === 'Kueue') await release();
        });
        await world.eventually('archaware to release it', async () => {
          const left = gates(await world.get('Pod', ns, 'app'));
          return left.join() === (first === 'Kueue' ? '' : KUEUE);
        });
        if (first === 'archaware') await release();
        const [found] = await running(ns, 1);
        expect([scheduledOn(found), tolerations(found)], first).to.deep.equal(['arm64-1', ours('arm64')]);
      }
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
      const [found] = await running(ns, 1);
      expect([scheduledOn(found), tolerations(found)]).to.deep.equal(['arm64-1', ours('amd64', 'arm64')]);
      // Its images run on arm64 only. With a requirement, it would wait for ever for a node that is both.
      const known = await admit(world, kruise(ns, 'known', 'amd64-1', [warm.arm64]), true);
      expect(placement(known)).to.deep.equal([pinned('amd64-1'), ours('arm64'), []]);
    });
  });

  describe("Linkerd's injector, by its patch (native sidecar)", () => {
    let proxy: string;
    /** The paths and the order of its operations; what its containers do is of no matter here. */
    const inject = (object: unknown) => [
      ...annotating(object, 'linkerd.io~1proxy-version', 'edge'),
      { op: 'add', path: `/metadata/labels/${LINKERD_LABEL.replace('/', '~1')}`, value: 'linkerd' },
      ...(listAt(object, 'spec', 'volumes').length > 0 ? [] : [{ op: 'add', path: '/spec/volumes', value: [] }]),
      { op: 'add', path: '/spec/initContainers', value: [] },
      { op: 'add', path: '/spec/volumes/-', value: { name: 'linkerd-proxy-init-xtables-lock', emptyDir: {} } },
      { op: 'add', path: '/spec/initContainers/0', value: { name: 'linkerd-init', image: proxy } },
      {
        op: 'add',
        path: '/spec/volumes/-',
        value: { name: 'linkerd-identity-end-entity', emptyDir: { medium: 'Memory' } },
      },
      {
        op: 'add',
        path: '/spec/initContainers/1',
        value: { name: 'linkerd-proxy', image: proxy, restartPolicy: 'Always' },
      },
    ];
    const rows: readonly (readonly [name: string, when: string, reinvocationPolicy: string])[] = [
      ['aa-linkerd', 'before ours', 'Never'],
      ['linkerd-proxy-injector', 'after ours', 'Never'],
      ['zz-linkerd', 'after ours, and called again', 'IfNeeded'],
    ];
    for (const [name, when, reinvocationPolicy] of rows) {
      it(`${when}: the proxy's images count, and while they are not known the pod is gated`, async () => {
        proxy = warm.multi;
        others.answer(`/${name}`, ({ object }) => {
          const isInjected = at(object, 'metadata', 'labels', LINKERD_LABEL) !== undefined;
          return isInjected ? { allowed: true } : patching(inject(object));
        });
        await webhook(name, { reinvocationPolicy });
        for (const isKnown of [true, false]) {
          const ns = await namespace();
          proxy = isKnown ? warm.arm64 : await freshImage(world, 'arm64');
          await inSilence(world, async () => {
            const created = await admit(world, pod(ns, 'app', { images: [warm.multi], labels: { by: name } }));
            expect(gates(created)).to.deep.equal(isKnown ? [] : [GATE]);
            const [init, sidecar] = listAt(created, 'spec', 'initContainers');
            expect([nameOf({ metadata: init }), at(sidecar, 'restartPolicy')]).to.deep.equal([
              'linkerd-init',
              'Always',
            ]);
          });
          const [found] = await running(ns, 1);
          const expected = when === 'before ours' ? ON_ARM : NARROWED;
          expect(placement(found)).to.deep.equal([expected, ours('arm64'), []]);
          expect(await patchesOf(world, ns, 'app')).to.equal(isKnown ? 0 : 1);
        }
      });
    }
  });
}
