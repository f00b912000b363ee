import { join } from 'node:path';
import { attempt } from '../programs.ts';
import { binaries } from './spawn.ts';

export interface KubectlResult {
  readonly stdout: string;
  readonly stderr: string;
  /** The exit code; -1 after a signal. */
  readonly code: number;
}

interface KubectlOptions {
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
  const { code, ...said } = await attempt(join(binaries(), 'kubectl'), [...common, ...args], { input });
  return { ...said, code: code ?? -1 };
}
