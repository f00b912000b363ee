import { setTimeout as delay } from 'node:timers/promises';
import { expectSuccess } from '../../../hack/cluster/client.ts';
import { nameOf, scheduledOn } from '../../support/objects.ts';
import { pod } from '../../support/workloads.ts';
import { pathOf } from '../../support/world.ts';
import { actPaced, isReviewed } from './pod-stream.ts';
import type { LiveWorld } from './world.ts';

/** What a pod of the stream runs, and on which nodes that may be. */
export type PodKind = { readonly image: string; readonly nodes: readonly string[] };

export type Judged = {
  readonly created: number;
  /** Names of those that admission did not answer for. */
  readonly unreviewed: readonly string[];
  /** Those that are bound to a node that does not run their image: `pod on node`. */
  readonly wrong: readonly string[];
  /** Those that no node had at the end. */
  readonly pending: readonly string[];
};

const LOOK_MS = 250;
const PATIENCE_MS = 60_000;

/** Creates so many pods a second, of each kind in turn. Each stays until it is bound, is judged by its node, and deleted. */
export function streamJudged(world: LiveWorld, namespace: string, kinds: readonly PodKind[], perSecond: number) {
  const over = new AbortController();
  const failures: unknown[] = [];
  const unreviewed: string[] = [];
  const wrong = new Map<string, string>();
  const open = new Map<string, PodKind>();

  async function create(count: number): Promise<void> {
    const kind = kinds[count % kinds.length];
    if (kind === undefined) return;
    const name = `judged-${count}`;
    open.set(name, kind);
    const wanted = pod(namespace, name, { images: [kind.image], labels: { app: 'judged' } });
    const created = expectSuccess(`pod ${name}`, await world.cluster.request('POST', pathOf('Pod', namespace), wanted));
    if (!isReviewed(created)) unreviewed.push(name);
  }

  async function judging(): Promise<void> {
    while (!over.signal.aborted) {
      for (const found of await world.pods(namespace, 'judged')) {
        const [name, node] = [nameOf(found), scheduledOn(found)];
        const kind = open.get(name);
        if (node === undefined || kind === undefined) continue;
        if (!kind.nodes.includes(node)) wrong.set(name, node);
        open.delete(name);
        await world.remove('Pod', namespace, name);
      }
      await delay(LOOK_MS);
    }
  }

  const stream = actPaced(perSecond, create);
  const judged = judging().catch((error: unknown) => void failures.push(error));
  return {
    /** Ends it, and waits until every pod is bound, or the time is over. */
    async stop(): Promise<Judged> {
      const created = await stream.stop();
      const deadline = performance.now() + PATIENCE_MS;
      while (open.size > 0 && failures.length === 0 && performance.now() < deadline) await delay(LOOK_MS);
      over.abort();
      await judged;
      if (failures.length > 0) throw failures[0];
      const pending = [...open.keys()];
      await Promise.all(pending.map((name) => world.remove('Pod', namespace, name)));
      return { created, unreviewed, wrong: [...wrong].map(([name, node]) => `${name} on ${node}`), pending };
    },
  };
}
