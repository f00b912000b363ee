import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { runBundle } from '../support/controller-process.ts';
import { daemonSet, deployment, job, type KubernetesObject, pod, statefulSet } from '../support/workloads.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

/** A CronJob that does not run while the test does. */
function nightly(namespace: string, image: string): KubernetesObject {
  const containers = [{ name: 'main', image }];
  const jobTemplate = { spec: { template: { spec: { restartPolicy: 'Never', containers } } } };
  const metadata = { name: 'nightly', namespace };
  return { apiVersion: 'batch/v1', kind: 'CronJob', metadata, spec: { schedule: '0 0 1 1 *', jobTemplate } };
}

describe('report, on the real API server', () => {
  let world: LiveWorld;

  before(async () => {
    world = await startWorld({
      nodes: [
        { name: 'amd64-1', architecture: 'amd64', labels: { disk: 'ssd' } },
        { name: 'arm64-1', architecture: 'arm64' },
      ],
    });
  });
  after(() => world?.stop());

  const report = async (kubeconfig: string | undefined, ...args: readonly string[]) => {
    const insecure = ['--registries.insecure', world.registry.host];
    const words = ['report', '--to', 'arm64', '-o', 'json', ...args, ...insecure];
    const { code, stdout, stderr } =
      kubeconfig === undefined ? await world.command(words) : await runBundle([...words, '--kubeconfig', kubeconfig]);
    expect(code, stderr).to.equal(0);
    const result: unknown = JSON.parse(stdout);
    const rows = listAt(result, 'workloads').map((row) =>
      [at(row, 'kind'), at(row, 'name'), at(row, 'replicas'), at(row, 'verdicts', 'arm64', 'state')].join(' '),
    );
    return { rows, stderr, result };
  };

  it('counts workloads once, at their top owner, by what the API server says', async () => {
    const namespace = await world.namespace('report');
    const [multi, amd] = [world.image('multi'), world.image('amd64')];
    await world.create(
      deployment(namespace, 'web', { images: [multi], replicas: 3 }),
      deployment(namespace, 'old', { images: [amd], replicas: 2 }),
      statefulSet(namespace, 'db', { images: [multi], spec: { nodeSelector: { disk: 'ssd' } } }),
      daemonSet(namespace, 'agent', { images: [amd] }),
      pod(namespace, 'bare', { images: [multi] }),
      job(namespace, 'once', { images: [multi], spec: { nodeSelector: { disk: 'none' } } }),
      nightly(namespace, amd),
    );
    await world.eventually('the pods', async () => (await world.pods(namespace, 'web')).length === 3);
    await world.eventually('the daemon pods', async () => {
      const found = await world.get('DaemonSet', namespace, 'agent');
      return at(found, 'status', 'desiredNumberScheduled') === 2;
    });
    const { rows, stderr } = await report(world.cluster.kubeconfig, '-n', namespace);
    expect(rows).to.deep.equal([
      'CronJob nightly 1 blocked',
      'DaemonSet agent 2 missing',
      'Deployment old 2 blocked',
      'Deployment web 3 ready',
      'Job once 1 pinned',
      'Pod bare 1 ready',
      'StatefulSet db 1 pinned',
    ]);
    expect(stderr).to.contain('configuration: ');
  });

  it('goes on with what the account of the controller may read, and names the rights that are missing', async () => {
    const { rows, result } = await report(undefined);
    expect(rows).to.include('DaemonSet agent 2 missing');
    const unread = listAt(result, 'summary', 'unread').map((each) => at(each, 'text'));
    expect(unread).to.include('the right to list cronjobs.batch in the cluster is missing: CronJobs are left out');
  });
});
