import { missingForNode } from '../../../hack/cluster/node-means.ts';
import type { RealNode } from '../../../hack/cluster/real-node.ts';
import { isInstalled } from './programs.ts';

/**
 * For `before`: skips, with the reason printed, where this machine cannot run a real node, or lacks one of the programs. In CI
 * that is a failure, unless ARCHAWARE_WITHOUT_NODE says why a run of CI does without.
 */
export function needsRealNode(context: Mocha.Context, ...programs: readonly string[]): void {
  const missing = [...missingForNode(), ...programs.filter((program) => !isInstalled(program))];
  if (missing.length === 0) return;
  const reason = `no real node on this machine, it lacks: ${missing.join('; ')}`;
  const without = process.env.ARCHAWARE_WITHOUT_NODE ?? '';
  if (process.env.CI !== undefined && without === '') throw new Error(reason);
  console.log(`      ${reason}`);
  context.skip();
}

/** The one that this machine does not have. */
export const otherArchitecture = ({ architecture }: Pick<RealNode, 'architecture'>) =>
  architecture === 'amd64' ? 'arm64' : 'amd64';
