import { expect } from 'chai';
import { at, textAt } from '../../hack/cluster/json.ts';
import { manifestWithoutDeployment } from '../support/manifest.ts';
import { annotation, nameOf, ours, runs, scheduledOn, taints, tolerations, uidOf } from '../support/objects.ts';
import { applyWebhook, arrangeWebhook, eventuallyTrusted, type Webhook } from '../support/webhook.ts';
import { daemonSet, deployment, pod } from '../support/workloads.ts';
import { pathOf } from '../support/world.ts';
import { admit, affinity, freshImage, GATE, gates, inSilence, MANAGED, onArch, required } from './support/placed.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const CONFIGURATION = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archaware-controller';
const ON_ARM = { nodeAffinity: required([onArch('arm64')]) };

describe('admission that is taken away again, on the real control plane', () => {
  let world: LiveWorld;
  let webhook: Webhook;
  let ns: string;
  let namespaces = 0;

  before(async () => {
    world = await startWorld();
    webhook = await arrangeWebhook(world);
  });
  after(() => world?.stop());
  beforeEach(async () => {
    await world.cluster.apply(await manifestWithoutDeployment());
    await applyWebhook(world, webhook.port);
    ns = await world.namespace(`undone-${++namespaces}`);
  });
  afterEach(async () => {
    await world.stopControllers();
    await world.cluster.kubectl(['delete', 'deployments,daemonsets,pods', '--all', '-n', ns, '--wait=false']);
    await world.command(['clean', '--yes', '--webhook.enabled', '--pods', 'keep']);
    await world.eventually('the pods to be gone', async () => (await world.list('Pod', ns)).length === 0);
  });

  async function run(mode: string): Promise<void> {
    const lease = ['--leaderElection.leaseDuration', '3s', '--bootstrap.timeout', '2s'];
    const controller = await world.run([...webhook.flags, '--placement.mode', mode, ...lease]);
    await eventuallyTrusted(world);
    await world.eventually('it to lead', async () => (await controller.metric('archaware_leader')) === 1);
  }
  const tainted = (yes: boolean) =>
    world.eventually(`nodes to be ${yes ? '' : 'un'}tainted`, async () =>
      (await world.list('Node', '')).every((node) => taints(node).length === (yes ? 1 : 0)),
    );
  const allRun = (count: number) =>
    world.eventually(`${count} pods to run`, async () => {
      const pods = (await world.list('Pod', ns)).filter(
        (found) => at(found, 'metadata', 'deletionTimestamp') === undefined,
      );
      return pods.length === count && pods.every(runs) && pods;
    });
  const warm = async (image: string) => {
    let tries = 0;
    await world.eventually(
      'the image to be known',
      async () => gates(await admit(world, pod(ns, `warm-${++tries}`, { images: [image] }))).length === 0,
    );
    await world.cluster.kubectl(['delete', 'pods', '--all', '-n', ns, '--force']);
  };
  /** Nodes and DaemonSets as their authors wrote them, without what archaware and Kubernetes write later. */
  const foreign = async () =>
    [...(await world.list('Node', '')), ...(await world.list('DaemonSet', ''))].map((object) => ({
      name: nameOf(object),
      labels: at(object, 'metadata', 'labels'),
      spec: at(object, 'spec'),
      ours: Object.keys(Object(at(object, 'metadata', 'annotations'))).filter((name) =>
        name.startsWith('archaware.dev/'),
      ),
    }));

  it('clean takes the configuration first, then every gate, and leaves nothing of ours; gated pods are scheduled', async () => {
    await world.create(daemonSet(ns, 'agent', { images: [world.image('multi')], spec: { priority: 0 } }));
    await allRun(2);
    const before = await foreign();
    await run('both');
    await tainted(true);
    await warm(world.image('arm64'));
    await world.create(deployment(ns, 'web', { images: [world.image('arm64')], replicas: 2 }));
    await allRun(4);
    expect((await world.pods(ns, 'web')).every((found) => annotation(found, MANAGED) !== undefined)).to.equal(true);
    await inSilence(world, async () => {
      const images = [world.image('wide')];
      await world.create(deployment(ns, 'gated', { images, replicas: 3 }), pod(ns, 'bare', { images }));
      await world.eventually('them to be gated', async () => {
        const pods = [...(await world.pods(ns, 'gated')), await world.get('Pod', ns, 'bare')];
        return pods.length === 4 && pods.every((found) => gates(found).includes(GATE));
      });
      await world.stopControllers();
    });
    const gated = new Map(
      (await world.list('Pod', ns)).filter((found) => gates(found).length > 0).map((found) => [uidOf(found), found]),
    );
    const from = await world.requestCount();
    const { code, stdout, stderr } = await world.command(['clean', '--yes', '--webhook.enabled', '--output', 'json']);
    expect(code, stdout + stderr).to.equal(0);
    expect(at(JSON.parse(stdout), 'removed', 'gates')).to.equal(4);

    const writes = await world.writesSince(from);
    const first = writes.findIndex((line) => line.includes('/pods/'));
    const deleted = writes.findIndex((line) =>
      /^delete .*mutatingwebhookconfigurations\/archaware-controller /.test(line),
    );
    expect(deleted).to.be.within(0, first - 1);
    expect((await world.cluster.request('GET', CONFIGURATION)).status).to.equal(404);
    const secret = pathOf('Secret', 'archaware', 'archaware-controller-webhook');
    expect((await world.cluster.request('GET', secret)).status).to.equal(404);

    for (const found of await allRun(8)) {
      expect(gates(found)).to.deep.equal([]);
      expect(annotation(found, MANAGED)).to.equal(undefined);
      // The others could start on a node of amd64 if they were replaced.
      expect(tolerations(found)).to.deep.equal(
        textAt(found, 'metadata', 'labels', 'app') === 'web' ? ours('arm64') : [],
      );
      // Of the pods that were gated nothing but the gate has changed.
      const wished = gated.get(uidOf(found));
      if (wished !== undefined) expect(affinity(found)).to.deep.equal(affinity(wished));
    }
    expect((await world.list('Pod', ns)).map(uidOf)).to.include.members([...gated.keys()]);
    expect(await foreign()).to.deep.equal(before);
    expect((await world.command(['clean', '--yes', '--webhook.enabled'])).code).to.equal(0);
  });

  it('clean in mode affinity forgets what admission noted, and touches no running pod otherwise', async () => {
    await run('affinity');
    await warm(world.image('arm64'));
    await world.create(
      deployment(ns, 'web', { images: [world.image('arm64')], replicas: 2 }),
      pod(ns, 'bare', { images: [world.image('arm64')] }),
    );
    const before = (await allRun(3)).map((found) => [uidOf(found), at(found, 'spec')]);
    await world.stopControllers();
    const { code, stdout, stderr } = await world.command(['clean', '--yes', '--webhook.enabled']);
    expect(code, stdout + stderr).to.equal(0);
    const after = await world.list('Pod', ns);
    expect(after.map((found) => [uidOf(found), at(found, 'spec')])).to.have.deep.members(before);
    expect(after.map((found) => annotation(found, MANAGED))).to.deep.equal([undefined, undefined, undefined]);
  });

  it('a gate can be taken away by hand, where nothing of ours is left to do it', async () => {
    await run('affinity');
    await inSilence(world, async () => {
      expect(gates(await admit(world, pod(ns, 'left', { images: [world.image('riscv64')] })))).to.deep.equal([GATE]);
      await world.stopControllers('SIGKILL');
    });
    await world.cluster.kubectl(['delete', 'mutatingwebhookconfiguration', 'archaware-controller']);
    const patch = JSON.stringify([{ op: 'remove', path: '/spec/schedulingGates' }]);
    const { code } = await world.cluster.kubectl(['patch', 'pod', 'left', '-n', ns, '--type=json', '-p', patch]);
    expect(code).to.equal(0);
    await allRun(1);
    await world.cluster.request(
      'DELETE',
      '/apis/coordination.k8s.io/v1/namespaces/archaware/leases/archaware-controller',
    );
  });

  it('releases a pod without the affinity that a policy keeps refusing, after more than a minute, with an Event', async () => {
    const refuse = (what: string, of: string) => ({
      policy: {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingAdmissionPolicy',
        metadata: { name: `no-${what}` },
        spec: {
          matchConstraints: {
            resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['pods'] }],
          },
          matchConditions: [
            { name: 'labelled', expression: `object.metadata.labels[?'refuse'].orValue('') == '${of}'` },
          ],
          validations: [
            {
              expression: `dyn(object.spec).?${what}.orValue(null) == dyn(oldObject.spec).?${what}.orValue(null)`,
              message: `nobody changes ${what}`,
            },
          ],
        },
      },
      binding: {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingAdmissionPolicyBinding',
        metadata: { name: `no-${what}` },
        spec: { policyName: `no-${what}`, validationActions: ['Deny'] },
      },
    });
    const { policy, binding } = refuse('affinity', 'affinity');
    await world.cluster.apply(`${JSON.stringify(policy)}\n---\n${JSON.stringify(binding)}`);
    await run('both');
    const one = await freshImage(world, 'arm64');
    let tries = 0;
    await world.eventually('the policy to be in force', async () => {
      const name = `probe-${++tries}`;
      await world.create(
        pod(ns, name, {
          images: [world.image('multi')],
          // Without archaware's own affinity, which the API server would not let go either.
          labels: { refuse: 'affinity', 'archaware.dev/ignore': 'true' },
          spec: { schedulingGates: [{ name: 'example.com/own' }] },
        }),
      );
      const more = [{ op: 'add', path: '/spec/affinity', value: ON_ARM }];
      const { body } = await world.cluster.request('PATCH', pathOf('Pod', ns, name), more);
      return textAt(body, 'message')?.includes('nobody changes affinity') === true;
    });
    await world.cluster.kubectl(['delete', 'pods', '--all', '-n', ns, '--force']);
    await world.create(pod(ns, 'one', { images: [one], labels: { refuse: 'affinity' } }));
    await world.eventuallyEvent(ns, 'WriteRefused', /nobody changes affinity/);
    expect(gates(await world.get('Pod', ns, 'one'))).to.deep.equal([GATE]);
    const isReleased = async () => {
      const found = await world.get('Pod', ns, 'one');
      return gates(found).length === 0 && found;
    };
    const first = await world.cluster.waitFor('the gate to go', isReleased, 180_000);
    expect([affinity(first), tolerations(first)]).to.deep.equal([undefined, ours('arm64')]);
    await world.eventuallyEvent(ns, 'OpenPlacement', /^released without node affinity, .*nobody changes affinity/);
    await world.cluster.kubectl(['delete', 'validatingadmissionpolicies,validatingadmissionpolicybindings', '--all']);
  }).timeout(300_000);

  it('goes from taints over both to affinity on a live cluster, and no pod of a Deployment has to go for it', async () => {
    const images = [world.image('arm64')];
    const web = async () => (await world.pods(ns, 'web')).map(uidOf);
    const template = async () => tolerations(at(await world.get('DaemonSet', ns, 'agent'), 'spec', 'template'));
    await world.run(['--bootstrap.timeout', '2s']);
    await tainted(true);
    await world.create(
      deployment(ns, 'web', { images, replicas: 2 }),
      daemonSet(ns, 'agent', { images: [world.image('multi')] }),
    );
    await allRun(4);
    const uids = await web();
    await world.stopControllers();

    await run('both');
    await world.create(deployment(ns, 'both', { images, replicas: 2 }));
    await allRun(6);
    for (const found of await world.pods(ns, 'both')) {
      expect([tolerations(found), affinity(found)]).to.deep.equal([ours('arm64'), ON_ARM]);
    }
    expect(await template()).to.deep.equal(ours('amd64', 'arm64'));
    expect(await web()).to.have.members(uids);
    await world.stopControllers();

    await run('affinity');
    await tainted(false);
    await world.eventually('the template to be as it was', async () => (await template()).length === 0);
    await world.create(deployment(ns, 'affinity', { images, replicas: 2 }));
    await allRun(8);
    for (const found of await world.pods(ns, 'affinity')) {
      expect([tolerations(found), affinity(found), scheduledOn(found)]).to.deep.equal([[], ON_ARM, 'arm64-1']);
    }
    expect(await web()).to.have.members(uids);
  });
});
