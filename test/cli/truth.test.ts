import { expect } from 'chai';
import { at, type JsonObject, objects, text } from '../simulator/json.ts';
import { runInProcess } from '../support/in-process.ts';
import { PODS, type Product, startProduct, workload } from '../support/product.ts';

const RBAC = 'rbac.authorization.k8s.io';
const LABELS = { 'app.kubernetes.io/name': 'archaware-controller' };
const OWN_PODS = '/api/v1/namespaces/archaware/pods';
const LEASE = '/apis/coordination.k8s.io/v1/namespaces/archaware/leases';
const MODES = ['taints', 'affinity', 'both', 'observe'] as const;
const STATES = ['not installed', 'leader away', 'installed'] as const;

/** What Kubernetes' own ClusterRole `view` has of the kinds that matter here: no nodes, no Secrets, no ClusterRoleBindings. */
const VIEW = {
  apiVersion: `${RBAC}/v1`,
  kind: 'ClusterRole',
  metadata: { name: 'view' },
  rules: [
    { apiGroups: [''], resources: ['pods', 'namespaces', 'events', 'serviceaccounts', 'configmaps'] },
    { apiGroups: ['apps'], resources: ['deployments', 'daemonsets', 'replicasets', 'statefulsets'] },
    { apiGroups: ['batch'], resources: ['jobs', 'cronjobs'] },
    { apiGroups: ['events.k8s.io'], resources: ['events'] },
  ].map((rule) => ({ ...rule, verbs: ['get', 'list', 'watch'] })),
};

describe('what the commands say of one cluster', () => {
  let product: Product;
  const kubeconfigs = new Map<string, string>();
  const runsOn = new Map<string, readonly string[]>();

  before(async () => {
    product = await startProduct({
      nodes: ['arm64'],
      cluster: { imagePlatforms: (image) => runsOn.get(image) },
    });
    const { cluster } = product;
    const image = (name: string, platforms: readonly string[]) => {
      const reference = product.image(name, platforms);
      runsOn.set(reference, platforms);
      return reference;
    };
    const amd = image('amd', ['amd64']);
    const onNode = (name: string, node: string) =>
      product.eventually(`${name} on ${node}`, async () =>
        (await product.list(PODS)).some(
          (pod) => at(pod, 'metadata', 'labels', 'app') === name && at(pod, 'spec', 'nodeName') === node,
        ),
      );
    await cluster.apply(workload('Deployment', 'wrong', [amd]));
    await onNode('wrong', 'arm64-1');
    await product.patch('/api/v1/nodes/arm64-1', { spec: { unschedulable: true } });
    await cluster.createNode({ name: 'amd64-1', architecture: 'amd64' });
    await cluster.apply(workload('Deployment', 'right', [amd]));
    await onNode('right', 'amd64-1');
    await product.patch('/api/v1/nodes/arm64-1', { spec: { unschedulable: null } });
    await cluster.apply(workload('Deployment', 'multi', [image('multi', ['amd64', 'arm64'])]));
    await cluster.apply(workload('Deployment', 'lost', [`${product.registry.host}/lost:1`]));
    await cluster.apply(workload('DaemonSet', 'agent', [image('agent', ['amd64', 'arm64'])]));
    await cluster.apply(workload('DaemonSet', 'amdonly', [amd]));
    await cluster.apply(JSON.stringify(VIEW));
    for (const [person, role] of [
      ['administrator', 'archaware-reader'],
      ['view', 'view'],
    ] as const) {
      await cluster.apply(
        JSON.stringify({
          apiVersion: `${RBAC}/v1`,
          kind: 'ClusterRoleBinding',
          metadata: { name: person },
          roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role },
          subjects: [{ kind: 'ServiceAccount', namespace: 'default', name: person }],
        }),
      );
    }
    kubeconfigs.set('administrator', cluster.kubeconfig);
    for (const person of ['view', 'nobody']) {
      kubeconfigs.set(person, await cluster.serviceAccountKubeconfig('default', person));
    }
  });
  after(() => product.stop());

  const run = async (person: string, ...args: readonly string[]) => {
    const access = ['--kubeconfig', kubeconfigs.get(person) ?? '', '--registries.insecure', product.registry.host];
    return runInProcess([...args, ...access, '--lookup-timeout', '0s'], { clock: product.clock });
  };

  /** Brings the installation into a state. Its own image cannot be looked up. */
  async function bring(state: (typeof STATES)[number]): Promise<void> {
    await product.cluster.request('DELETE', `${LEASE}/archaware-controller`);
    if (state === 'not installed') return;
    const containers = [{ name: 'c', image: `${product.registry.host}/archaware:1`, args: ['run'] }];
    const deployment = {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
      metadata: { name: 'archaware-controller', namespace: 'archaware', labels: LABELS },
      spec: {
        replicas: 1,
        selector: { matchLabels: LABELS },
        template: { metadata: { labels: LABELS }, spec: { containers, serviceAccountName: 'archaware-controller' } },
      },
    };
    await product.cluster.apply(JSON.stringify(deployment));
    await product.eventually('its pod', async () => (await product.list(OWN_PODS)).length === 1);
    if (state === 'leader away') return;
    const spec = {
      holderIdentity: 'a',
      leaseDurationSeconds: 100_000,
      renewTime: new Date().toISOString().replace('Z', '000Z'),
    };
    const metadata = { name: 'archaware-controller', namespace: 'archaware' };
    await product.cluster.apply(
      JSON.stringify({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec }),
    );
  }

  for (const state of STATES) {
    describe(state, () => {
      before(() => bring(state));

      for (const mode of MODES) {
        it(`plan, mode ${mode}: who is on a wrong node, who would be Pending, and what new pods get`, async () => {
          const { code, stdout, stderr } = await run('administrator', 'plan', '--placement.mode', mode, '-o', 'json');
          const result: unknown = JSON.parse(stdout);
          const named = (field: string, is: (each: JsonObject) => boolean = () => true) =>
            objects(at(result, field))
              .filter(is)
              .map(({ name }) => text(name));
          expect(code, stderr).to.equal(mode === 'observe' ? 0 : 2);
          expect(named('workloads', ({ onWrongNode }) => onWrongNode === true)).to.deep.equal(['amdonly', 'wrong']);
          expect(named('workloads', ({ reach }) => reach === 'nowhere')).to.deep.equal([]);
          expect(named('workloads', ({ pendingAtRestart }) => pendingAtRestart === true)).to.deep.equal([]);
          const own = state === 'not installed' ? [] : ['archaware-controller'];
          expect(named('workloads', ({ reach }) => reach === 'unknown')).to.deep.equal([...own, 'lost']);
          expect(objects(at(result, 'unresolved'))).to.have.length(own.length + 1);
          const required = objects(at(result, 'newPods')).map(
            ({ name, requires }) => `${text(name)} ${objects(requires).map(({ values }) => String(values))}`,
          );
          expect(required).to.deep.equal(
            mode === 'affinity' || mode === 'both' ? ['multi amd64,arm64', 'right amd64', 'wrong amd64'] : [],
          );
        });
      }
    });
  }
});
