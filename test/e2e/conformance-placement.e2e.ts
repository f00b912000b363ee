import { expect } from 'chai';
import { expectSuccess } from '../../hack/cluster/client.ts';
import { at } from '../../hack/cluster/json.ts';
import { nameOf, runs, scheduledOn } from '../support/objects.ts';
import { arrangeWebhook, eventuallyTrusted, type Webhook } from '../support/webhook.ts';
import { deployment, pod, statefulSet, type WorkloadOptions } from '../support/workloads.ts';
import { pathOf } from '../support/world.ts';
import { admit, affinity, freshImage, GATE, gates, isIn, onArch, preferring, required } from './support/placed.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const BOTH = onArch('amd64', 'arm64');
const ZONE = isIn('example.com/zone', 'a');
const OURS = preferring(['arm64', 75]);
const [ON_BOTH, ON_ARM, ON_AMD] = [required([BOTH]), required([onArch('arm64')]), required([onArch('amd64')])];
const liking = (...expressions: readonly unknown[]) => ({
  preferredDuringSchedulingIgnoredDuringExecution: expressions.map((expression) => ({
    weight: 7,
    preference: { matchExpressions: [expression] },
  })),
});
/** Archaware's preference after one of the author. */
const likingBoth = {
  preferredDuringSchedulingIgnoredDuringExecution: [
    ...liking(ZONE).preferredDuringSchedulingIgnoredDuringExecution,
    ...OURS.preferredDuringSchedulingIgnoredDuringExecution,
  ],
};

/** docs/conformance.md: what multiarch-tuning-operator and Noe do with pods, in the mode that they have. */
describe('placement as others test it, on the real control plane', () => {
  let world: LiveWorld;
  let webhook: Webhook;
  let count = 0;

  const run = async (...flags: readonly string[]) => {
    const common = ['--placement.mode', 'affinity', '--images.fallbackAfter', '2s', '--images.cache.failureTtl', '1s'];
    await world.run([...webhook.flags, ...common, '--leaderElection.leaseDuration', '3s', ...flags]);
    await eventuallyTrusted(world);
  };

  before(async () => {
    const labels = { 'example.com/zone': 'a' };
    const nodes = ['amd64', 'arm64'].map((architecture) => ({ name: `${architecture}-1`, architecture, labels }));
    world = await startWorld({ nodes });
    webhook = await arrangeWebhook(world);
    const policies = [
      { name: 'first', namespaces: ['ordered'], podSelector: 'tier=front', preferred: { amd64: 60 } },
      { name: 'second', namespaces: ['ordered'], preferred: { arm64: 20, amd64: 10 } },
    ];
    await run('--architectures.preferred', '{arm64: 75}', '--policies', JSON.stringify(policies));
    await world.namespace('shop');
    for (const tag of ['arm64', 'amd64', 'multi']) {
      await world.create(pod('shop', `warm-${tag}`, { images: [world.image(tag)] }));
      await world.eventually('an image to be known', async () => runs(await world.get('Pod', 'shop', `warm-${tag}`)));
    }
  });
  after(() => world?.stop());

  const running = (ns: string, app: string, replicas: number) =>
    world.eventually(`${app} to run`, async () => {
      const pods = await world.pods(ns, app);
      return pods.length === replicas && pods.every(runs) && pods;
    });
  const released = (ns: string, name: string) =>
    world.eventually(`the gate of ${name} to go`, async () => {
      const found = await world.get('Pod', ns, name);
      return gates(found).length === 0 && found;
    });
  /** A pod of an image that nobody has asked for: it is gated, or it is not. */
  const cold = async (ns: string, spec: WorkloadOptions['spec'] = {}) =>
    admit(world, pod(ns, `cold-${++count}`, { images: [await freshImage(world, 'arm64')], spec }));
  const warm = (ns: string, options: Partial<WorkloadOptions> = {}) =>
    admit(world, pod(ns, `warm-${++count}`, { images: [world.image('multi')], ...options }));

  const images: readonly [what: string, tag: string, wanted: unknown][] = [
    ['an OCI index of two architectures', 'multi', { ...ON_BOTH, ...OURS }],
    ['an OCI manifest', 'arm64', { ...ON_ARM, ...OURS }],
    ['an OCI manifest of the architecture that is not preferred', 'amd64', ON_AMD],
    ['a Docker manifest list', 'docker-list', { ...ON_BOTH, ...OURS }],
    ['a Docker schema 2 manifest', 'docker-single', { ...ON_ARM, ...OURS }],
  ];
  for (const [what, tag, nodeAffinity] of images) {
    it(`a Deployment of ${what} requires exactly what that runs on`, async () => {
      await world.create(deployment('shop', `of-${tag}`, { images: [await freshImage(world, tag)], replicas: 2 }));
      for (const found of await running('shop', `of-${tag}`, 2)) {
        expect(affinity(found)).to.deep.equal({ nodeAffinity });
      }
    });
  }

  const wishes: readonly [what: string, spec: NonNullable<WorkloadOptions['spec']>, wanted: unknown][] = [
    [
      'a requirement for the architecture stays, and the preference is added',
      { affinity: { nodeAffinity: required([onArch('amd64', 'arm64', 's390x')]) } },
      { ...required([onArch('amd64', 'arm64', 's390x')]), ...OURS },
    ],
    [
      'a preference for an architecture stays, and only the requirement is added',
      { affinity: { nodeAffinity: liking(onArch('amd64')) } },
      { ...ON_BOTH, ...liking(onArch('amd64')) },
    ],
    [
      'another preference stays, and the preference for architectures is appended',
      { affinity: { nodeAffinity: liking(ZONE) } },
      { ...ON_BOTH, ...likingBoth },
    ],
    [
      'a requirement and a preference for the architecture both stay unchanged',
      { affinity: { nodeAffinity: { ...ON_ARM, ...liking(onArch('arm64')) } } },
      { ...ON_ARM, ...liking(onArch('arm64')) },
    ],
    [
      'of several terms, only those without the architecture are narrowed',
      { affinity: { nodeAffinity: required([ZONE], [onArch('arm64')], [ZONE, onArch('amd64')]) } },
      { ...required([ZONE, BOTH], [onArch('arm64')], [ZONE, onArch('amd64')]), ...OURS },
    ],
    [
      'a node selector for the architecture gets no requirement',
      { nodeSelector: { 'kubernetes.io/arch': 'arm64' } },
      OURS,
    ],
  ];
  for (const [what, spec, nodeAffinity] of wishes) {
    it(`the pod's own settings: ${what}`, async () => {
      expect(affinity(await warm('shop', { spec }))).to.deep.equal({ nodeAffinity });
      const unknown = await admit(
        world,
        pod('shop', `wish-${++count}`, { images: [await freshImage(world, 'multi')], spec }),
      );
      expect(gates(unknown)).to.deep.equal([GATE]);
      expect(affinity(await released('shop', nameOf(unknown)))).to.deep.equal({ nodeAffinity });
    });
  }

  it('a pod with nodeName is neither gated nor changed', async () => {
    const found = await cold('shop', { nodeName: 'arm64-1' });
    expect([gates(found), affinity(found), at(found, 'metadata', 'annotations')]).to.deep.equal([
      [],
      undefined,
      undefined,
    ]);
  });

  for (const namespace of ['kube-public', 'openshift-monitoring', 'hypershift-clusters']) {
    it(`pods of ${namespace} are never gated, but get what is known`, async () => {
      const { status } = await world.cluster.request('GET', pathOf('Namespace', '', namespace));
      if (status === 404) await world.namespace(namespace);
      const found = await cold(namespace);
      expect([gates(found), affinity(found)]).to.deep.equal([[], undefined]);
      expect(affinity(await warm(namespace))).to.deep.equal({ nodeAffinity: { ...ON_BOTH, ...OURS } });
    });
  }

  for (const role of ['control-plane', 'master']) {
    it(`pods for nodes of the role ${role} are never gated, but get what is known`, async () => {
      const spec = { nodeSelector: { [`node-role.kubernetes.io/${role}`]: '' } };
      expect(gates(await cold('shop', spec))).to.deep.equal([]);
      expect(affinity(await warm('shop', { spec }))).to.deep.equal({ nodeAffinity: { ...ON_BOTH, ...OURS } });
    });
  }

  const sets: readonly [what: string, tags: readonly string[], spec: WorkloadOptions['spec'], wanted: unknown][] = [
    ['one architecture', ['arm64'], {}, { ...ON_ARM, ...OURS }],
    ['several architectures', ['multi'], {}, { ...ON_BOTH, ...OURS }],
    ['images of one and of several architectures', ['multi', 'amd64'], {}, ON_AMD],
    [
      'an affinity of its own',
      ['multi'],
      { affinity: { nodeAffinity: { ...ON_AMD, ...liking(onArch('amd64')) } } },
      { ...ON_AMD, ...liking(onArch('amd64')) },
    ],
  ];
  for (const [index, [what, tags, spec, nodeAffinity]] of sets.entries()) {
    it(`the pods of a StatefulSet with ${what} run on nodes that fit`, async () => {
      const own = {
        images: await Promise.all(tags.map((tag) => freshImage(world, tag))),
        spec: spec ?? {},
        replicas: 2,
      };
      await world.create(statefulSet('shop', `set-${index}`, own));
      for (const found of await running('shop', `set-${index}`, 2)) {
        expect(affinity(found)).to.deep.equal({ nodeAffinity });
      }
    });
  }

  it('the pods of a StatefulSet without a common architecture are held by the gate, with an Event', async () => {
    const ns = await world.namespace('torn');
    await world.create(statefulSet(ns, 'torn', { images: [world.image('amd64'), world.image('arm64')], replicas: 1 }));
    await world.eventuallyEvent(ns, 'NoCommonArchitecture', /^no architecture/);
    const found = await world.get('Pod', ns, 'torn-0');
    expect([gates(found), affinity(found)]).to.deep.equal([[GATE], undefined]);
  });

  it('the image of an ephemeral container is not looked up', async () => {
    const ephemeralContainers = [{ name: 'debug', image: world.image('debug-only') }];
    const path = `${pathOf('Pod', 'shop', 'warm-multi')}/ephemeralcontainers`;
    const debugged = await world.cluster.request('PATCH', path, { spec: { ephemeralContainers } });
    expectSuccess('the ephemeral container', debugged);
    // What came later was served.
    await released('shop', nameOf(await cold('shop')));
    const about = (await world.registry.requests()).filter(({ path: asked }) => asked.includes('debug-only'));
    expect(about).to.deep.equal([]);
    expect(affinity(await world.get('Pod', 'shop', 'warm-multi'))).to.deep.equal({
      nodeAffinity: { ...ON_BOTH, ...OURS },
    });
  });

  it('a preference is added even if nothing can be required, because the image is not found', async () => {
    const found = await admit(world, pod('shop', 'missing', { images: [world.image('nope')] }));
    expect(gates(found)).to.deep.equal([GATE]);
    expect(affinity(await released('shop', 'missing'))).to.deep.equal({ nodeAffinity: OURS });
  });

  it('pods go to other nodes if the preferred ones have no room', async () => {
    await world.cluster.kubectl(['cordon', 'arm64-1']);
    const name = nameOf(await warm('shop'));
    const found = await world.eventually('it to run', async () => {
      const now = await world.get('Pod', 'shop', name);
      return runs(now) && now;
    });
    await world.cluster.kubectl(['uncordon', 'arm64-1']);
    expect(scheduledOn(found)).to.equal('amd64-1');
  });

  it('if policies overlap, only the first applies, to the pods that its selector matches', async () => {
    const ns = await world.namespace('ordered');
    const nodeAffinity = (...weights: readonly (readonly [string, number])[]) => ({
      nodeAffinity: { ...ON_BOTH, ...preferring(...weights) },
    });
    expect(affinity(await warm(ns, { labels: { tier: 'front' } }))).to.deep.equal(nodeAffinity(['amd64', 60]));
    expect(affinity(await warm(ns))).to.deep.equal(nodeAffinity(['arm64', 20], ['amd64', 10]));
  });

  it('a configuration whose preference is not schedulable is refused', async () => {
    const flags = ['--architectures.schedulable', 'amd64', '--architectures.preferred', '{arm64: 75}'];
    const { code, stderr } = await world.command(['plan', ...flags]);
    expect(code).to.equal(3);
    expect(stderr).to.include('architectures.preferred').and.to.include('architectures.schedulable (amd64)');
  });

  it('pods are placed while the label of their namespace selects it', async () => {
    await world.stopControllers();
    await run('--pods.namespaceSelector', 'example.com/served=yes');
    const ns = await world.namespace('opting', { 'example.com/served': 'no' });
    const narrowed = { nodeAffinity: ON_BOTH };
    const becomes = (served: string, wanted: unknown) =>
      world.eventually(`a pod to be ${wanted === undefined ? 'left alone' : 'served'}`, async () => {
        await world.patch('Namespace', '', ns, { metadata: { labels: { 'example.com/served': served } } });
        const found = await warm(ns);
        if (gates(found).length > 0) return false;
        return JSON.stringify(affinity(found)) === JSON.stringify(wanted);
      });
    const before = await warm(ns);
    expect([gates(before), affinity(before)]).to.deep.equal([[], undefined]);
    await becomes('yes', narrowed);
    await becomes('no', undefined);
    await becomes('yes', narrowed);
  });
});
