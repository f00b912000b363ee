import { expect } from 'chai';
import { at } from '../../hack/cluster/json.ts';
import { type LiveWorld, startWorld } from '../e2e/support/world.ts';
import { annotation, ours, runs, taints, tolerations } from '../support/objects.ts';
import { daemonSet } from '../support/workloads.ts';

const NODES = ['amd64-1', 'amd64-2', 'arm64-1', 'arm64-2'];
const DEADLINE_MS = 480_000;
const MANY = { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '100%' } } };

/** A policy of the cluster lets no pod in that tolerates a taint of archaware. */
const POLICY = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: only-known-tolerations}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations:
  - expression: >-
      !has(object.spec.tolerations)
      || object.spec.tolerations.all(t, has(t.key) && t.key.startsWith('node.kubernetes.io'))
    message: tolerations need an approval
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: only-known-tolerations}
spec: {policyName: only-known-tolerations, validationActions: [Deny]}
`;

describe('the brake, with its real five minutes', function () {
  this.timeout(900_000);
  let world: LiveWorld;
  before(async () => {
    world = await startWorld({
      nodes: NODES.map((name) => ({ name, architecture: name.split('-')[0] ?? '' })),
    });
  });
  after(() => world?.stop());

  const eventually = <T>(what: string, condition: () => Promise<T | false | undefined>) =>
    world.cluster.waitFor(what, condition, DEADLINE_MS);
  const running = async (namespace: string, name: string) => (await world.pods(namespace, name)).filter(runs).length;
  const template = async (namespace: string, name: string) =>
    tolerations(at(await world.get('DaemonSet', namespace, name), 'spec', 'template'));
  const tainted = async () => (await world.list('Node', '')).flatMap(taints).sort();

  it('stops at the first DaemonSet whose pods are refused, takes its change back, and taints no node', async () => {
    const namespace = await world.namespace('agents');
    const images = [world.image('multi')];
    await world.create(
      daemonSet(namespace, 'logs', { images, workload: MANY }),
      daemonSet('kube-system', 'cni', { images }),
    );
    for (const [where, name] of [
      [namespace, 'logs'],
      ['kube-system', 'cni'],
    ] as const)
      await eventually(`${name} to run`, async () => (await running(where, name)) === NODES.length);
    await world.cluster.apply(POLICY);
    await eventually('the policy to be enforced', async () => {
      const spec = { containers: [{ name: 'a', image: 'a' }], tolerations: [{ operator: 'Exists' }] };
      const pod = { metadata: { name: 'probe' }, spec };
      const { status } = await world.cluster.request('POST', `/api/v1/namespaces/${namespace}/pods?dryRun=All`, pod);
      return status === 422;
    });
    const controller = await world.run();
    await eventually('cni to lose a pod', async () => (await running('kube-system', 'cni')) === NODES.length - 1);
    await eventually('cni to be restored', async () => (await template('kube-system', 'cni')).length === 0);
    await eventually('cni to be whole again', async () => (await running('kube-system', 'cni')) === NODES.length);
    await world.eventuallyEvent('kube-system', 'RolloutStopped', /no other DaemonSet and taints no node/);
    expect(await controller.metric('archaware_rollout_stopped')).to.equal(1);
    expect([await running(namespace, 'logs'), await template(namespace, 'logs')]).to.deep.equal([NODES.length, []]);
    expect(await tainted()).to.deep.equal([]);
  });

  it('stays so under the next leader, also for a node that joins, until the author restarts the DaemonSet', async () => {
    await world.stopControllers();
    const controller = await world.run(['--bootstrap.timeout', '5s']);
    await world.cluster.createNode({ name: 'amd64-9', architecture: 'amd64' });
    await eventually(
      'the node to be held back',
      async () => (await controller.metric('archaware_taints_held_back')) > 0,
    );
    expect(await controller.metric('archaware_rollout_stopped')).to.equal(1);
    expect(annotation(await world.get('DaemonSet', 'kube-system', 'cni'), 'archaware.dev/tolerations')).to.include(
      '"rollout":"back ',
    );
    expect(await tainted()).to.deep.equal([]);
    await world.cluster.kubectl(['delete', 'validatingadmissionpolicybinding', 'only-known-tolerations']);
    await world.cluster.kubectl(['-n', 'kube-system', 'rollout', 'restart', 'daemonset/cni']);
    const all = ['amd64', 'amd64', 'amd64', 'arm64', 'arm64'].flatMap((architecture) => ours(architecture));
    await eventually('every node to be tainted', async () => (await tainted()).join() === all.join());
    await eventually('cni to run everywhere', async () => (await running('kube-system', 'cni')) === NODES.length + 1);
    await eventually('logs to run everywhere', async () => (await running('agents', 'logs')) === NODES.length + 1);
    expect(await template('agents', 'logs')).to.deep.equal(ours('amd64', 'arm64'));
    expect(await controller.metric('archaware_rollout_stopped')).to.equal(0);
  });
});
