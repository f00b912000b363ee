import { createImageSource } from '../../controllers/images.ts';
import type { Context } from '../context.ts';
import { until } from '../controllers.ts';
import { followLabelRules } from '../label-rules/label-rules.ts';
import { startRefusedCreations } from '../refused-creations.ts';
import { reloadOnChange } from '../reload.ts';
import { VERSION } from '../version.ts';
import { startWebhook } from '../webhook.ts';
import { type Base, createBase } from './base.ts';
import { sayFarewell } from './ending.ts';
import { serveState } from './health.ts';
import { createInForce } from './in-force.ts';
import { createLeadership } from './leadership.ts';
import { leftovers } from './leftovers.ts';
import { startEvents, startRegistries, startWatches } from './sources.ts';
import { createTerms } from './terms.ts';

/**
 * Runs a replica until the signal of the context aborts. Every replica watches and answers reviews. The one that holds the Lease
 * writes. Throws any error that prevents the start.
 */
export async function runReplica(context: Context): Promise<void> {
  context.keepHeapSmall();
  const base = await createBase(context);
  try {
    const parts = await createParts(base);
    await serveState(base, parts);
    const files = await followFiles(base, parts);
    await fillWatches(base, parts, files.read);
    await serveAdmission(base, parts);
    // The lists have left garbage.
    context.keepHeapSmall();
    await parts.leadership.lead((lost) => parts.terms.run(lost, files.reportLabelRules));
    await leave(base, parts);
  } finally {
    await base.close();
  }
}

type Parts = Awaited<ReturnType<typeof createParts>>;

/** Creates the parts of the replica. The webhook begins to look for its certificate; nothing else runs yet. */
async function createParts(base: Base) {
  const { config, client, clock, leaseNamespace, log, metrics, signal, end, ending } = base;
  const leadership = await createLeadership(base);
  const events = startEvents(base, leadership);
  const watches = startWatches(base);
  const { registries, secretProblems } = await startRegistries(base);
  const { resolver } = registries;
  const images = createImageSource(resolver, clock, secretProblems);
  const inForce = createInForce(config, {
    registries,
    watches,
    log,
    onChange: () => terms.current()?.settingsChanged(),
  });
  const { settings } = inForce;
  const terms = createTerms(base, leadership, { watches, events, images, settings });
  resolver.onSettled((canonical) => terms.current()?.lookupEnded(canonical));
  const refused = startRefusedCreations({ config, client, clock, log, events, settings, watches, signal: end });
  const admission = config.webhook.enabled
    ? startWebhook({
        ...leadership,
        config,
        client,
        clock,
        log,
        metrics,
        events,
        ownNamespace: leaseNamespace,
        watches,
        settings,
        images,
        refused,
        leaving: signal,
        signal: AbortSignal.any([end, ending.admission]),
      })
    : undefined;
  return { leadership, events, watches, resolver, settings, inForce, terms, admission };
}

/** Reads the configuration and the label rules again whenever their files change. */
async function followFiles(base: Base, { leadership, events, inForce, terms }: Parts) {
  const { context, labels, log, metrics, signal } = base;
  const { regarding } = leadership;
  const common = { log, events, regarding, signal };
  const read = reloadOnChange(context, { ...common, apply: inForce.apply, metrics });
  const { report } = await followLabelRules(labels, {
    ...common,
    onChange: () => terms.current()?.labelRulesChanged(),
  });
  return { read, reportLabelRules: report };
}

/** Returns when every kind is listed and the configuration file is watched. A kind that may not be listed ends the process. */
async function fillWatches({ end, signal }: Base, { watches }: Parts, filesRead: Promise<void>): Promise<void> {
  const watching = watches.run(end);
  await Promise.race([Promise.all([watches.whenSynced(), filesRead]), watching, until(signal)]);
}

/** Starts to answer reviews, with the state that the watches have. */
async function serveAdmission(
  { signal, client, log }: Base,
  { watches, settings, inForce, terms, admission }: Parts,
): Promise<void> {
  if (!signal.aborted) await admission?.serve();
  const counts = { pods: watches.pods.store.size, nodes: watches.nodes.store.size };
  log.info({ version: VERSION, server: client.host, ...counts }, 'watching');
  if (signal.aborted) return;
  inForce.logAbsent();
  const left = leftovers(watches, settings(), terms.gatedElsewhere());
  if (left.length > 0) log.warn({ left }, 'placement.mode observe removes nothing: not ready until clean has run');
}

/** Releases the Lease at once, and answers reviews until the API server no longer calls this replica. */
async function leave({ clock, ending, cacheFile, log }: Base, { leadership, events, admission }: Parts): Promise<void> {
  const { lease } = leadership;
  await sayFarewell({ lease, events, clock, log }, ending.all);
  if (admission !== undefined) {
    // Another replica may lead by now. Following its Lease keeps gating allowed.
    void lease?.follow(ending.admission);
    await Promise.race([admission.closed(), until(ending.all)]);
  }
  await Promise.race([cacheFile?.close(), until(ending.all)]);
  log.info('ended');
  log.flush();
}
