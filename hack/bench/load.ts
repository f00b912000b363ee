import { StringDecoder } from 'node:string_decoder';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { expectSuccess } from '../cluster/client.ts';
import type { Cluster } from '../cluster/cluster.ts';

const NAMESPACE = 'bench';
const WRITERS = 16;
const PATIENCE_MS = 120_000;

/** The pods of one run. `perSecond` undefined: as fast as the API server accepts them. */
type Pods = {
  readonly count: number;
  readonly images: readonly string[];
  readonly perSecond?: number;
  readonly prefix: string;
  /** Pods are created with this scheduling gate. */
  readonly gate?: string;
};

/** The times of the pods of one run, in milliseconds. */
type Measured = {
  /** From the first creation that was sent to the last toleration that was seen. */
  readonly totalMs: number;
  /** For each pod, from the answer to its creation to its toleration. */
  readonly delays: readonly number[];
};

/** Makes sure that the namespace accepts pods. */
export async function prepareNamespace(cluster: Cluster): Promise<void> {
  await cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }));
  await cluster.waitFor('the default service account', async () => {
    const { status } = await cluster.request('GET', `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/default`);
    return status === 200;
  });
}

/** Creates pods, and waits until the controller has added a toleration to each. */
export async function createAndWatch(cluster: Cluster, options: Pods): Promise<Measured> {
  const tolerated = new Map<string, number>();
  const end = new AbortController();
  const watching = watchTolerations(cluster, end.signal, (name) => {
    if (!tolerated.has(name)) tolerated.set(name, performance.now());
  });
  await watching.open;
  const started = performance.now();
  const created = await createPods(cluster, options, started);
  const deadline = performance.now() + PATIENCE_MS;
  while (tolerated.size < options.count && performance.now() < deadline) await delay(5);
  end.abort();
  await watching.closed;
  if (tolerated.size < options.count)
    throw new Error(`only ${tolerated.size} of ${options.count} pods have a toleration`);
  const delays = [...created].map(([name, at]) => Math.max(0, (tolerated.get(name) ?? 0) - at));
  return { totalMs: Math.max(...tolerated.values()) - started, delays };
}

/** Creates pods for a scheduler that does not exist. Returns when each was created. */
async function createPods(
  cluster: Cluster,
  { count, images, prefix, gate, perSecond }: Pods,
  started: number,
): Promise<ReadonlyMap<string, number>> {
  const created = new Map<string, number>();
  let next = 0;
  const work = async () => {
    for (let index = next++; index < count; index = next++) {
      if (perSecond !== undefined) await delay(started + (index * 1000) / perSecond - performance.now());
      const name = `${prefix}-${index}`;
      const image = images[index % images.length] ?? '';
      const path = `/api/v1/namespaces/${NAMESPACE}/pods`;
      expectSuccess(name, await cluster.request('POST', path, podOf(name, image, gate)));
      created.set(name, performance.now());
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, work));
  return created;
}

/** Deletes the pods of a run and waits until they are gone. */
export async function removePods(cluster: Cluster): Promise<void> {
  await cluster.request('DELETE', `/api/v1/namespaces/${NAMESPACE}/pods?gracePeriodSeconds=0`);
  await cluster.waitFor('no pods', async () => {
    const { body } = await cluster.request('GET', `/api/v1/namespaces/${NAMESPACE}/pods?limit=1`);
    return JSON.stringify(body).includes('"items":[]');
  });
}

/** A pod for a scheduler that does not exist. */
export function podOf(name: string, image: string, gate?: string) {
  const gates = gate === undefined ? {} : { schedulingGates: [{ name: gate }] };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: NAMESPACE },
    spec: { schedulerName: 'nobody', ...gates, containers: [{ name: 'main', image, imagePullPolicy: 'IfNotPresent' }] },
  };
}

/**
 * Opens a watch, which begins with an event for each pod that exists. Returns its lines, chunk by chunk and without end: the API
 * server closes a watch that is read too slowly, and then a new one is opened.
 */
async function openWatch({ server, adminToken }: Cluster, dispatcher: Agent, signal: AbortSignal) {
  const headers = { authorization: `Bearer ${adminToken}`, accept: 'application/json' };
  const url = `${server}/api/v1/namespaces/${NAMESPACE}/pods?watch=true&timeoutSeconds=600`;
  const next = () => request(url, { headers, dispatcher, signal });
  const first = await next();
  return (async function* () {
    for (let answer = first; ; answer = await next()) {
      const decoder = new StringDecoder('utf8');
      let rest = '';
      for await (const chunk of answer.body) {
        const lines = (rest + decoder.write(chunk)).split('\n');
        rest = lines.pop() ?? '';
        yield lines;
      }
    }
  })();
}

/** Calls back for each pod whose toleration is seen. */
function watchTolerations(cluster: Cluster, signal: AbortSignal, onTolerated: (name: string) => void) {
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false }, bodyTimeout: 0 });
  const open = openWatch(cluster, dispatcher, signal);
  const read = async () => {
    try {
      for await (const lines of await open) {
        for (const line of lines) {
          // Cheaper than parsing: this process must not be the bottleneck.
          if (!line.includes('"supported-arch"')) continue;
          onTolerated(/"metadata":\{"name":"([^"]+)"/.exec(line)?.[1] ?? '');
        }
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      await dispatcher.destroy();
    }
  };
  return { open, closed: read() };
}

/** Returns the value below which this part of the values lies. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}
