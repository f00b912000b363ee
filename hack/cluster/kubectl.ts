import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { binaries } from './spawn.ts';

export interface KubectlResult {
  readonly stdout: string;
  readonly stderr: string;
  /** The exit code; -1 after a signal. */
  readonly code: number;
}

export interface KubectlOptions {
  readonly kubeconfig: string;
  /** Of the cluster's own: the usual one is keyed by address, and another cluster may have had our port. */
  readonly cacheDirectory: string;
  /** What standard input brings. */
  readonly input?: string;
}

/** Runs kubectl to its end. A failure is a result, too. */
export async function runKubectl(args: readonly string[], options: KubectlOptions): Promise<KubectlResult> {
  const { kubeconfig, cacheDirectory, input = '' } = options;
  const common = [`--kubeconfig=${kubeconfig}`, `--cache-dir=${cacheDirectory}`];
  const child = spawn(join(binaries(), 'kubectl'), [...common, ...args]);
  const closed = once(child, 'close');
  // kubectl may end before it has read everything, and its exit code says more than EPIPE.
  child.stdin.on('error', () => undefined).end(input);
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { stdout, stderr, code: child.exitCode ?? -1 };
}
