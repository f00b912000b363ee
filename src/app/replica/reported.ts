import type { Telemetry } from '../../controllers/controller-options.ts';
import type { KeepVerdict } from '../../controllers/keep-watch.ts';
import { LeaseLostError } from '../../kube/errors.ts';
import type { Logger } from '../../observability/log.ts';
import type { Metrics } from '../../observability/metrics.ts';

const EXAMPLES = 5;

/**
 * Writes what a replica reports to its log and its metrics. For each reconciliation, the log says at level info what was written
 * (`wrote`), or why an object is held (`because`). `heard` gets the bytes of each event of a watch.
 */
export function createTelemetry(
  log: Pick<Logger, 'debug' | 'info' | 'warn'>,
  metrics: Pick<
    Metrics,
    'reconciled' | 'watchRestarted' | 'podPlaced' | 'writeRefused' | 'wrongNodeFound' | 'nodeJoinedUntainted'
  >,
  heard: (bytes: number) => void,
): Telemetry {
  return {
    watchRestarted(kind, reason) {
      metrics.watchRestarted(kind);
      log.debug({ kind, reason }, 'watch started again');
    },
    watchFails: (kind, attempt, reason) =>
      log.warn({ kind, reason }, `the ${attempt} fails and is tried again; changes are not seen meanwhile`),
    watchWorks: (kind) => log.info({ kind }, 'the watch works again'),
    heard,
    outcome(controller, key, seconds, result) {
      metrics.reconciled(controller, result.outcome, seconds);
      if (result.outcome === 'error') {
        const { error: err } = result;
        // A lost Lease is not an error: the term is over, and the next one decides everything again.
        if (err instanceof LeaseLostError) log.debug({ controller, key, err }, 'not written: the lease is lost');
        else log.warn({ controller, key, err }, 'not reconciled; will be tried again');
        return;
      }
      const { outcome, detail } = result;
      if (outcome === 'written') log.info({ controller, key, outcome, wrote: detail }, 'reconciled');
      else if (outcome === 'held') log.info({ controller, key, outcome, because: detail }, 'reconciled');
      else log.debug({ controller, key, outcome }, 'reconciled');
    },
    placed: metrics.podPlaced,
    refused: metrics.writeRefused,
    wrongNode: metrics.wrongNodeFound,
    joinedUntainted: metrics.nodeJoinedUntainted,
  };
}

/** Logs which pods have archaware's gate that no controller of this replica releases. */
export function logGated(log: Pick<Logger, 'info' | 'warn'>, keys: readonly string[]): void {
  const found = { count: keys.length, pods: keys.slice(0, EXAMPLES) };
  if (keys.length === 0) log.info('pods no longer hold the scheduling gate of archaware');
  else log.warn(found, GATED);
}

const GATED =
  'pods hold the scheduling gate archaware.dev/architecture, and the loop for pods does not run: nothing releases them: add pods to loops, or run clean --stop (docs/alerts.md, "ArchawareGatedPods")';

const PROTECTION = {
  broken:
    "an update that drops archaware's tolerations from a DaemonSet would be stored, and take its pods off all tainted nodes: neither the policy archaware-keep nor the webhook corrects it (ArchawareDaemonSetsUnprotected in docs/alerts.md)",
  unknown:
    "could not find out whether updates that drop archaware's tolerations from DaemonSets are corrected; will be tried again",
  holds: "updates that drop archaware's tolerations from DaemonSets are corrected again",
  nothing: 'no DaemonSet has tolerations of archaware any more, so none has to be protected',
} as const;

/** Logs that the protection of DaemonSets is broken, holds again, or is not known for a new reason. */
export function logProtection(log: Pick<Logger, 'info' | 'warn'>, verdict: KeepVerdict): void {
  if (verdict.kind === 'broken') log.warn({ daemonSet: verdict.example }, PROTECTION.broken);
  else if (verdict.kind === 'unknown') log.warn({ why: verdict.why }, PROTECTION.unknown);
  else log.info(PROTECTION[verdict.kind]);
}
