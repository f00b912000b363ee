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
  /** A cache for this cluster only: the usual one is keyed by address, and another cluster may have had this port. */
  readonly cacheDirectory: string;
  /** The text for standard input. */
  readonly input?: string;
}

/** Runs kubectl to its end. A failure is a normal result. */
export async function runKubectl(args: readonly string[], options: KubectlOptions): Promise<KubectlResult> {
  const { kubeconfig, cacheDirectory, input = '' } = options;
  const common = [`--kubeconfig=${kubeconfig}`, `--cache-dir=${cacheDirectory}`];
  const child = spawn(join(binaries(), 'kubectl'), [...common, ...args]);
  const closed = once(child, 'close');
  // kubectl may end before it has read all of its input; its exit code is more useful than EPIPE.
  child.stdin.on('error', () => undefined).end(input);
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { stdout, stderr, code: child.exitCode ?? -1 };
}
