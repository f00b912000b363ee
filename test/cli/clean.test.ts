import { expect } from 'chai';
import { at, objects, text } from '../simulator/json.ts';
import { runInProcess } from '../support/in-process.ts';
import { PODS, type Product, settled, startProduct, tolerated, workload } from '../support/product.ts';
import { taintsOf } from '../support/world.ts';
import { cleaning } from './cleaning.ts';

const SET = '/apis/apps/v1/namespaces/default/daemonsets/agent';

describe('clean', () => {
  let product: Product;
  beforeEach(async () => {
    product = await startProduct();
  });
  afterEach(() => product.stop());

  const settle = () => settled(product);
  const { clean, nothingLeft } = cleaning(() => product);

  it('refuses while a leader lives, names it, and changes nothing', async () => {
    const controller = await settle();
    const { code, stderr } = await clean();
    expect(code).to.equal(1);
    expect(stderr).to.match(/ leads \(Lease archaware\/archaware-controller\): stop it first/);
    const stopping = await clean('--stop');
    expect(stopping.code).to.equal(1);
    expect(stopping.stderr, 'there is no Deployment to scale').to.match(
      / leads \(Lease .*it does not belong to the Deployment of archaware/,
    );
    await controller.stop();
    expect(taintsOf(await product.get('/api/v1/nodes/amd64-1'))).to.deep.equal(['amd64']);
  });

  it('removes what the leader wrote for status', async () => {
    const controller = await settle();
    const configMaps = async () =>
      (await product.list('/api/v1/namespaces/archaware/configmaps')).map((each) => text(at(each, 'metadata', 'name')));
    await product.eventually('the ConfigMap', async () => (await configMaps()).includes('archaware-controller-status'));
    await controller.stop();
    expect(await clean()).to.have.property('code', 0);
    expect(await configMaps()).not.to.include('archaware-controller-status');
  });

  it("removes only archaware's taint if another writer adds one at the same time", async () => {
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

  it('stops if a taint is left, because a restored DaemonSet would lose its pods', async () => {
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

  it('keeps pods whose successors could start on a wrong node, names them, and exits with 0', async () => {
    const controller = await settle();
    await product.cluster.apply(workload('Deployment', 'camera', [product.image('camera', ['arm64'])]));
    const containers = [{ name: 'c', image: product.image('app', ['amd64', 'arm64']) }];
    const bare = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'bare', namespace: 'default' },
      spec: { containers },
    };
    await product.cluster.apply(JSON.stringify(bare));
    await product.eventually('the pods to be placed', async () => {
      const pods = await product.list(PODS);
      return pods.length === 6 && pods.every((pod) => tolerated(pod.spec).length > 0);
    });
    await controller.stop();
    const cameras = async () =>
      (await product.list(PODS))
        .filter((pod) => tolerated(pod.spec).join() === 'arm64')
        .map((pod) => at(pod, 'metadata', 'uid'));
    const before = await cameras();
    expect(before).to.have.lengthOf(1);

    const dry = await product.command(['clean', '--dry-run', '--output', 'json', '--pods', 'restart']);
    const planned: unknown = JSON.parse(dry.stdout);
    const wrong = 'keep: a new pod could start on a node of amd64, for which its images have no build';
    const rows = objects(at(planned, 'left')).map(
      ({ kind, name, reason }) => `${text(kind)} ${text(name)}: ${text(reason)}`,
    );
    const of = (start: string) => rows.filter((row) => row.startsWith(start)).map((row) => row.replace(/^[^:]*: /, ''));
    const restarts = 'restart: its owner is restarted, if all of its pods are available';
    expect(of('Pod web-')).to.deep.equal([restarts, restarts]);
    expect(of('Pod agent-')).to.deep.equal(Array(2).fill('rolls: its DaemonSet replaces it'));
    expect(of('Pod camera-')).to.deep.equal([wrong]);
    expect(of('Pod bare')).to.deep.equal(['keep: bare pod: it has no owner that could be restarted']);
    expect(of('Node ')).to.deep.equal(Array(2).fill('its taint and labels would be removed'));
    expect(dry.stderr).to.match(
      /pods with tolerations or affinity +2 +restart their Deployments and StatefulSets \(1\)/,
    );
    expect(dry.stderr).to.match(/pods with tolerations or affinity +2 +keep/);

    for (let again = 0; again < 2; again++) {
      const { code, stdout } = await asAdmin('--yes', '--pods', 'restart');
      expect(code, stdout).to.equal(0);
      expect(stdout).to.match(/pods with tolerations or affinity, kept +0 +2/);
      expect(stdout).to.match(
        /Kept: what archaware added to them is harmless\.[\s\S]*Pod +default +bare[\s\S]*Pod +default +camera-/,
      );
    }
    expect(await cameras()).to.deep.equal(before);
  });

  it('refuses an invalid value of a flag', async () => {
    for (const [flag, value] of [
      ['--pods', 'burn'],
      ['--pods', 'evict'],
    ] as const) {
      const { code, stderr } = await product.command(['clean', '--yes', flag, value]);
      expect(code).to.equal(3);
      expect(stderr).to.match(new RegExp(`^archaware-controller: ${flag}: got "${value}", expected .*\n$`));
    }
  });

  /** Run by an administrator, who may list and scale everywhere. */
  const asAdmin = (...args: string[]) =>
    runInProcess(['clean', '--kubeconfig', product.cluster.kubeconfig, ...args], {
      clock: product.clock,
    });
  const ours = { 'app.kubernetes.io/name': 'archaware-controller' };
  /** A Deployment with archaware's label, whose pods never run. */
  const deploy = async (namespace: string, name: string, serviceAccountName = 'default') => {
    await product.cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }));
    await product.cluster.apply(
      JSON.stringify({
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name, namespace, labels: ours },
        spec: {
          replicas: 2,
          selector: { matchLabels: { app: name } },
          template: {
            metadata: { labels: { app: name } },
            spec: { serviceAccountName, schedulerName: 'none', containers: [{ name: 'c', image: 'example.com/c:1' }] },
          },
        },
      }),
    );
  };

  it('needs --yes without a terminal: it prints the steps, and changes nothing', async () => {
    await (await settle()).stop();
    product.cluster.forgetRequests();
    const { code, stdout, stderr } = await product.command(['clean'], { input: 'y\n' });
    expect([code, stdout]).to.deep.equal([3, '']);
    expect(stderr).to.match(/pods with tolerations or affinity +4 +keep/);
    expect(stderr).to.match(
      /archaware-controller: --yes: required, because there is no terminal to ask on; nothing was done\n$/,
    );
    expect(product.cluster.writes()).to.deep.equal([]);
  });

  it('refuses while its Deployment wants replicas, and the one that --installation names', async () => {
    await (await settle()).stop();
    await deploy('archaware', 'archaware-controller');
    await deploy('tools', 'arch');
    const named = await asAdmin('--yes', '--installation', 'tools/arch');
    expect([named.code, named.stdout]).to.deep.equal([1, '']);
    expect(named.stderr).to.include('Deployment tools/arch wants 2 replicas: stop it first');
    expect(named.stderr).to.include('kubectl -n tools scale deployment arch --replicas=0');
    product.cluster.forgetRequests();
    const { code, stdout, stderr } = await product.command(['clean', '--yes']);
    expect([code, stdout]).to.deep.equal([1, '']);
    expect(stderr).to.include('Deployment archaware/archaware-controller wants 2 replicas: stop it first');
    expect(product.cluster.writes()).to.deep.equal([]);
    const dry = await product.command(['clean', '--dry-run']);
    expect(dry.code).to.equal(0);
    expect(dry.stderr).to.match(
      /without --dry-run, clean refuses: Deployment archaware\/archaware-controller wants 2 replicas/,
    );
    expect(dry.stdout).to.match(/controllers that run +0 +1/);
    expect(product.cluster.writes()).to.deep.equal([]);
  });
});
