import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';

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

/** A review of a pod as a Deployment creates it: about 4 KB. */
function reviewOf(image: string): string {
  const uid = randomUUID();
  const pods = { group: '', version: 'v1', resource: 'pods' };
  const kind = { group: '', version: 'v1', kind: 'Pod' };
  const userInfo = {
    username: 'system:serviceaccount:kube-system:replicaset-controller',
    groups: ['system:authenticated'],
  };
  const request = {
    uid,
    kind,
    resource: pods,
    requestKind: kind,
    requestResource: pods,
    namespace: 'bench',
    operation: 'CREATE',
  };
  return JSON.stringify({
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: {
      ...request,
      userInfo,
      object: podOf(image),
      oldObject: null,
      dryRun: false,
      options: { kind: 'CreateOptions' },
    },
  });
}

function podOf(image: string) {
  const token = { name: 'kube-api-access', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount', readOnly: true };
  const containers = ['web', 'proxy'].map((name) => ({
    name,
    image,
    imagePullPolicy: 'IfNotPresent',
    env: Array.from({ length: 15 }, (_, index) => ({
      name: `SETTING_${index}`,
      value: `the value of setting ${index}`,
    })),
    ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }],
    resources: { limits: { cpu: '1', memory: '512Mi' }, requests: { cpu: '100m', memory: '128Mi' } },
    readinessProbe: { httpGet: { path: '/ready', port: 8080, scheme: 'HTTP' }, periodSeconds: 10 },
    volumeMounts: [token],
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
  }));
  const tolerations = ['not-ready', 'unreachable'].map((name) => ({
    key: `node.kubernetes.io/${name}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: 300,
  }));
  return {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: {
      generateName: 'web-6d4cf56db6-',
      creationTimestamp: null,
      labels: { app: 'web', 'pod-template-hash': '6d4cf56db6' },
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-6d4cf56db6', uid: 'r1', controller: true },
      ],
    },
    spec: {
      volumes: [{ name: 'kube-api-access', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } }],
      containers,
      restartPolicy: 'Always',
      dnsPolicy: 'ClusterFirst',
      serviceAccountName: 'default',
      securityContext: {},
      schedulerName: 'default-scheduler',
      tolerations,
      priority: 0,
      enableServiceLinks: true,
    },
    status: {},
  };
}
