import { expect } from 'chai';
import { at, objects, text } from '../simulator/json.ts';
import type { Finished } from '../support/controller-process.ts';
import { runInProcess } from '../support/in-process.ts';
import { ours } from '../support/objects.ts';
import { installation, productForEach } from '../support/product.ts';

const OWN_PODS = '/api/v1/namespaces/archaware/pods';

describe('status', () => {
  const product = productForEach();
  let metricsPort: number;
  beforeEach(async () => {
    metricsPort = 9090;
  });

  const metrics = () => ['--metrics.address', `127.0.0.1:${metricsPort}`];
  /** Runs `status` with all rights. */
  const status = (...args: readonly string[]): Promise<Finished> =>
    runInProcess(['status', '--kubeconfig', product.cluster.kubeconfig, ...metrics(), ...args], {
      clock: product.clock,
    });
  const asJson = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await status('-o', 'json', ...args);
    const result: unknown = JSON.parse(stdout);
    return { code, stderr, result, problems: objects(at(result, 'problems')).map(({ problem }) => text(problem)) };
  };
  /** Runs the controller in this process, and a pod of its Deployment beside it. */
  async function install(...flags: readonly string[]): Promise<void> {
    metricsPort = (await product.run(flags)).port;
    const spec = {
      containers: [{ name: 'archaware-controller', image: product.image('archaware', ['amd64', 'arm64']) }],
    };
    const tolerations = ['amd64', 'arm64'].map((value) => ({ key: 'supported-arch', value, effect: 'NoSchedule' }));
    await product.cluster.apply(installation({ ...spec, tolerations }));
    await product.eventually('the pod of the controller to run', async () => {
      const [found] = await product.list(OWN_PODS);
      return at(found, 'status', 'phase') === 'Running' && found;
    });
    await product.eventuallyTainted();
  }
  const line = ({ stdout }: Finished, label: string) =>
    stdout
      .split('\n')
      .find((each) => each.startsWith(`${label} `))
      ?.replace(/^\S+ +/, '');

  it('shows eleven lines, and nothing wrong, with exit code 0', async () => {
    await install();
    await product.cluster.createPod({ name: 'web', images: [product.image('app', ['amd64', 'arm64'])] });
    await product.eventuallyTolerates('default', 'web', ours('amd64', 'arm64'));
    const finished = await product.eventually('the leader to have counted its pods', async () => {
      const found = await status();
      return line(found, 'pods')?.startsWith('2 placed') === true && found;
    });
    expect([finished.code, finished.stdout.trim().split('\n').length], finished.stdout).to.deep.equal([0, 11]);
    expect(line(finished, 'version')).to.match(
      /^dev; 1 of 1 replicas ready \(Deployment archaware\/archaware-controller\)$/,
    );
    expect(line(finished, 'mode')).to.equal('taints, as the controller is configured');
    expect(line(finished, 'leader')).to.match(/, renewed \d+ s ago \(Lease archaware\/archaware-controller\)$/);
    expect(line(finished, 'nodes')).to.equal('amd64 1 (1 tainted); arm64 1 (1 tainted)');
    expect(line(finished, 'pods')).to.match(/^2 placed, 0 waiting for a lookup, 0 held, 0 open, 0 ignored$/);
    expect(line(finished, 'pending')).to.equal('none');
    expect(line(finished, 'written')).to.match(
      /^\d+ s ago by \S+ \(ConfigMap archaware\/archaware-controller-status\)$/,
    );
    expect(line(finished, 'webhook')).to.equal('off');
    expect(line(finished, 'problems')).to.equal('none');
    expect(product.cluster.writes('admin').filter(({ path }) => path.includes('dryRun'))).to.deep.equal([]);
  });

  it('has the documented shape', async () => {
    await install();
    const { code, stderr, result } = await asJson();
    expect([code, stderr]).to.deep.equal([0, stderr.split('\n')[0] === '' ? '' : stderr]);
    const keys = ['version', 'mode', 'leader', 'written', 'nodes', 'pods', 'tooLarge', 'waiting', 'pools', 'webhook'];
    expect(Object.keys(Object(result))).to.deep.equal([...keys, 'problems']);
    expect(at(result, 'leader')).to.deep.include({ lease: 'archaware/archaware-controller', leads: true });
    expect(at(result, 'mode')).to.deep.equal({ placement: 'taints', configuration: 'cluster' });
  });

  it('shows the oldest pods that wait, with the reason of their Event', async () => {
    await install();
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f'])
      await product.cluster.createPod({ name, images: [`${product.registry.host}/nothing:1`] });
    await product.eventuallyEvent('default', 'ImageUnresolvable', /nothing:1/);
    const { result } = await product.eventually('six pods to wait', async () => {
      const found = await asJson();
      return at(found.result, 'waiting', 'count') === 6 && found;
    });
    const oldest = objects(at(result, 'waiting', 'oldest'));
    expect(oldest.map(({ name }) => name)).to.deep.equal(['a', 'b', 'c', 'd', 'e']);
    expect(text(oldest[0]?.reason)).to.match(/^ImageUnresolvable: image .*nothing:1 could not be resolved/);
  });

  it('says to give the configuration where the controller runs outside of the cluster, and judges no node without it', async () => {
    await product.run(['--placement.mode', 'observe']);
    await product.eventually('a leader', async () => line(await status(), 'leader')?.includes('renewed'));
    const finished = await status();
    expect(finished.code, finished.stdout).to.equal(0);
    expect(line(finished, 'mode')).to.match(
      /because the controller runs outside of the cluster; give its configuration/,
    );
    expect(line(finished, 'problems')).to.match(/^none found; \d lines could not be read$/);
    expect(at((await asJson()).result, 'webhook', 'state')).to.equal('unknown');
    const given = await runInProcess(['status', '--kubeconfig', product.cluster.kubeconfig, '--config', '-'], {
      input: 'placement: {mode: observe}',
      clock: product.clock,
    });
    expect(line(given, 'mode')).to.equal('observe, by the file of --config');
  });
});
