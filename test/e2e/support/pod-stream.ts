import { setTimeout as delay } from 'node:timers/promises';
import { expectSuccess } from '../../../hack/cluster/client.ts';
import { at, listAt } from '../../../hack/cluster/json.ts';
import { ARCHITECTURE_GATE, MANAGED_ANNOTATION } from '../../../src/names.ts';
import { pod } from '../../support/workloads.ts';
import { pathOf } from '../../support/world.ts';
import type { LiveWorld } from './world.ts';

export type Stream = {
  /** Ends it; how many pods were created, and the names of those that admission has not seen. */
  stop(): Promise<{ readonly created: number; readonly unreviewed: readonly string[] }>;
};

/** Whether the webhook has answered for a pod: it is placed, or gated. */
export function isReviewed(pod: unknown): boolean {
  if (at(pod, 'metadata', 'annotations', MANAGED_ANNOTATION) !== undefined) return true;
  return listAt(pod, 'spec', 'schedulingGates').some((gate) => at(gate, 'name') === ARCHITECTURE_GATE);
}

/** Creates so many pods a second, whatever the API server answers, and deletes each at once. */
export function streamPods(world: LiveWorld, namespace: string, image: string, perSecond: number): Stream {
  const end = new AbortController();
  const unreviewed: string[] = [];
  const failures: unknown[] = [];
  const underWay: Promise<void>[] = [];

  async function one(name: string): Promise<void> {
    const answer = await world.cluster.request(
      'POST',
      pathOf('Pod', namespace),
      pod(namespace, name, { images: [image] }),
    );
    const created = expectSuccess(`pod ${name}`, answer);
    if (!isReviewed(created)) unreviewed.push(name);
    await world.remove('Pod', namespace, name);
  }

  const streaming = (async () => {
    const begun = performance.now();
    while (!end.signal.aborted) {
      const count = underWay.length;
      underWay.push(one(`pod-${count}`).catch((error: unknown) => void failures.push(error)));
      await delay(Math.max(0, begun + ((count + 1) * 1000) / perSecond - performance.now()));
    }
  })();

  return {
    async stop() {
      end.abort();
      await streaming;
      await Promise.all(underWay);
      if (failures.length > 0) throw failures[0];
      return { created: underWay.length, unreviewed };
    },
  };
}
