import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { startController } from '../../test/support/controller-process.ts';
import type { Cluster } from '../cluster/cluster.ts';

/** A running program that adds tolerations to pods. */
type Subject = {
  /** Milliseconds from its start until it was ready. */
  readonly readyMs: number;
  readonly pid: number;
  stop(): Promise<void>;
};

/** Starts the built controller. */
export async function startOurs(cluster: Cluster, registry: string, publishes = false): Promise<Subject> {
  const started = performance.now();
  const controller = await startController([
    '--kubeconfig',
    cluster.kubeconfig,
    '--registries.insecure',
    registry,
    '--leaderElection.namespace',
    ...(publishes ? ['archaware', '--placement.publish'] : ['default']),
  ]);
  return {
    readyMs: performance.now() - started,
    pid: controller.pid,
    stop: async () => void (await controller.stop()),
  };
}

/** Starts the bare loop: it adds a toleration to pods, or releases gated ones. */
export function startBare(cluster: Cluster, what: 'tolerate' | 'release' = 'tolerate'): Promise<Subject> {
  return startScript('./bare-loop.ts', [cluster.server, cluster.adminToken, cluster.caFile, what]);
}

/** Starts the bare webhook, on a port of the loopback address, with the certificate in a directory. */
export function startBareAdmission(port: number, directory: string): Promise<Subject> {
  return startScript('./bare-admission.ts', [String(port), directory]);
}

async function startScript(file: string, args: readonly string[]): Promise<Subject> {
  const script = fileURLToPath(new URL(file, import.meta.url));
  const started = performance.now();
  const child = spawn(process.execPath, ['--import', 'tsx', script, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const killed = () => child.kill('SIGKILL');
  process.once('exit', killed);
  await once(child.stdout, 'data');
  return {
    readyMs: performance.now() - started,
    pid: child.pid ?? 0,
    async stop() {
      child.kill('SIGKILL');
      await once(child, 'close');
      process.off('exit', killed);
    },
  };
}

/** Whose turn it is. */
export type Who = 'ours' | 'bare';

/** The order of a round: both alternate, so that neither always has the busier moment of the machine. */
export function turns(round: number): readonly Who[] {
  return round % 2 === 0 ? ['bare', 'ours'] : ['ours', 'bare'];
}

/** Starts the controller or the bare loop. */
export function startSubject(who: Who, cluster: Cluster, registry: string): Promise<Subject> {
  return who === 'ours' ? startOurs(cluster, registry) : startBare(cluster);
}
