import { at } from '../../../hack/cluster/json.ts';
import { missingForNode } from '../../../hack/cluster/node-means.ts';
import { isInstalled } from './programs.ts';
import type { LiveWorld } from './world.ts';

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

/** Waits until the kubelet has pulled the images of all these pods, or has been refused; by the name of the pod. */
export async function eventuallyPulled(world: LiveWorld, namespace: string, count: number, refused: RegExp) {
  const found = new Map<string, { isPulled: boolean; message: string }>();
  await world.cluster.waitFor('the kubelet to pull, or to say why not', async () => {
    const waiting: string[] = [];
    for (const one of await world.list('Pod', namespace)) {
      const status = at(one, 'status', 'containerStatuses', 0);
      const isPulled = String(at(status, 'imageID') ?? '') !== '';
      const message = String(at(status, 'state', 'waiting', 'message') ?? '');
      const name = String(at(one, 'metadata', 'name'));
      if (isPulled || refused.test(message)) found.set(name, { isPulled, message });
      else if (!found.has(name)) waiting.push(`${name}: ${message || 'no message'}`);
    }
    if (waiting.length > 0) throw new Error(waiting.join('\n'));
    return found.size === count;
  });
  return found;
}
