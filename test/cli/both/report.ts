import { expect } from 'chai';
import { at, listAt } from '../../../hack/cluster/json.ts';
import { daemonSet, deployment, job, type KubernetesObject, pod, statefulSet } from '../../support/workloads.ts';
import type { World } from '../../support/world.ts';
import type { Start } from './context.ts';

/** A CronJob that does not run while the test does. */
function nightly(namespace: string, image: string): KubernetesObject {
  const containers = [{ name: 'main', image }];
  const jobTemplate = { spec: { template: { spec: { restartPolicy: 'Never', containers } } } };
  const metadata = { name: 'nightly', namespace };
  return { apiVersion: 'batch/v1', kind: 'CronJob', metadata, spec: { schedule: '0 0 1 1 *', jobTemplate } };
}

export function describeReport(start: Start): void {
  describe('report', () => {
    let world: World;

    before(async () => {
      world = await start({
        nodes: [
          { name: 'amd64-1', architecture: 'amd64', labels: { disk: 'ssd' } },
          { name: 'arm64-1', architecture: 'arm64' },
        ],
      });
    });
    after(() => world?.stop());

    const report = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await world.command(['report', '--to', 'arm64', '-o', 'json', ...args]);
      expect(code, stderr).to.equal(0);
      const result: unknown = JSON.parse(stdout);
      const rows = listAt(result, 'workloads').map((row) =>
        [at(row, 'kind'), at(row, 'name'), at(row, 'replicas'), at(row, 'verdicts', 'arm64', 'state')].join(' '),
      );
      return { rows, result, stderr };
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
      const { rows } = await report('--kubeconfig', world.cluster.kubeconfig, '-n', namespace);
      expect(rows).to.deep.equal([
        'CronJob nightly 1 blocked',
        'DaemonSet agent 2 missing',
        'Deployment old 2 blocked',
        'Deployment web 3 ready',
        'Job once 1 pinned',
        'Pod bare 1 ready',
        'StatefulSet db 1 pinned',
      ]);
    });

    it('goes on with what the account of the controller may read, and names the rights that are missing', async () => {
      const { rows, result, stderr } = await report();
      expect(rows).to.include('DaemonSet agent 2 missing');
      expect(stderr).to.contain(
        'the right to list statefulsets.apps in the cluster is missing: StatefulSets are left out',
      );
      const unread = listAt(result, 'summary', 'unread').map((each) => at(each, 'text'));
      expect(unread).to.include('the right to list cronjobs.batch in the cluster is missing: CronJobs are left out');
    });
  });
}
