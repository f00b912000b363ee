import { hostname } from 'node:os';
import type { Config } from '../config/schema.ts';
import type { ImageSource } from '../controllers/images.ts';
import type { Clock } from '../kit/clock.ts';
import { createAllowance } from '../kit/fairness/allowance.ts';
import type { ApiClient } from '../kube/client.ts';
import type { EventRecorder, Regarding } from '../kube/events.ts';
import type { EventReason } from '../names.ts';
import type { Logger } from '../observability/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import { taintKinds } from '../placement/nodes/node.ts';
import type { PlacedPart } from '../placement/refused-parts.ts';
import type { Settings } from '../placement/settings.ts';
import { createCertificateDirectory } from '../webhook/certificates/directory.ts';
import { createSelfSigned } from '../webhook/certificates/self-signed.ts';
import type { CertificateSource, OnProblem } from '../webhook/certificates/source.ts';
import { servingNames, trusts, trustsAny } from '../webhook/configuration.ts';
import { keepConfiguration, readConfiguration } from '../webhook/keep-configuration.ts';
import { createPaths, type Paths } from '../webhook/paths.ts';
import { replicasAlike } from '../webhook/replicas.ts';
import { createReviewer } from '../webhook/review.ts';
import { createSeal } from '../webhook/seal.ts';
import { serveAdmission } from '../webhook/server.ts';
import { cannotListen } from './cannot-listen.ts';
import { until } from './controllers.ts';
import { createProblemLog, type ProblemLogOptions } from './problem-log.ts';
import type { Watches } from './watches.ts';

export type WebhookParts = {
  readonly config: Config;
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, 'reviewed'>;
  readonly events: Pick<EventRecorder, 'emit'>;
  /** The object that the Event of a bad certificate is about. */
  readonly regarding: Regarding;
  readonly ownNamespace: string;
  /** Whether this replica leads. */
  readonly mayWrite: () => boolean;
  /** Whether any replica leads. */
  readonly hasLeader: () => boolean;
  readonly watches: Watches;
  /** Returns the parts that the API server refuses in pods of the owner with this uid. */
  readonly refused: (namespace: string, owner: string) => readonly PlacedPart[];
  readonly settings: () => Settings;
  readonly images: ImageSource;
  /** Aborts at the start of a shutdown: reviews are still answered, and each answer ends its connection. */
  readonly leaving: AbortSignal;
  /** Ends the webhook and the care for its certificate. */
  readonly signal: AbortSignal;
};

/** The webhook of a replica. Every replica answers reviews, not only the leader. */
export type Webhook = {
  /** Starts to serve. Call it when the watches are filled. Throws if it cannot listen. */
  serve(): Promise<void>;
  /** Returns what it still needs to answer reviews; empty if it answers them. */
  notReady(): readonly ('certificate' | 'webhook')[];
  /** Returns when the certificate expires, in milliseconds since the epoch. */
  expiry(): number | undefined;
  /** Resolves when the webhook has stopped listening and has sent the last answer; at once if it never listened. */
  closed(): Promise<void>;
};

/**
 * The allowance of lookups that reviews may start for a namespace. Quotas reject objects only after their review, so nothing else
 * limits these lookups. Beyond the allowance an object is gated, and the pod controller starts the lookups later.
 */
const LOOKUPS = { burst: 64, perSecond: 2 };

/** Starts to look for certificates and to keep the webhook's configuration up to date, until the signal aborts. */
export function startWebhook(parts: WebhookParts): Webhook {
  const { config, clock, log, metrics, images, watches, signal } = parts;
  const certificate = createCertificates(parts, problemLog(parts, 'certificate', 'CertificateInvalid'));
  const paths = createPaths(() => config.webhook.path || certificate.current()?.shared?.path, clock.monotonic);
  void certificate.run(signal);
  const looked = followConfiguration(parts, certificate, paths);
  const nodes = watches.nodes.store;
  const review = createReviewer({
    settings: parts.settings,
    namespaceOf: (name) => watches.namespaces.store.get(name),
    clusterArchitectures: watches.witnesses.architectures,
    // This reads all nodes. It is called only for reviews of DaemonSets, which are rare.
    liveTaints: () => new Set([...nodes.values()].flatMap(taintKinds)),
    namesOf: images.namesOf,
    answerOf: images.answer,
    mayLookUp: createAllowance({ ...LOOKUPS, now: clock.monotonic }),
    mayGate: () => config.loops.includes('pods') && parts.hasLeader(),
    refused: parts.refused,
    ownNamespace: parts.ownNamespace,
    seal: createSeal(certificate.current),
    clock,
  });
  let closed = Promise.resolve();
  let listens = false;
  return {
    notReady: () => [
      ...(certificate.current() === undefined ? ['certificate' as const] : []),
      ...(listens ? [] : ['webhook' as const]),
    ],
    closed: () => closed,
    expiry: () => certificate.current()?.notAfter,
    async serve() {
      const { address } = config.webhook;
      // The path that the API server calls must be known before the first review.
      await Promise.race([looked, until(signal)]);
      const onError = (err: unknown) =>
        log.error({ err }, 'admission review failed; its object was admitted without a change');
      try {
        const { leaving } = parts;
        const { isServed } = paths;
        const options = { address, certificate, isServed, review, onReviewed: metrics.reviewed, onError, leaving };
        const server = await serveAdmission(options, signal);
        closed = server.closed;
        listens = true;
        log.info({ port: server.port }, 'serving admission reviews');
      } catch (error) {
        throw cannotListen('webhook.address', address, error);
      }
    },
  };
}

/** Starts to keep the webhook's configuration up to date. Resolves after the first check. */
function followConfiguration(parts: WebhookParts, source: CertificateSource, paths: Paths): Promise<void> {
  const { client, clock, mayWrite, watches, ownNamespace, signal } = parts;
  return new Promise((onLooked) => {
    void keepConfiguration({
      client,
      source,
      paths,
      replicas: () => replicasAlike(watches.pods.store.values(), ownNamespace, hostname()),
      mayWrite,
      clock,
      onProblem: problemLog(parts, 'configuration', 'CertificateInvalid'),
      onPathProblem: problemLog(parts, 'path', undefined),
      onLooked,
      signal,
    });
  });
}

function createCertificates(parts: WebhookParts, onProblem: OnProblem): CertificateSource {
  const { config, client, clock, mayWrite, ownNamespace: namespace, signal } = parts;
  const { certificates } = config.webhook;
  if (certificates !== 'self') return createCertificateDirectory({ directory: certificates, clock, onProblem });
  return createSelfSigned({
    client,
    namespace,
    names: async () => servingNames(await readConfiguration(client, signal), namespace),
    trusts: async (authority) => trusts(await readConfiguration(client, signal), authority),
    trustsAny: async () => trustsAny(await readConfiguration(client, signal)),
    mayWrite,
    clock,
    onProblem,
  });
}

function problemLog(
  { log, events, regarding, mayWrite, clock, signal }: WebhookParts,
  what: ProblemLogOptions['what'],
  reason: EventReason | undefined,
): OnProblem {
  return createProblemLog({ what, reason, log, events, regarding, mayWrite, clock, signal });
}
