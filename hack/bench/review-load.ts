import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import { podText } from './scale/objects.ts';

/** Where AdmissionReviews are sent. */
export type Target = { readonly port: number /** PEM. */; readonly ca: string };

/** The results of the reviews of one run. */
export type Answered = {
  /** Milliseconds for each, from sending it to the end of its answer. */
  readonly delays: readonly number[];
  readonly perSecond: number;
  readonly gated: number;
};

/** About the number that a busy API server keeps open. */
const CONNECTIONS = 16;

/** Sends reviews of these images, `perSecond` of them, whether or not the earlier ones are answered. */
export async function sendAtRate(
  target: Target,
  options: { readonly images: readonly string[]; readonly perSecond: number; readonly count: number },
): Promise<Answered> {
  const { images, perSecond, count } = options;
  return await withSender(target, async (send) => {
    const sent: Promise<void>[] = [];
    const started = performance.now();
    for (let index = 0; index < count; index += 1) {
      const early = started + (index * 1000) / perSecond - performance.now();
      if (early > 0) await delay(early);
      sent.push(send(images[index % images.length] ?? ''));
    }
    await Promise.all(sent);
  });
}

/** Sends reviews as fast as they are answered, for this many seconds. */
export async function sendAllYouCan(
  target: Target,
  { images, seconds }: { readonly images: readonly string[]; readonly seconds: number },
): Promise<Answered> {
  return await withSender(target, async (send) => {
    const end = performance.now() + seconds * 1000;
    let next = 0;
    const work = async () => {
      while (performance.now() < end) await send(images[next++ % images.length] ?? '');
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, work));
  });
}

/** Sends a review of each image until no answer adds the gate: then all images are known. */
export async function warmUp(target: Target, images: readonly string[]): Promise<void> {
  const end = performance.now() + 60_000;
  const options = { images, perSecond: 200, count: images.length };
  while ((await sendAtRate(target, options)).gated > 0) {
    if (performance.now() > end) throw new Error('images are not known after a minute');
    await delay(100);
  }
}

async function withSender(
  { port, ca }: Target,
  work: (send: (image: string) => Promise<void>) => Promise<void>,
): Promise<Answered> {
  const pool = new Pool(`https://127.0.0.1:${port}`, { connections: CONNECTIONS, connect: { ca } });
  const delays: number[] = [];
  let gated = 0;
  const send = async (image: string, isMeasured = true) => {
    const body = reviewOf(image);
    const started = performance.now();
    const answer = await pool.request({
      method: 'POST',
      path: '/mutate?timeout=2s',
      headers: { 'content-type': 'application/json' },
      body,
    });
    const text = await answer.body.text();
    if (isMeasured) delays.push(performance.now() - started);
    const patch = /"patch":"([^"]*)"/.exec(text)?.[1];
    if (answer.statusCode !== 200 || patch === undefined) throw new Error(`${answer.statusCode}: ${text}`);
    if (isMeasured && Buffer.from(patch, 'base64').includes('schedulingGates')) gated += 1;
  };
  try {
    // An API server already has open connections.
    await Promise.all(Array.from({ length: CONNECTIONS }, () => send('bench.invalid/first:1', false)));
    const started = performance.now();
    await work(send);
    return { delays, perSecond: (delays.length * 1000) / (performance.now() - started), gated };
  } finally {
    await pool.close();
  }
}

const POD = JSON.parse(podText({ pods: 0, nodes: 0, images: 0, repository: '' }, false));

/** A review of a pod as a Deployment creates it: about 4 KB. */
function reviewOf(image: string): string {
  const pods = { group: '', version: 'v1', resource: 'pods' };
  const kind = { group: '', version: 'v1', kind: 'Pod' };
  const username = 'system:serviceaccount:kube-system:replicaset-controller';
  const containers = POD.spec.containers.map((container: object) => ({ ...container, image }));
  return JSON.stringify({
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: {
      ...{ uid: randomUUID(), kind, resource: pods, requestKind: kind, requestResource: pods },
      ...{ namespace: 'bench', operation: 'CREATE', userInfo: { username, groups: ['system:authenticated'] } },
      object: { kind: 'Pod', apiVersion: 'v1', ...POD, spec: { ...POD.spec, containers } },
      oldObject: null,
      dryRun: false,
      options: { kind: 'CreateOptions' },
    },
  });
}
