import type { Watches } from '../controllers/watches.ts';
import { until } from '../kit/abort.ts';
import { createAllowance } from '../kit/fairness/allowance.ts';
import { cannotListen } from '../kit/network/listen.ts';
import type { EventRecorder, Regarding } from '../kube/events.ts';
import type { EventReason } from '../names.ts';
import type { Logger } from '../observability/log.ts';
import { taintKinds } from '../placement/nodes/node.ts';
import type { PlacedPart } from '../placement/refused-parts.ts';
import { createCertificateDirectory } from '../webhook/certificates/directory.ts';
import { createSelfSigned } from '../webhook/certificates/self-signed.ts';
import type { OnProblem } from '../webhook/certificates/source.ts';
import { type KeepConfigurationOptions, keepConfiguration } from '../webhook/keep-configuration.ts';
import { createPaths } from '../webhook/paths.ts';
import { createReviewer } from '../webhook/review.ts';
import { serveAdmission } from '../webhook/server.ts';
import type { Base } from './replica/base.ts';
import type { Running } from './replica/running.ts';

type WebhookParts = {
  readonly base: Base;
  readonly running: Running;
  readonly watches: Watches;
  readonly events: Pick<EventRecorder, 'emit'>;
  /** Returns the parts that the API server refuses in pods of the owner with this uid. */
  readonly refused: (namespace: string, owner: string) => readonly PlacedPart[];
};

/** The webhook of a replica. Every replica answers reviews, not only the leader. */
export type Webhook = ReturnType<typeof startWebhook>;

/**
 * The allowance of lookups that reviews may start for a namespace. Quotas reject objects only after their review, so nothing else
 * limits these lookups. Beyond the allowance an object is gated, and the pod controller starts the lookups later.
 */
const LOOKUPS = { burst: 64, perSecond: 2 };

/**
 * Starts to look for certificates and to keep the webhook's configuration up to date, until the last moment of a shutdown in which
 * the API server may still call. From its start on, each answer ends its connection.
 */
export function startWebhook(parts: WebhookParts) {
  const { base, running, watches, events, refused } = parts;
  const { config, client, clock, log, metrics, leaseNamespace: ownNamespace, signal: leaving } = base;
  const { images, hasLeader, canRelease, mayWrite, regarding } = running;
  const signal = AbortSignal.any([base.end, base.ending.admission]);
  const problemLog = (what: ProblemLogOptions['what'], reason: EventReason | undefined): OnProblem =>
    createProblemLog({ what, reason, log, events, regarding, mayWrite, clock, signal });
  const directory = config.webhook.certificates;
  const onProblem = problemLog('certificate', 'CertificateInvalid');
  const certificate =
    directory === 'self'
      ? createSelfSigned({ client, namespace: ownNamespace, mayWrite, clock, onProblem })
      : createCertificateDirectory({ directory, clock, onProblem });
  const paths = createPaths(() => config.webhook.path || certificate.current()?.path, clock.monotonic);
  void certificate.run(signal);
  const looked = new Promise<void>((onLooked) => {
    void keepConfiguration({
      ...{ client, clock, mayWrite, source: certificate, paths, onLooked, signal },
      onProblem: problemLog('configuration', 'CertificateInvalid'),
      onPathProblem: problemLog('path', undefined),
    });
  });
  const nodes = watches.nodes.store;
  const review = createReviewer({
    settings: running.settings,
    namespaceOf: (name) => watches.namespaces.store.get(name),
    clusterArchitectures: watches.witnesses.architectures,
    // This reads all nodes. It is called only for reviews of DaemonSets, which are rare.
    liveTaints: () => new Set([...nodes.values()].flatMap(taintKinds)),
    namesOf: images.namesOf,
    answerOf: images.answer,
    mayLookUp: createAllowance({ ...LOOKUPS, now: clock.monotonic }),
    mayGate: () => config.loops.includes('pods') && hasLeader() && canRelease(),
    refused,
    ownNamespace,
    warns: config.webhook.warnings,
    labels: config.webhook.verdictLabels,
    clock,
  });
  let closed = Promise.resolve();
  let listens = false;
  return {
    /** Returns what it still needs to answer reviews; empty if it answers them. */
    notReady: () => [
      ...(certificate.current() === undefined ? ['certificate' as const] : []),
      ...(listens ? [] : ['webhook' as const]),
    ],
    /** Resolves when the webhook has stopped listening and has sent the last answer; at once if it never listened. */
    closed: (): Promise<void> => closed,
    /** Returns when the certificate expires, in milliseconds since the epoch. */
    expiry: (): number | undefined => certificate.current()?.notAfter,
    /** Starts to serve. Call it when the watches are filled. Throws if it cannot listen. */
    async serve(): Promise<void> {
      const { address } = config.webhook;
      // The path that the API server calls must be known before the first review.
      await Promise.race([looked, until(signal)]);
      const onError = (err: unknown) =>
        log.error({ err }, 'admission review failed; its object was admitted without a change');
      try {
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

export type ProblemLogOptions = Pick<KeepConfigurationOptions, 'mayWrite' | 'clock' | 'signal'> & {
  /** What has the problem, in words: `certificate`. */
  readonly what: 'certificate' | 'configuration' | 'path';
  /** The reason of the Event; undefined: no Event. */
  readonly reason: EventReason | undefined;
  readonly log: Pick<Logger, 'info' | 'error'>;
  readonly events: Pick<EventRecorder, 'emit'>;
  readonly regarding: Regarding;
};

/** The interval of checks whether this replica leads. */
const LEAD_MS = 1_000;

/**
 * Creates a function that logs a problem of the webhook and its end. With an Event reason, it also writes an Event as soon as this
 * replica leads, which may be long after the problem was found: followers write no Events.
 */
export function createProblemLog(options: ProblemLogOptions): OnProblem {
  const { what, reason, log, events, regarding, mayWrite, clock, signal } = options;
  let current: string | undefined;
  let isWaiting = false;

  /** Waits until this replica leads. However often the problem changes meanwhile, there is one wait. */
  async function emitWhenLeading(): Promise<void> {
    if (isWaiting || reason === undefined) return;
    isWaiting = true;
    while (!mayWrite() && !signal.aborted && current !== undefined) await clock.delay(LEAD_MS, signal);
    isWaiting = false;
    if (signal.aborted || current === undefined) return;
    events.emit({ regarding, type: 'Warning', reason, action: 'Serving', note: current });
  }

  return (problem) => {
    current = problem;
    if (problem === undefined) {
      log.info(`the problem with the webhook's ${what} is solved`);
      return;
    }
    log.error({ problem }, `problem with the webhook's ${what}`);
    void emitWhenLeading();
  };
}
