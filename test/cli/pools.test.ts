import { expect } from 'chai';
import { at, type JsonObject, objects } from '../simulator/json.ts';
import { productForEach } from '../support/product.ts';
import { taintsOf } from '../support/world.ts';

const POOL = { 'karpenter.sh/nodepool': 'default' };

/** The kinds of the group, and the list of one of them. */
const NODE_POOLS = /^\/apis\/karpenter\.sh\/v1($|\/nodepools)/;

/** A NodePool for this architecture, with these taints in this list of its template. */
const nodePool = (name: string, architecture: string, list?: 'taints' | 'startupTaints') => ({
  metadata: { name },
  spec: {
    template: {
      spec: {
        requirements: [{ key: 'kubernetes.io/arch', operator: 'In', values: [architecture] }],
        ...(list ? { [list]: [{ key: 'supported-arch', value: architecture, effect: 'NoSchedule' }] } : {}),
      },
    },
  },
});

describe('plan, where nodes come from pools', () => {
  const product = productForEach();

  const serve = (...items: readonly JsonObject[]) =>
    product.cluster.faults.inject({ path: NODE_POOLS, status: 200, body: { metadata: {}, items } });
  const join = (name: string, labels: Record<string, string>) =>
    product.cluster.createNode({ name, architecture: 'arm64', labels });

  it('reports the problems of each NodePool, on standard error and in its output', async () => {
    serve(nodePool('bare', 'amd64'), nodePool('right', 'arm64', 'taints'), nodePool('late', 'arm64', 'startupTaints'));
    const { code, stdout, stderr } = await product.command(['plan', '--output', 'json']);
    expect(code).to.equal(2);
    expect(stderr).to.match(/^warning: NodePool bare lacks the taint supported-arch=amd64:NoSchedule\. /m);
    expect(stderr).to.match(/^error: NodePool late has supported-arch=arm64:NoSchedule in startupTaints\. /m);
    expect(stderr).not.to.include('NodePool right');
    const pools = objects(at(JSON.parse(stdout), 'pools'));
    expect(pools.map(({ kind, name, severity, problem }) => ({ kind, name, severity, problem }))).to.deep.equal([
      { kind: 'NodePool', name: 'bare', severity: 'warning', problem: 'taint-missing' },
      { kind: 'NodePool', name: 'late', severity: 'error', problem: 'startup-taint' },
      { kind: 'NodePool', name: 'late', severity: 'warning', problem: 'taint-missing' },
    ]);
    const people = await product.command(['plan']);
    expect(people.stdout).to.match(
      /NodePools with problems\.\nNODEPOOL +SEVERITY +PROBLEM\nbare +warning +taint-missing\n/,
    );
    expect(product.cluster.writes()).to.deep.equal([]);
  });

  it('prints for each pool how many pods it could run, and the steps, on their own', async () => {
    serve(nodePool('right', 'arm64', 'taints'), nodePool('bare', 'amd64'));
    await join('arm64-2', { 'eks.amazonaws.com/nodegroup': 'old' });
    await product.cluster.createPod({ name: 'a', images: [product.image('both', ['amd64', 'arm64'])] });
    await product.cluster.createPod({ name: 'b', images: [product.image('amd', ['amd64'])] });
    const { code, stdout } = await product.command(['plan', '--pools']);
    const patch = `[{"op":"add","path":"/spec/template/spec/taints","value":[{"key":"supported-arch","value":"amd64","effect":"NoSchedule"}]}]`;
    expect([code, stdout.replace(/ It lacks .*| warning: .*/g, '')]).to.deep.equal([
      2,
      [
        'EKS node group old (arm64): 1 of 2 pods could run there (50 %).',
        '  Its template should have the taint of its architecture: docs/autoscalers.md',
        '',
        'NodePool bare (amd64): 2 of 2 pods could run there (100 %).',
        ' ',
        '',
        '# with its taint; Karpenter replaces the nodes of the pool',
        `kubectl patch nodepool bare --type=json -p '${patch}'`,
        '',
        'NodePool right (arm64): 1 of 2 pods could run there (50 %).',
        '',
      ].join('\n'),
    ]);
    const alone = await product.command(['plan', '--pools', '--pods']);
    expect([alone.code, alone.stderr]).to.deep.equal([
      3,
      'archaware: plan: got --pools with --pods, --wide, --namespace or --selector, expected it alone: a pool is for the whole cluster\n',
    ]);
  });

  for (const status of [403, 404]) {
    it(`uses the labels of nodes if reading NodePools is answered with ${status}`, async () => {
      await join('arm64-2', POOL);
      product.cluster.faults.inject({ path: NODE_POOLS, status });
      const { code, stdout, stderr } = await product.command(['plan', '--output', 'json']);
      expect(code).to.equal(2);
      expect(JSON.parse(stdout)).not.to.have.property('pools');
      expect(stderr.trim().split('\n')).to.have.lengthOf(1);
      expect(stderr).to.match(
        /^nodes without the taint supported-arch:NoSchedule belong to pools: NodePool default \(1 node\)\./,
      );
    });
  }

  it('requests no NodePools if the kind does not exist, so that nothing is refused', async () => {
    await product.command(['plan']);
    const asked = product.cluster.requests().filter(({ path }) => path.includes('karpenter'));
    expect(asked.map(({ path }) => path)).to.deep.equal(['/apis/karpenter.sh/v1']);
  });
});

describe('clean, where pools set the taint themselves', () => {
  const product = productForEach({ nodes: [] });
  beforeEach(async () => {
    const taints = [{ key: 'supported-arch', value: 'arm64', effect: 'NoSchedule' }];
    for (const [name, labels] of [
      ['made', POOL],
      ['group', { agentpool: 'workers' }],
    ] as const) {
      await product.cluster.createNode({ name, architecture: 'arm64', labels, taints });
    }
  });

  const serve = (...items: readonly JsonObject[]) =>
    product.cluster.faults.inject({ path: NODE_POOLS, status: 200, body: { metadata: {}, items } });
  const workers = { kind: 'AKS node pool', name: 'workers', nodes: 1, certain: false };

  for (const step of ['--dry-run', '--yes']) {
    it(`names them with ${step}, and takes the taint of the nodes for its own all the same`, async () => {
      serve(nodePool('default', 'arm64', 'taints'), nodePool('bare', 'arm64'));
      const { code, stdout, stderr } = await product.command(['clean', step, '--output', 'json']);
      expect(code).to.equal(0);
      expect(stderr).to.match(
        /^NodePool default \(1 node\): the template sets the taint supported-arch:NoSchedule itself\./m,
      );
      expect(stderr).to.match(/^AKS node pool workers \(1 node\): these nodes carry the taint/m);
      const certain = { kind: 'NodePool', name: 'default', nodes: 1, certain: true };
      expect(at(JSON.parse(stdout), 'pools')).to.deep.equal([certain, workers]);
      const nodes = await product.list('/api/v1/nodes');
      expect(nodes.map((node) => taintsOf(node).join())).to.deep.equal(
        step === '--yes' ? ['', ''] : ['arm64', 'arm64'],
      );
    });
  }
});
