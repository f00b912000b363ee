import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { ours, runs, tolerations } from './support/objects.ts';
import { affinity, freshImage, GATE, gates, onArch, required } from './support/placed.ts';
import { arrangeWebhook, eventuallyTrusted } from './support/webhook.ts';
import { deployment, pod, statefulSet } from './support/workloads.ts';
import { startWorld, type World } from './support/world.ts';

const ON_ARM = { nodeAffinity: required([onArch('arm64')]) };
const PLUGINS = '--enable-admission-plugins=NodeRestriction,PodTolerationRestriction';
const WHITELIST = 'scheduler.alpha.kubernetes.io/tolerationsWhitelist';
const OWN = ['not-ready', 'unreachable', 'memory-pressure'];
/** As an administrator writes it who has never heard of archaware. */
const OTHERS = JSON.stringify(OWN.map((key) => ({ operator: 'Exists', key: `node.kubernetes.io/${key}` })));
const NO_TOLERATIONS =
  "object.spec.?tolerations.orValue([]).all(t, t.?key.orValue('').startsWith('node.kubernetes.io/'))";

describe('policies of others that refuse what archaware adds, on the real control plane', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ cluster: { apiServerArgs: [PLUGINS] } });
    const names = ['policy', 'whitelist', 'nogates', 'open'];
    for (const name of names) await world.namespace(name);
    await world.cluster.kubectl(['annotate', 'namespace', 'whitelist', `${WHITELIST}=${OTHERS}`]);
    await world.cluster.apply(refusing('policy', NO_TOLERATIONS, 'tolerations are not allowed here'));
    await world.cluster.apply(
      refusing(
        'nogates',
        "object.spec.?schedulingGates.orValue([]).all(g, g.name == 'example.com/own')",
        'scheduling gates are not allowed here',
      ),
    );
    const webhook = await arrangeWebhook(world);
    await world.run([...webhook.flags, '--placement.mode', 'both', '--bootstrap.timeout', '2s']);
    await eventuallyTrusted(world);
    await world.eventually('the policies to be in force', async () => {
      const tolerating = pod('policy', 'probe', { images: ['a'], tolerations: [{ key: 'x', operator: 'Exists' }] });
      const gated = pod('nogates', 'probe', { images: ['a'], spec: { schedulingGates: [{ name: 'x' }] } });
      const codes = await Promise.all(
        [tolerating, gated].map(async (each) => {
          const path = `/api/v1/namespaces/${each.metadata.namespace}/pods?dryRun=All`;
          return (await world.cluster.request('POST', path, each)).status;
        }),
      );
      return codes.every((code) => code === 422);
    });
  });
  after(() => world?.stop());

  /** The only pod of a workload, once it is there. */
  const created = (namespace: string, app: string) =>
    world.eventually(`a pod of ${namespace}/${app}`, async () => (await world.pods(namespace, app))[0]);

  it('release a pod whose tolerations are answered with 500, after a minute, with its affinity', async () => {
    const image = await freshImage(world, 'arm64');
    await world.create(pod('whitelist', 'cold', { images: [image] }));
    expect(gates(await world.get('Pod', 'whitelist', 'cold'))).to.deep.equal([GATE]);
    const found = await world.cluster.waitFor(
      'the gate to go',
      async () => {
        const now = await world.get('Pod', 'whitelist', 'cold');
        return gates(now).length === 0 && now;
      },
      180_000,
    );
    expect([tolerations(found), affinity(found)]).to.deep.equal([[], ON_ARM]);
    await world.eventuallyTold('whitelist', 'OpenPlacement', /^released without tolerations, .*namespace whitelist/);
  }).timeout(240_000);

  it('let pods of a Deployment and a StatefulSet be created within seconds, without the refused tolerations', async () => {
    const image = await freshImage(world, 'arm64');
    // Its platforms are known from now on.
    await world.create(pod('open', 'warm', { images: [image] }));
    await world.eventuallyTolerates('open', 'warm', ours('arm64'));
    for (const namespace of ['policy', 'whitelist']) {
      await world.create(
        deployment(namespace, 'web', { images: [image] }),
        statefulSet(namespace, 'db', { images: [image] }),
      );
      for (const app of ['web', 'db']) {
        const found = await created(namespace, app);
        expect([tolerations(found), affinity(found)]).to.deep.equal([[], ON_ARM]);
      }
      const note = await world.eventuallyTold(namespace, 'RefusedByPolicy', /names tolerations/);
      expect(note).to.contain('leaves it out of the next pods').and.contain('tolerations of supported-arch');
    }
  });

  it('let pods with an unknown image be created without the refused gate, and the loop gives them tolerations', async () => {
    await world.create(deployment('nogates', 'web', { images: [await freshImage(world, 'arm64')] }));
    const found = await created('nogates', 'web');
    await world.eventuallyTolerates('nogates', String(at(found, 'metadata', 'name')), ours('arm64'));
    await world.eventually('it to run', async () => (await world.pods('nogates', 'web')).every(runs));
    await world.eventuallyTold('nogates', 'RefusedByPolicy', /names scheduling gates/);
  });

  it('make no difference to another namespace, whatever its Events claim', async () => {
    const image = await freshImage(world, 'arm64');
    await world.create(pod('open', 'again', { images: [image] }));
    await world.eventuallyTolerates('open', 'again', ours('arm64'));
    await world.create(deployment('open', 'web', { images: [image] }));
    const first = await created('open', 'web');
    const [owner] = listAt(first, 'metadata', 'ownerReferences');
    // The Event of a tenant in its own namespace, about an owner in another one.
    const forged = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'forged', namespace: 'nogates' },
      involvedObject: { ...Object(owner), namespace: 'open' },
      reason: 'FailedCreate',
      message: 'tolerations, affinity and schedulingGates are refused',
    };
    expect((await world.cluster.request('POST', '/api/v1/namespaces/nogates/events', forged)).status).to.equal(422);
    const elsewhere = { ...forged, involvedObject: { ...Object(owner), namespace: 'nogates' } };
    expect((await world.cluster.request('POST', '/api/v1/namespaces/nogates/events', elsewhere)).status).to.equal(201);
    await world.eventuallyTold('nogates', 'RefusedByPolicy', /tolerations, affinity and schedulingGates are refused/);
    await world.remove('Pod', 'open', String(at(first, 'metadata', 'name')));
    const next = await world.eventually('the next pod', async () =>
      (await world.pods('open', 'web')).find((each) => at(each, 'metadata', 'uid') !== at(first, 'metadata', 'uid')),
    );
    expect([tolerations(next), affinity(next)]).to.deep.equal([ours('arm64'), ON_ARM]);
  });
});

/** A policy of the cluster about pods of one namespace. */
function refusing(namespace: string, expression: string, message: string): string {
  const metadata = { name: `refuse-in-${namespace}` };
  const policy = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata,
    spec: {
      matchConstraints: {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        resourceRules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['pods'] },
        ],
      },
      validations: [{ message, expression }],
    },
  };
  const binding = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata,
    spec: { policyName: metadata.name, validationActions: ['Deny'] },
  };
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [policy, binding] });
}
