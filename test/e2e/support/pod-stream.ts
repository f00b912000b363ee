import { setTimeout as delay } from 'node:timers/promises';
import { expectSuccess } from '../../../hack/cluster/client.ts';
import { at, listAt } from '../../../hack/cluster/json.ts';
import { ARCHITECTURE_GATE, MANAGED_ANNOTATION } from '../../../src/names.ts';
import { pod } from '../../support/workloads.ts';
import { pathOf } from '../../support/world.ts';
import type { LiveWorld } from './world.ts';

/** Acts so many times a second until it is stopped, which waits for all and throws the first failure; returns how often it acted. */
export function actPaced(perSecond: number, act: (count: number) => Promise<void>): { stop(): Promise<number> } {
  const end = new AbortController();
  const failures: unknown[] = [];
  const underWay: Promise<void>[] = [];
  const acting = (async () => {
    const begun = performance.now();
    while (!end.signal.aborted) {
      const count = underWay.length;
      underWay.push(act(count).catch((error: unknown) => void failures.push(error)));
      await delay(Math.max(0, begun + ((count + 1) * 1000) / perSecond - performance.now()));
    }
  })();
  return {
    async stop() {
      end.abort();
      await acting;
      await Promise.all(underWay);
      if (failures.length > 0) throw failures[0];
      return underWay.length;
    },
  };
}

/** Whether the webhook has answered for a pod: it is placed, or gated. */
export function isReviewed(pod: unknown): boolean {
  if (at(pod, 'metadata', 'annotations', MANAGED_ANNOTATION) !== undefined) return true;
  return listAt(pod, 'spec', 'schedulingGates').some((gate) => at(gate, 'name') === ARCHITECTURE_GATE);
}

/**
 * Creates so many pods a second, whatever the API server answers, and deletes each at once. The end says how many were created, and the
 * names of those that admission has not seen.
 */
export function streamPods(world: LiveWorld, namespace: string, image: string, perSecond: number) {
  const unreviewed: string[] = [];
  const stream = actPaced(perSecond, async (count) => {
    const name = `pod-${count}`;
    const answer = await world.cluster.request(
      'POST',
      pathOf('Pod', namespace),
      pod(namespace, name, { images: [image] }),
    );
    if (!isReviewed(expectSuccess(`pod ${name}`, answer))) unreviewed.push(name);
    await world.remove('Pod', namespace, name);
  });
  return { stop: async () => ({ created: await stream.stop(), unreviewed }) };
}
