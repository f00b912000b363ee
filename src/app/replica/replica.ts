import { createWatches, kindsFor } from '../../controllers/watches.ts';
import { until } from '../../kit/abort.ts';
import { createEvents } from '../../kube/events.ts';
import { createWriter } from '../../kube/writer.ts';
import { startRefusedCreations } from '../hear-refusals.ts';
import { keepStatus } from '../leader-status.ts';
import { reloadOnChange } from '../reload-on-change.ts';
import { startWebhook } from '../start-webhook.ts';
import type { Context } from '../surroundings.ts';
import { VERSION } from '../version.ts';
import { type Base, createBase } from './base.ts';
import { gatherStatus } from './known.ts';
import { gatherReports, keepReports } from './namespace-reports.ts';
import type { Parts } from './parts.ts';
import { createRunning } from './running.ts';
import { rememberSaid } from './said.ts';
import { leftovers, serveState } from './serve-state.ts';
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
    await lead(base, parts, files.reportLabelRules);
    await leave(base, parts);
  } finally {
    await base.close();
  }
}

/** Creates the parts of the replica. The webhook begins to look for its certificate; nothing else runs yet. */
async function createParts(base: Base): Promise<Parts> {
  const { config, client, clock, log, metrics, telemetry, end } = base;
  const watches = createWatches({ client, clock, kinds: kindsFor(config), telemetry });
  const running = await createRunning(base, watches);
  const { settings } = running;
  // Only the leader writes Events.
  const events = rememberSaid(
    createEvents({
      client,
      instance: running.identity,
      mayWrite: running.mayWrite,
      clock,
      signal: end,
      onError: (err) => log.warn({ err }, 'event not written'),
      onDrop: metrics.eventDropped,
      onDropped: (count) => log.warn({ count }, 'Events dropped: too many at once, or too many about one object'),
    }),
  );
  const refused = startRefusedCreations({ config, client, clock, log, events, settings, watches, signal: end });
  const admission = config.webhook.enabled
    ? startWebhook({ base, running, watches, events, refused: refused.refused })
    : undefined;
  const terms = createTerms(base, running, watches, events, refused.refusing);
  return { running, events, watches, refused, terms, admission, configurationInUse: true };
}

/** Runs the terms in which this replica leads, until SIGTERM. */
async function lead(base: Base, parts: Parts, reportLabelRules: () => void): Promise<void> {
  const { clock, log, statusClient: client, leaseNamespace: namespace } = base;
  const { mayWrite } = parts.running;
  const gather = () => gatherStatus(base, parts);
  const reports = {
    ...{ clock, log, write: createWriter(base.client, mayWrite, 'metadata') },
    namespaces: parts.watches.namespaces.store.values,
    // Without the loop for pods nothing is known about them.
    gather: (wanted: ReadonlySet<string>) =>
      base.loops.includes('pods') ? gatherReports(base, parts, wanted) : new Map<string, string>(),
  };
  const begin = (over: AbortSignal) => {
    void keepStatus({ client, namespace, mayWrite, gather, clock, log }, over);
    if (!base.observes) void keepReports(reports, over);
    reportLabelRules();
  };
  await parts.running.lead(
    (lost) => parts.terms.run(lost, begin),
    base.signal,
    () => log.warn('lease lost: another replica may lead'),
  );
}

/** Reads the configuration and the label rules again whenever their files change, until SIGTERM, or a start that failed is over. */
async function followFiles(base: Base, parts: Parts) {
  const { context, labels, log, metrics } = base;
  const { events, running } = parts;
  const configReloaded = (isInUse: boolean) => {
    parts.configurationInUse = isInUse;
    metrics.configReloaded(isInUse);
  };
  const signal = AbortSignal.any([base.signal, base.end]);
  const common = { log, events, regarding: running.regarding, signal };
  const read = reloadOnChange(context, { ...common, apply: running.apply, metrics: { configReloaded } });
  return { read, reportLabelRules: await labels.follow(common, running.labelRulesChanged) };
}

/** Returns when every kind is listed and the configuration file is watched. A kind that may not be listed ends the process. */
async function fillWatches({ end, signal }: Base, { watches }: Parts, filesRead: Promise<void>): Promise<void> {
  const watching = watches.run(end);
  await Promise.race([Promise.all([watches.whenSynced(), filesRead]), watching, until(signal)]);
}

async function serveAdmission(
  { signal, client, log }: Base,
  { watches, running, terms, admission }: Parts,
): Promise<void> {
  if (!signal.aborted) await admission?.serve();
  const counts = { pods: watches.pods.store.size, nodes: watches.nodes.store.size };
  log.info({ version: VERSION, server: client.host, ...counts }, 'watching');
  if (signal.aborted) return;
  running.logAbsent();
  const left = leftovers(watches, running.settings(), terms.gatedElsewhere());
  if (left.length > 0) log.warn({ left }, 'placement.mode observe removes nothing: not ready until clean has run');
}

/** The time for the last Events. They must be written before the Lease is released, because only the leader writes Events. */
const LAST_EVENTS_MS = 1_000;

/** Writes the last Events, releases the Lease, and answers reviews until the API server no longer calls this replica. */
async function leave({ clock, ending, log }: Base, { running, events, admission }: Parts): Promise<void> {
  const late = new AbortController();
  const cancel = clock.after(LAST_EVENTS_MS, () => late.abort());
  await events.flush(AbortSignal.any([late.signal, ending.all]));
  cancel();
  try {
    await running.release(ending.all);
  } catch (err) {
    log.warn({ err }, 'lease not released: the next leader waits until it expires');
  }
  if (admission !== undefined) {
    // Another replica may lead by now. Following its Lease keeps gating allowed.
    void running.follow(ending.admission);
    await Promise.race([admission.closed(), until(ending.all)]);
  }
  log.info('ended');
  log.flush();
}
