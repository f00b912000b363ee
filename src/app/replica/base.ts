import { loopsThatRun } from '../../config/settings.ts';
import { onAbort } from '../../kit/abort.ts';
import type { Clock } from '../../kit/clock.ts';
import { createAnswers } from '../../kube/watch/watch-health.ts';
import { createClientWithoutWrites } from '../../kube/without-writes.ts';
import { createLog } from '../../observability/log.ts';
import { createMetrics } from '../../observability/metrics.ts';
import { createImageCache } from '../../oci/cache.ts';
import { onlyObserves } from '../../placement/placing.ts';
import { connect } from '../connect.ts';
import { loadLabelRules } from '../follow-label-rules.ts';
import { openFiles } from '../registries/registries.ts';
import type { Context } from '../surroundings.ts';
import { VERSION } from '../version.ts';
import { createMayPatchPods, createReleases } from './releases.ts';
import { createTelemetry } from './reported.ts';

/** What a replica works with and what stays the same while it runs. */
export type Base = Awaited<ReturnType<typeof createBase>>;

/**
 * Opens the log, the metrics, the operator's files, the cache of images and the connections to the API server. Throws any error
 * that prevents the start; nothing runs then.
 */
export async function createBase(context: Context) {
  const { config, signal, clock } = context;
  const log = await createLog(config.log, context.log);
  const metrics = createMetrics(VERSION, clock.monotonic);
  const files = await openFiles(config, clock, log);
  const labels = await loadLabelRules(config, clock);
  const cache = createImageCache(config.images.cache.maxEntries);
  const answers = createAnswers(clock, context.received);
  const connection = await connect(context, (request) => {
    metrics.apiAnswered(request);
    answers.finished(request);
  });
  const observes = onlyObserves(config.placement);
  const end = new AbortController();
  const ending = createEnding(signal, clock);
  return {
    ...{ context, config, clock, ending, log, metrics, files, labels, cache, answers },
    telemetry: createTelemetry(log, metrics, answers.heard),
    releases: createReleases(clock, log, createMayPatchPods(connection.client)),
    /** Aborts when the process should end (SIGTERM). */
    signal,
    /** Aborts at the very end: watches, lookups, Events and metrics go on until the last writes are done. */
    end: end.signal,
    /** In the mode `observe` it sends no write but Events. */
    client: observes ? createClientWithoutWrites(connection.client) : connection.client,
    leaseClient: connection.leaseClient,
    /** Writes the status of the leader, in the mode `observe` too. */
    statusClient: connection.client,
    /** Called when there is a sign that its connections are dead, although the API server answers. */
    renewConnections: connection.client.renew,
    leaseNamespace: connection.leaseNamespace,
    observes,
    loops: loopsThatRun(config),
    async close(): Promise<void> {
      ending.cancel();
      end.abort();
      await connection.close();
    },
  };
}

/**
 * Creates the deadlines of a shutdown. Each aborts a fixed time after the signal (SIGTERM), even if something hangs: Kubernetes gives
 * 30 s, and a replica that hangs must not use all of it.
 */
export function createEnding(signal: AbortSignal, clock: Clock) {
  const cancels: (() => void)[] = [];
  function late(ms: number): AbortSignal {
    const controller = new AbortController();
    const forget = onAbort(signal, () => cancels.push(clock.after(ms, () => controller.abort())));
    cancels.push(forget);
    return controller.signal;
  }
  return {
    /** Aborts the writes under way, so that the Lease can be released. */
    writes: late(4_000),
    /** Makes the webhook refuse new connections. Until then the API server may still call this replica. */
    admission: late(5_000),
    /** Aborts the release of the Lease and everything else that still runs. */
    all: late(9_000),
    /** Cancels the deadlines that have not come yet, so that no timer is left. */
    cancel(): void {
      for (const cancel of cancels) cancel();
    },
  };
}
