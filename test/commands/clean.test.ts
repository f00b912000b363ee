import { expect } from 'chai';
import { at, objects, text } from '../support/cluster/json.ts';
import { PODS, type Product, startProduct, taintsOf, tolerated, workload } from '../support/product.ts';

const SET = '/apis/apps/v1/namespaces/default/daemonsets/agent';
const LEASE = '/apis/coordination.k8s.io/v1/namespaces/archaware/leases/archaware-controller';

describe('clean', () => {
  let product: Product;
  beforeEach(async () => {
    product = await startProduct();
  });
  afterEach(() => product.stop());

  /** A Deployment of two pods and a DaemonSet on tainted nodes, and nobody who leads. */
  async function settle() {
    const image = product.image('app', ['amd64', 'arm64']);
    await product.cluster.apply(workload('Deployment', 'web', [image], { spec: { replicas: 2 } }));
    await product.cluster.apply(workload('DaemonSet', 'agent', [image]));
    const controller = await product.run();
    await product.eventuallyTainted();
    await product.eventually('four pods that tolerate both', async () => {
      const pods = await product.list(PODS);
      return pods.length === 4 && pods.every((pod) => tolerated(pod.spec).length === 2);
    });
    return controller;
  }
  const clean = async (...args: string[]) => {
    const { code, stdout, stderr } = await product.command([
      'clean',
      '--yes',
      '--output',
      'json',
      '--timeout',
      '10s',
      ...args,
    ]);
    const result: unknown = stdout === '' ? {} : JSON.parse(stdout);
    const left = objects(at(result, 'left')).map(({ kind, name }) => `${text(kind)} ${text(name)}`);
    return { code, stderr, left, removed: at(result, 'removed') };
  };
  const nothingLeft = async () => {
    for (const node of await product.list('/api/v1/nodes')) expect(taintsOf(node)).to.deep.equal([]);
    for (const pod of await product.list(PODS)) expect(tolerated(pod.spec)).to.deep.equal([]);
    expect(tolerated(at(await product.get(SET), 'spec', 'template', 'spec'))).to.deep.equal([]);
    const shown = JSON.stringify(
      [await product.list('/api/v1/nodes'), await product.get(SET)],
      (key, value: unknown) => (key === 'managedFields' ? undefined : value),
    );
    expect(shown).to.not.contain('archaware.dev/');
  };

  it('leaves nothing, and has nothing to do the second time', async () => {
    await (await settle()).stop();
    const { code, removed, left } = await clean();
    expect([code, left]).to.deep.equal([0, []]);
    expect(removed).to.deep.include({ configurations: 2, nodes: 2, daemonSets: 1 });
    await nothingLeft();
    product.cluster.forgetRequests();
    expect(await clean()).to.deep.include({ code: 0, left: [] });
    expect(product.written()).to.deep.equal([]);
  });

  it('goes policies, nodes, DaemonSets, pods', async () => {
    await (await settle()).stop();
    product.cluster.forgetRequests();
    await clean();
    const order = product.written().map((line) => /mutating|nodes|daemonsets|pods/.exec(line)?.[0] ?? line);
    expect(order.filter((kind, index) => kind !== order[index - 1])).to.deep.equal([
      'mutating',
      'nodes',
      'daemonsets',
      'pods',
    ]);
  });

  it('refuses beside a live leader, naming it, and touches nothing', async () => {
    const controller = await settle();
    const { code, stderr } = await clean();
    expect(code).to.equal(1);
    expect(stderr).to.match(/ leads \(Lease archaware\/archaware-controller\): stop it first/);
    const stopping = await clean('--stop');
    expect(stopping.code).to.equal(1);
    expect(stopping.stderr, 'our account may not scale').to.match(/cannot patch resource "deployments\/scale"/);
    await controller.stop();
    expect(taintsOf(await product.get('/api/v1/nodes/amd64-1'))).to.deep.equal(['amd64']);
  });

  it('takes over from a leader that was killed, once its lease is over', async () => {
    const controller = await settle();
    await controller.stop('SIGKILL');
    // As if it had been killed long ago: the lease runs out a second after clean has seen it.
    await product.patch(LEASE, { spec: { leaseDurationSeconds: 1 } });
    const { code, stderr } = await clean();
    expect(code).to.equal(0);
    expect(stderr).to.match(/holds the lease; waiting up to 15s/);
    await nothingLeft();
  });

  it('keeps the pods where it is told to', async () => {
    await (await settle()).stop();
    const { code, left } = await clean('--pods', 'keep');
    expect([code, left]).to.deep.equal([0, []]);
    expect(tolerated(at(await product.get(SET), 'spec', 'template', 'spec'))).to.deep.equal([]);
  });

  it('takes only our own taint where another writer adds one at the same time', async () => {
    await (await settle()).stop();
    const foreign = { key: 'example.com/gpu', effect: 'NoSchedule' };
    const node = '/api/v1/nodes/amd64-1';
    const taints = objects(at(await product.get(node), 'spec', 'taints'));
    product.cluster.faults.conflictNextPatch(/nodes\/amd64-1/, () =>
      product.cluster.request('PATCH', node, { spec: { taints: [...taints, foreign] } }),
    );
    expect(await clean()).to.have.property('code', 0);
    expect(objects(at(await product.get(node), 'spec', 'taints'))).to.deep.equal([foreign]);
  });

  it('goes no further where a taint is left: below it a restored DaemonSet would lose its pods', async () => {
    await (await settle()).stop();
    const heal = product.cluster.faults.inject({ method: 'PATCH', path: /nodes\/arm64-1/, status: 403 });
    const { code, left } = await clean();
    expect(code).to.equal(2);
    expect(left).to.include.members(['Node arm64-1', 'DaemonSet agent']);
    expect(tolerated(at(await product.get(SET), 'spec', 'template', 'spec'))).to.deep.equal(['amd64', 'arm64']);
    heal();
    expect(await clean()).to.deep.include({ code: 0, left: [] });
    await nothingLeft();
  });

  it('can be run again where the server went away in the middle', async () => {
    await (await settle()).stop();
    const heal = product.cluster.faults.inject({ method: 'PATCH', path: /daemonsets/, reset: true });
    const { code } = await clean('--pods', 'keep');
    expect(code).to.be.oneOf([1, 2]);
    heal();
    expect(await clean()).to.deep.include({ code: 0, left: [] });
    await nothingLeft();
  });

  it('refuses a flag that it does not know how to take', async () => {
    for (const [flag, value] of [
      ['--pods', 'burn'],
      ['--timeout', 'soon'],
    ] as const) {
      const { code, stderr } = await product.command(['clean', '--yes', flag, value]);
      expect(code).to.equal(3);
      expect(stderr).to.match(new RegExp(`^archaware-controller: ${flag}: got "${value}", expected .*\n$`));
    }
  });
});
