import { expect } from 'chai';
import { ARCHITECTURE_GATE } from '../../src/names.ts';
import { installation, productForEach, settled } from '../support/product.ts';

const TAINT = { key: 'supported-arch', value: 'arm64', effect: 'NoSchedule' };

describe('the readings of clean', () => {
  const product = productForEach();

  /** A Deployment of two pods and a DaemonSet with archaware's tolerations, on nodes with its taint; nobody leads. */
  async function leaveTraces() {
    await (await settled(product)).stop();
    product.cluster.forgetRequests();
  }
  const clean = (args: readonly string[], answers?: readonly string[]) =>
    product.asAdmin(['clean', ...args], answers && { answers });
  /** How often each collection of the whole cluster was read, and how often the version was asked for: once for each connection. */
  function readings() {
    const count = (path: string) =>
      product.cluster.requests().filter((request) => request.method === 'GET' && request.path.split('?')[0] === path)
        .length;
    return {
      ...{ pods: count('/api/v1/pods'), nodes: count('/api/v1/nodes') },
      ...{ daemonSets: count('/apis/apps/v1/daemonsets'), connections: count('/version') },
    };
  }
  const TWICE = { pods: 2, nodes: 2, daemonSets: 2, connections: 1 };

  it('are two of each kind over one connection: before the work and at the end', async () => {
    await leaveTraces();
    const { code, stdout } = await clean(['--yes']);
    expect(code, stdout).to.equal(0);
    expect(readings()).to.deep.equal(TWICE);
    product.cluster.forgetRequests();
    expect((await clean(['--yes'])).code).to.equal(0);
    expect(readings(), 'where nothing is left').to.deep.equal(TWICE);
    product.cluster.forgetRequests();
    expect((await clean(['--dry-run'])).code).to.equal(0);
    expect(readings()).to.deep.equal({ pods: 1, nodes: 1, daemonSets: 1, connections: 1 });
  });

  it('are two where the user is asked, because what is shown is what is removed', async () => {
    await leaveTraces();
    const { code, stdout, stderr } = await clean([], ['y']);
    expect(code, stdout + stderr).to.equal(0);
    expect(readings()).to.deep.equal(TWICE);
  });

  it('are three where --stop ends a controller after the user answered, because it wrote until then', async () => {
    await leaveTraces();
    const containers = [{ name: 'c', image: 'example.com/c:1' }];
    await product.cluster.apply(installation({ schedulerName: 'none', containers }));
    product.cluster.forgetRequests();
    const { code, stdout, stderr } = await clean(['--stop'], ['y']);
    expect(code, stdout + stderr).to.equal(0);
    expect(readings()).to.deep.equal({ pods: 3, nodes: 3, daemonSets: 3, connections: 1 });
  });

  it('go on until nothing is found: a gated pod and a tainted node that appear meanwhile are cleaned, and it reads again', async () => {
    await leaveTraces();
    product.cluster.faults.conflictNextPatch(/daemonsets/, async () => {
      await product.cluster.createNode({ name: 'arm64-2', architecture: 'arm64', taints: [TAINT] });
      await product.cluster.createPod({ name: 'late', spec: { schedulingGates: [{ name: ARCHITECTURE_GATE }] } });
    });
    const { code, stdout, stderr } = await clean(['--yes']);
    expect(code, stdout + stderr).to.equal(0);
    expect(stderr).to.include('nodes that joined or changed meanwhile: arm64-2');
    expect(stderr).to.match(/Node arm64-2 joined with the taint of archaware.*--register-with-taints/);
    expect(readings()).to.deep.equal({ pods: 3, nodes: 3, daemonSets: 3, connections: 1 });
    expect(stdout).to.match(/gates of pods +1 +0/);
    expect(stdout).to.match(/nodes with taint or labels +3 +0/);
  });

  it('are five at the end at most, although each finds another node that joined with the taint, and cleans it', async () => {
    await leaveTraces();
    let joined = 0;
    const join = async (): Promise<void> => {
      joined++;
      if (joined < 20) product.cluster.faults.conflictNextPatch(new RegExp(`nodes/late-${joined}`), join);
      await product.cluster.createNode({ name: `late-${joined}`, architecture: 'arm64', taints: [TAINT] });
    };
    product.cluster.faults.conflictNextPatch(/daemonsets/, join);
    const { code, stdout } = await clean(['--yes']);
    expect(code, stdout).to.equal(0);
    expect(readings()).to.deep.equal({ pods: 6, nodes: 6, daemonSets: 6, connections: 1 });
  });
});
