import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Cluster } from '../../../hack/cluster/cluster.ts';
import { at, textAt } from '../../../hack/cluster/json.ts';
import { startController } from '../../support/controller-process.ts';
import type { RunningController } from '../../support/running.ts';

export type StandIn = {
  /** Ends the controller and stops looking. Throws what went wrong meanwhile. */
  stop(): Promise<void>;
};

const NAMESPACE = '/api/v1/namespaces/archaware';
const DEPLOYMENT = '/apis/apps/v1/namespaces/archaware/deployments/archaware-controller';
const POLL_MS = 100;

/**
 * Does what the kubelets would: while the Deployment of our manifest wants replicas, one controller runs, with the rights of its
 * service account and the configuration of its ConfigMap. (kwok shows its pods as running, but runs nothing.)
 */
export function standInForDeployment(cluster: Cluster, environment: Readonly<Record<string, string>>): StandIn {
  const over = new AbortController();
  let running: RunningController | undefined;
  const file = join(cluster.directory, 'stand-in', 'config.yaml');

  async function wantsReplicas(): Promise<boolean> {
    const { status, body } = await cluster.request('GET', DEPLOYMENT);
    return status === 200 && Number(at(body, 'spec', 'replicas')) > 0;
  }

  async function start(): Promise<RunningController> {
    const { body } = await cluster.request('GET', `${NAMESPACE}/configmaps/archaware-controller`);
    await mkdir(join(cluster.directory, 'stand-in'), { recursive: true });
    await writeFile(file, textAt(body, 'data', 'config.yaml'));
    const kubeconfig = await cluster.serviceAccountKubeconfig('archaware', 'archaware-controller');
    return startController(['--kubeconfig', kubeconfig, '--config', file], { environment });
  }

  async function follow(): Promise<void> {
    while (!over.signal.aborted) {
      const wanted = await wantsReplicas();
      if (wanted) running ??= await start();
      else if (running !== undefined) {
        await running.stop();
        running = undefined;
      }
      await delay(POLL_MS);
    }
  }

  const following = follow();
  // `stop` reports it; a block that needed it fails before.
  following.catch(() => undefined);
  return {
    async stop() {
      over.abort();
      await following.finally(() => running?.stop('SIGKILL'));
    },
  };
}
