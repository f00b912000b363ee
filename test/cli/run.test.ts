import { expect } from 'chai';
import { at, text } from '../simulator/json.ts';
import { runBundle } from '../support/controller-process.ts';
import { folderForEach } from '../support/folder.ts';
import { ours } from '../support/objects.ts';
import { needsPosix } from '../support/platforms.ts';
import { productForEach, workload } from '../support/product.ts';

describe('run', () => {
  const product = productForEach();

  /** Two pods, a DaemonSet and the nodes in their final state. */
  async function settle(): Promise<string> {
    const image = product.image('app', ['amd64', 'arm64']);
    await product.cluster.createPod({ name: 'a', images: [image] });
    await product.cluster.createPod({ name: 'b', images: [image] });
    await product.cluster.apply(workload('DaemonSet', 'agent', [image]));
    return image;
  }
  /** Creates a pod and waits until it is placed: everything that was caused before has begun then. */
  const placedLast = async (name: string) => {
    await product.cluster.createPod({ name, images: [product.image(name, ['arm64'])] });
    await product.eventuallyTolerates('default', name, ours('arm64'));
  };

  const holder = async () => {
    const lease = await product.get('/apis/coordination.k8s.io/v1/namespaces/archaware/leases/archaware-controller');
    return at(lease, 'spec', 'holderIdentity') ?? '';
  };

  /** Creates a pod, and waits until its patch is under way, which gets no answer. */
  const neverAnswered = async (name: string) => {
    const underWay = new Promise<void>((resolve) => {
      product.cluster.faults.conflictNextPatch(new RegExp(`pods/${name}`), () => {
        resolve();
        return new Promise(() => undefined);
      });
    });
    await product.cluster.createPod({ name, images: [product.image('app', ['arm64'])] });
    await underWay;
  };

  it('goes on with other pods while one write hangs', async () => {
    await product.run();
    product.cluster.faults.inject({ method: 'PATCH', path: /pods\/stuck/, hang: true });
    await product.cluster.createPod({ name: 'stuck', images: [product.image('app', ['arm64'])] });
    await product.cluster.createPod({ name: 'free', images: [product.image('app', ['arm64'])] });
    await product.eventuallyTolerates('default', 'free', ours('arm64'));
  });

  it('aborts a write without an answer, releases the lease and ends long before the grace period is over', async () => {
    const controller = await product.run();
    await product.eventuallyTainted();
    await neverAnswered('stuck');
    const began = product.clock.monotonic();
    expect(await controller.stop()).to.equal(0);
    expect(product.clock.monotonic() - began).to.be.below(30_000);
    expect(await holder()).to.equal('');
  });

  it('is not ready from SIGTERM on', async function () {
    needsPosix(this, 'signal');
    const controller = await product.run();
    await product.eventuallyTainted();
    await neverAnswered('stuck');
    const stopped = controller.stop();
    await product.eventually('it to say so', async () => {
      const { status, text: said } = await controller.get('/readyz');
      return status === 503 && said === 'not ready: ending\n';
    });
    expect(await controller.get('/healthz')).to.have.property('status', 200);
    expect(await stopped).to.equal(0);
  });

  it('reports gated pods if its loops release none', async () => {
    const gated = { schedulingGates: [{ name: 'archaware.dev/architecture' }] };
    await product.cluster.createPod({ name: 'gated', images: [product.image('app', ['arm64'])], spec: gated });
    const controller = await product.run(['--loops', 'nodes']);
    await product.eventually('the metric', async () => (await controller.metric('archaware_gated_pods')) === 1);
    const said =
      /"level":"warn".*"count":1,"pods":\["default\/gated"\].*the loop for pods does not run: nothing releases them/;
    await product.eventually('the log to say so', async () => controller.logs().some((line) => said.test(line)));
  });

  it('tries whether DaemonSets are protected when it begins to lead, and again with another version of the API server', async () => {
    const { faults } = product.cluster;
    const asked = (path: RegExp) => product.cluster.requests().filter((each) => path.test(each.path)).length;
    const tries = () => asked(/fieldManager=archaware-probe/);
    const metadata = { annotations: { 'archaware.dev/tolerations': '[]' } };
    const tolerations = ['amd64', 'arm64'].map((value) => ({ key: 'supported-arch', operator: 'Equal', value }));
    const kept = tolerations.map((toleration) => ({ ...toleration, effect: 'NoSchedule' }));
    const body = { metadata, spec: { template: { spec: { tolerations: kept } } } };
    faults.inject({ method: 'PATCH', path: /fieldManager=archaware-probe/, status: 200, body });
    await settle();
    const controller = await product.run();
    const holds = () => controller.metric('archaware_safety_net_holds', { net: 'daemonsets' });
    await product.eventually('the first try', async () => (await holds()) === 1);
    expect(tries()).to.equal(1);
    const versions = asked(/^\/version$/);
    faults.closeWatches();
    await product.eventually('the version to be asked again', async () => asked(/^\/version$/) > versions);
    faults.inject({ path: /^\/version$/, status: 200, body: { gitVersion: 'v1.38.0' } });
    faults.closeWatches();
    await product.eventually('the second try', async () => tries() === 2);
    expect(await holds()).to.equal(1);
  });

  it('does not claim to taint nodes without the loop for them', async () => {
    const tainting = await product.run();
    await product.eventuallyTainted();
    await tainting.stop();
    const controller = await product.run(['--loops', 'pods']);
    await placedLast('last');
    await controller.stop();
    expect(controller.logs().join()).not.to.include('nodes are tainted from now on');
  });
});

describe('run, whose leader writes down what it sees', () => {
  // It is written at most twice in a minute.
  const product = productForEach({ speed: 60 });

  it('keeps its status, and a report on a namespace that asks for one, until clean removes both', async () => {
    const path = '/api/v1/namespaces/default';
    const report = async () =>
      text(at(await product.get(path), 'metadata', 'annotations', 'archaware.dev/report-result'));
    await product.cluster.request('PATCH', path, { metadata: { annotations: { 'archaware.dev/report': 'true' } } });
    const controller = await product.run();
    await product.eventuallyTainted();
    await product.cluster.createPod({ name: 'a', images: [product.image('a', ['arm64'])] });
    await product.eventually('the report', async () => (await report()).includes('"runsOn":{"arm64":1}'));
    expect(JSON.parse(await report())).to.deep.include({ policies: ['default'], pods: { placed: 1 } });
    const status = '/api/v1/namespaces/archaware/configmaps/archaware-controller-status';
    expect(await product.get(status)).to.have.property('data');
    await controller.stop();
    const { code, stdout } = await product.asAdmin(['clean', '--yes']);
    expect([code, await report()]).to.deep.equal([0, '']);
    expect(JSON.stringify(await product.list('/api/v1/namespaces/archaware/configmaps'))).not.to.include('-status"');
    expect(stdout).to.match(/annotations of namespaces +1 +0/);
  });
});

describe('run, if it cannot start', () => {
  const product = productForEach({ nodes: [], speed: 50 });
  const folder = folderForEach();

  const line = async (args: readonly string[]) => {
    const { code, stdout, stderr } = await product.command(['run', '--metrics.address', '', ...args]);
    expect(stdout).to.equal('');
    const lines = stderr.split('\n').filter((text) => text !== '' && !text.startsWith('{'));
    expect(lines, stderr).to.have.lengthOf(1);
    return { code, said: lines[0] ?? '' };
  };

  it('reports in one line that the namespace of its Lease does not exist', async () => {
    const { code, said } = await line(['--leaderElection.namespace', 'nowhere']);
    expect(code).to.equal(1);
    expect(said).to.match(/namespace "nowhere" of the Lease does not exist: apply .*--leaderElection\.namespace/);
  });

  it('ends its process, although it has begun to watch its configuration file', async () => {
    await folder.write({ 'config.yaml': 'webhook:\n  enabled: true\n' });
    const taken = ['--metrics.address', '', '--webhook.address', product.registry.host];
    const { code, stderr } = await runBundle(['run', ...product.flags, '--config', folder.at('config.yaml'), ...taken]);
    expect(code).to.equal(1);
    expect(stderr).to.contain('webhook.address');
  });
});

describe('run on an old server', () => {
  const product = productForEach({ nodes: [], cluster: { gitVersion: 'v1.29.4' } });

  it('says that it needs a newer server', async () => {
    const { code, stderr } = await product.command(['run']);
    expect(code).to.equal(1);
    expect(stderr).to.contain('v1.29.4; 1.30 or later is needed');
  });
});
