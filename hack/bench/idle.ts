import { setTimeout as delay } from 'node:timers/promises';
import { startController } from '../../test/support/controller-process.ts';
import { manifestWithoutDeployment } from '../../test/support/manifest.ts';
import type { World } from './images.ts';
import { cpuOf, residentOf } from './process.ts';
import { judge, type Measured, row } from './result.ts';

/** The namespace of the controller's account; the cluster must audit it. */
export const NAMESPACE = 'archaware';
const SHARE_PERCENT = 0.5;
/** After its start the controller writes what it finds, and its Lease. */
const QUIET_MS = 10_000;

/** Runs the controller with the account and the rights of the manifest while nothing happens. */
export async function measureIdle({ cluster, registry }: World, seconds: number): Promise<Measured> {
  process.stderr.write(`idle, ${seconds} s\n`);
  await cluster.apply(await manifestWithoutDeployment());
  const kubeconfig = await cluster.serviceAccountKubeconfig(NAMESPACE, 'archaware-controller');
  const flags = ['--kubeconfig', kubeconfig, '--registries.insecure', registry.host];
  const controller = await startController([...flags, '--leaderElection.namespace', NAMESPACE]);
  try {
    await cluster.waitFor('a leader', async () => (await controller.metric('archaware_leader')) === 1);
    await delay(QUIET_MS);
    const before = (await cluster.auditedRequests()).length;
    const [cpu, started] = [cpuOf(controller.pid), performance.now()];
    await delay(seconds * 1_000);
    const share = ((cpuOf(controller.pid) - cpu) / (performance.now() - started)) * 100;
    const requests = (await cluster.auditedRequests()).slice(before);
    const others = requests.filter(({ verb, path }) => verb !== 'watch' && !path.includes('/leases/'));
    const kinds = new Map<string, number>();
    for (const { verb, path } of requests) {
      const kind = `${verb} ${path.split('?')[0]}`;
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    }
    const memory = residentOf(controller.pid);
    const what = `idle for ${seconds} s`;
    return {
      rows: [
        row(`${what}: CPU`, `${share.toFixed(2)} %`, judge(share, { under: SHARE_PERCENT }, ' %')),
        row(`${what}: requests but watches and Lease`, String(others.length), judge(others.length, { atMost: 0 })),
        row(`${what}: memory (VmRSS)`, `${memory.toFixed(0)} MiB`),
      ],
      figures: { seconds, share, memory, requests: Object.fromEntries(kinds) },
    };
  } finally {
    await controller.stop();
  }
}
