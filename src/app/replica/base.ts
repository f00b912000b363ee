import { systemClock as clock } from '../../kit/clock.ts';
import { createAnswers } from '../../kube/watch/watch-health.ts';
import { createLog } from '../../observability/log.ts';
import { createMetrics } from '../../observability/metrics.ts';
import { createImageCache } from '../../oci/cache/cache.ts';
import { connect } from '../connect.ts';
import type { Context } from '../context.ts';
import { openLabelRules } from '../label-rules/label-rules.ts';
import { openCacheFile } from '../registries/cache-file.ts';
import { openFiles } from '../registries/registries.ts';
import { VERSION } from '../version.ts';
import { createEnding } from './ending.ts';

/** The base that every part of a replica needs. */
export type Base = Awaited<ReturnType<typeof openBase>>;

/**
 * Opens the log, the metrics, the operator's files, the cache of images and the connections to the API server. Throws any error
 * that prevents the start; nothing runs then.
 */
export async function openBase(context: Context) {
  const { config, signal } = context;
  const log = await createLog(config.log);
  const metrics = createMetrics(VERSION, clock.monotonic);
  const files = await openFiles(config, clock, log);
  const labels = await openLabelRules(config, clock);
  const cache = createImageCache(config.images.cache.maxEntries);
  const cacheFile = await openCacheFile(config, cache, log);
  const answers = createAnswers(clock);
  const { client, leaseClient, leaseNamespace, close } = await connect(context, (request) => {
    metrics.apiAnswered(request);
    answers.finished(request);
  });
  const end = new AbortController();
  const ending = createEnding(signal, clock);
  return {
    context,
    config,
    /** Aborts when the process should end (SIGTERM). */
    signal,
    /** Aborts at the very end: watches, lookups, Events and metrics go on until the last writes are done. */
    end: end.signal,
    ending,
    log,
    metrics,
    files,
    labels,
    cache,
    cacheFile,
    answers,
    client,
    leaseClient,
    leaseNamespace,
    async close(): Promise<void> {
      ending.cancel();
      end.abort();
      await close();
    },
  };
}
