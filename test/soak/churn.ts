/** A cluster in which something changes all the time, and in which as much is there at the end as at the beginning. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Dice } from '../faults/support/dice.ts';
import { PLACED } from '../faults/support/load.ts';
import { KIND_LABEL, KINDS, type Kind } from '../faults/support/rules.ts';
import type { EmbeddedCluster } from '../simulator/embedded-cluster.ts';
import { at, text } from '../simulator/json.ts';
import type { TestRegistry } from '../simulator/registry/registry.ts';
import { daemonSet, deployment, type KubernetesObject, pod } from '../support/workloads.ts';
import { pathOf } from '../support/world.ts';

export const LOAD = {
  podsPerSecond: 2,
  /** Each pod is deleted after a time between these. Seconds. */
  podLives: [20, 60],
  nodeEverySeconds: 20,
  nodeLivesSeconds: 60,
  namespaceEverySeconds: 60,
  watchesEndEverySeconds: 90,
  images: 40,
} as const;

const KIND_OF_POD: readonly Kind[] = ['both', 'both', ...PLACED, 'divided', 'missing'];
const NAMESPACE = 'soak';

/**
 * Lets things change until the signal aborts; resolves when the pods of the churn are gone. Throws what went wrong.
 */
export async function churn(cluster: EmbeddedCluster, registry: TestRegistry, dice: Dice, signal: AbortSignal) {
  const failures: unknown[] = [];
  const underWay = new Set<Promise<void>>();
  const counts = { pods: 0, nodes: 0, namespaces: 0 };
  const wait = (seconds: number) => delay(seconds * 1000, undefined, { signal }).catch(() => undefined);

  /** Runs in the background; the end waits for it. */
  function begin(work: Promise<void>): void {
    const done = work.catch((error: unknown) => void failures.push(error)).finally(() => underWay.delete(done));
    underWay.add(done);
  }

  async function send(method: 'POST' | 'DELETE' | 'PATCH', path: string, body?: unknown): Promise<void> {
    const { status } = await cluster.request(method, path, body);
    if (status >= 300 && status !== 404) throw new Error(`${method} ${path}: ${status}`);
  }

  /** Some of the images that are named are not there, and the registry fails for others. */
  function images(kind: Kind): string[] {
    const number = dice.whole(1, LOAD.images);
    return KINDS[kind].images.map((platforms, index) => {
      const repository =
        platforms === undefined ? `${dice.pick(['absent', 'failing'])}/${number}` : `${kind}-${index}/${number}`;
      if (platforms !== undefined) registry.put(repository, '1', platforms, { note: repository });
      return `${registry.host}/${repository}:1`;
    });
  }

  function options(kind: Kind) {
    return { images: images(kind), labels: { [KIND_LABEL]: kind } };
  }

  /** A pod as a controller makes it: many are alike, and the API server chooses the name. */
  async function onePod(namespace: string): Promise<void> {
    counts.pods += 1;
    const { metadata, ...rest }: KubernetesObject = pod(namespace, 'web', options(dice.pick(KIND_OF_POD)));
    const { name: _name, ...more } = metadata;
    const made = { ...rest, metadata: { ...more, generateName: 'web-' } };
    const { status, body } = await cluster.request('POST', pathOf('Pod', namespace), made);
    if (status >= 300) throw new Error(`a pod was not created: ${status}`);
    await wait(dice.number(...LOAD.podLives));
    await send('DELETE', pathOf('Pod', namespace, text(at(body, 'metadata', 'name'))));
  }

  async function oneNode(): Promise<void> {
    const name = `node-${++counts.nodes}`;
    await cluster.createNode({ name, architecture: dice.pick(['amd64', 'arm64', 's390x']) });
    await wait(LOAD.nodeLivesSeconds);
    await send('DELETE', pathOf('Node', '', name));
  }

  async function oneNamespace(): Promise<void> {
    const name = `soak-${++counts.namespaces}`;
    await cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }));
    await send('POST', pathOf('Deployment', name), deployment(name, 'web', { ...options('both'), replicas: 5 }));
    await send('POST', pathOf('DaemonSet', name), daemonSet(name, 'agent', options('both')));
    await wait(LOAD.namespaceEverySeconds);
    await send('DELETE', pathOf('Namespace', '', name));
  }

  async function every(seconds: number, act: () => void): Promise<void> {
    while (!signal.aborted) {
      act();
      await wait(seconds);
    }
  }

  registry.inject({ kind: 'status', status: 500 }, { path: /\/failing\// });
  await cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }));
  await Promise.all([
    every(1 / LOAD.podsPerSecond, () => begin(onePod(NAMESPACE))),
    every(LOAD.nodeEverySeconds, () => begin(oneNode())),
    every(LOAD.namespaceEverySeconds, () => begin(oneNamespace())),
    every(LOAD.watchesEndEverySeconds, () => {
      cluster.faults.closeWatches();
      // What this process remembers would slow it down after an hour.
      cluster.forgetRequests();
      registry.clearRequests();
    }),
  ]);
  await Promise.all(underWay);
  if (failures.length > 0) throw failures[0];
  return counts;
}
