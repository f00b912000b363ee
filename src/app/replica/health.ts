import { brokenWatches } from '../../kube/watch/watch-health.ts';
import { serveHealth } from '../../observability/health.ts';
import type { Resolver } from '../../oci/resolver.ts';
import type { Settings } from '../../placement/settings.ts';
import { cannotListen } from '../cannot-listen.ts';
import type { Watches } from '../watches.ts';
import type { Webhook } from '../webhook.ts';
import type { Base } from './base.ts';
import { observeState } from './gauges.ts';
import type { Leadership } from './leadership.ts';
import { leftovers } from './leftovers.ts';
import type { Terms } from './terms.ts';

/** The parts whose state decides the health of a replica. */
export type HealthParts = {
  readonly watches: Watches;
  readonly resolver: Resolver;
  readonly leadership: Leadership;
  readonly terms: Terms;
  readonly settings: () => Settings;
  readonly admission: Webhook | undefined;
};

/** Serves /metrics, /healthz and /readyz, if `metrics.address` names a port. Throws if it cannot listen. */
export async function serveState(base: Base, parts: HealthParts): Promise<void> {
  const { config, clock, metrics, log, end, loops } = base;
  const { address } = config.metrics;
  if (address === '') return;
  const { leadership, watches, resolver, terms, settings, admission } = parts;
  const observed = observeState({
    watches,
    resolver,
    loops: terms.current,
    leader: () => terms.current() !== undefined && leadership.mayWrite(),
    certificateExpiry: () => admission?.expiry(),
    now: clock.wall,
    settings,
    managesNodes: loops.includes('nodes'),
    gatedElsewhere: terms.gatedElsewhere,
    keepsDaemonSets: terms.keepsDaemonSets,
  });
  try {
    const { port } = await serveHealth(
      { address, metrics: () => metrics.render(observed), notReady: () => notReady(base, parts) },
      end,
    );
    log.info({ port }, 'serving /metrics, /healthz and /readyz');
    log.flush();
  } catch (error) {
    throw cannotListen('metrics.address', address, error);
  }
}

/** Returns the names that /readyz prints; empty if the replica is ready. */
function notReady(
  { signal, answers }: Base,
  { leadership, watches, admission, settings, terms }: HealthParts,
): string[] {
  return [
    // Not ready from SIGTERM on, so that the Service drops the replica's address while it still answers.
    ...(signal.aborted ? ['ending'] : []),
    ...watches.notSynced(),
    ...leftovers(watches, settings(), terms.gatedElsewhere()),
    ...(admission?.notReady() ?? []),
    // A replica gates no pod before it has seen a leader, so pods with unknown images would pass without a gate.
    ...(admission && !leadership.hasSeenLeader() ? ['leader'] : []),
    // A replica that answers reviews stays ready with a broken watch: it answers with its last knowledge.
    ...(admission ? [] : brokenWatches(watches.health(), answers.period())),
  ];
}
