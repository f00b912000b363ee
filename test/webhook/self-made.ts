import { X509Certificate } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../../src/kit/clock.ts';
import { isObject, type JsonObject, listAt, objectAt, stringAt } from '../../src/kit/json.ts';
import type { ApiClient } from '../../src/kube/api-client.ts';
import { readAuthorities } from '../../src/oci/http/trust.ts';
import { createSelfSigned, type SelfSignedOptions } from '../../src/webhook/certificates/self-signed.ts';
import { type KeepConfigurationOptions, keepConfiguration } from '../../src/webhook/keep-configuration.ts';
import { createPaths } from '../../src/webhook/paths.ts';
import { createHandClock } from '../controllers/hand-clock.ts';
import { PATIENCE_MS } from '../simulator/client.ts';

export const NAMESPACE = 'archaware';
export const SECRETS = `/api/v1/namespaces/${NAMESPACE}/secrets`;
export const SECRET = `${SECRETS}/archaware-controller-webhook`;
export const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
export const CONFIGURATION = `${CONFIGURATIONS}/archaware-controller`;
export const HOST = 'archaware-controller.archaware.svc';

/** Waits for a condition. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited in vain until ${what}`);
    await delay(1);
  }
}

/** Certificates of replicas over a clock that a test moves. */
export type World = ReturnType<typeof createWorld>;

export function createWorld(client: ApiClient, begin: number) {
  const hand = createHandClock();
  const clock: Clock = { ...hand, wall: () => begin + hand.wall() };
  const end = new AbortController();
  const running: Promise<void>[] = [];
  const settled = () => until('all have looked', () => hand.waiting === running.length);

  /** Adds a task that waits on the clock until the signal aborts. */
  async function add(run: (signal: AbortSignal) => Promise<void>): Promise<void> {
    running.push(run(end.signal));
    await settled();
  }
  return {
    clock,
    now: clock.wall,
    add,
    /** Adds a replica, and waits for its first check. Its reports are in `problems`. */
    async replica(options: Partial<SelfSignedOptions> = {}) {
      const problems: string[] = [];
      const source = createSelfSigned({
        client,
        namespace: NAMESPACE,
        mayWrite: () => true,
        clock,
        onProblem: (problem) => problems.push(problem ?? 'none'),
        ...options,
      });
      await add(source.run);
      return { ...source, problems };
    },
    /** Moves the clock forward, and waits until all checks that are due are done. */
    async pass(ms: number): Promise<void> {
      await hand.advance(ms);
      await settled();
    },
    async end(): Promise<void> {
      end.abort();
      await Promise.all(running);
    },
  };
}

type Keeping = Pick<KeepConfigurationOptions, 'client' | 'source' | 'mayWrite' | 'clock' | 'onProblem' | 'signal'> &
  Partial<KeepConfigurationOptions>;

/** Keeps the configuration like a replica that serves the path in its Secret. */
export function keeping(options: Keeping): Promise<void> {
  const { source, clock } = options;
  return keepConfiguration({
    paths: createPaths(() => source.current()?.path, clock.monotonic),
    onPathProblem: () => {},
    onLooked: () => {},
    ...options,
  });
}

/** The webhook's MutatingWebhookConfiguration, without a bundle yet. */
export function webhookConfiguration(clientConfig?: JsonObject): JsonObject {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name: 'archaware-controller' },
    webhooks: [
      {
        name: 'pods.archaware.dev',
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        failurePolicy: 'Ignore',
        clientConfig: clientConfig ?? { service: { name: 'archaware-controller', namespace: NAMESPACE } },
        rules: [{ apiGroups: ['example.com'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['nothings'] }],
      },
    ],
  };
}

/** The bundle that the API server uses for the first webhook; empty if there is none. */
export async function bundleIn(client: ApiClient): Promise<string> {
  const found = await client.request('get', CONFIGURATION);
  const [webhook] = listAt(isObject(found) ? found : {}, 'webhooks') ?? [];
  return Buffer.from(stringAt(objectAt(webhook ?? {}, 'clientConfig'), 'caBundle') ?? '', 'base64').toString();
}

/** The entries of the Secret, decoded. */
export async function entries(client: ApiClient): Promise<Record<string, string>> {
  const secret = await client.request('get', SECRET);
  const data = Object.entries(objectAt(isObject(secret) ? secret : {}, 'data'));
  return Object.fromEntries(data.map(([name, value]) => [name, Buffer.from(String(value), 'base64').toString()]));
}

/** Whether a client that trusts the bundle would accept the certificate for the host at that time. */
export function wouldTrust(bundle: string | undefined, cert: string | undefined, host: string, now: number): boolean {
  if (bundle === undefined || cert === undefined) return false;
  const leaf = new X509Certificate(cert);
  const holds = ({ validFrom, validTo }: X509Certificate) => Date.parse(validFrom) <= now && now <= Date.parse(validTo);
  const authorities = readAuthorities(bundle).map((pem) => new X509Certificate(pem));
  return (
    holds(leaf) &&
    leaf.checkHost(host) !== undefined &&
    authorities.some((each) => each.ca && holds(each) && leaf.checkIssued(each) && leaf.verify(each.publicKey))
  );
}
