import { setMaxListeners } from 'node:events';
import { createGatedPods } from '../../controllers/gated-pods.ts';
import { createKeepWatch, type KeepWatch } from '../../controllers/keep-watch.ts';
import { createLoops } from '../../controllers/loops/loops.ts';
import { createPublisher, type Publication } from '../../controllers/publish/publisher.ts';
import type { Watches } from '../../controllers/watches.ts';
import { until } from '../../kit/abort.ts';
import { milliseconds } from '../../kit/duration.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { createDoubt } from '../../kube/watch/doubt.ts';
import { createEvictor, createWriter } from '../../kube/writer.ts';
import { keepProbes } from '../../placement/patch/keep-probe.ts';
import { createServiceAccountReader } from '../registries/pull-secrets.ts';
import type { Base } from './base.ts';
import { logGated, logProtection } from './reported.ts';
import type { Running } from './running.ts';

/** The terms of leadership of this replica. */
export type Terms = ReturnType<typeof createTerms>;

/** Milliseconds after the bootstrap. The decision that ended it, and its write, are over by then. */
const CALM_MS = 500;
/** Milliseconds after the start of a term. The first probe does not wait for longer, however many DaemonSets still have to roll. */
const PROBE_AT_LATEST_MS = 5 * 60_000;

/** Creates the terms; none runs yet. */
export function createTerms(
  base: Base,
  running: Running,
  watches: Watches,
  events: EventRecorder,
  refusing: () => Iterable<string>,
) {
  const { context, client, clock, config, loops, observes, signal, ending, log, telemetry } = base;
  const { mayWrite, settings, labelRules } = running;
  const publisher = config.placement.publish
    ? createPublisher({
        ...{ client, mayWrite, clock, settings, loops, refusing },
        ...{ namespace: base.leaseNamespace, images: running.images, pods: watches.pods.store },
        onError: (err) => log.warn({ err }, 'known images not published: new pods are placed by the controller alone'),
      })
    : undefined;
  if (publisher !== undefined) running.resolver.onSettled(publisher.settled);
  const images = publisher?.images ?? running.images;

  /** The decisions about every pod leave garbage, and gaps between what stays. */
  async function collectSoon(): Promise<void> {
    await clock.delay(CALM_MS, signal);
    if (!signal.aborted) context.keepHeapSmall();
  }

  const onConflict = createDoubt({
    ...{ client, clock, versionOf: watches.versionOf, onDead: base.renewConnections },
    signal: base.end,
  });
  const createTerm = (onBootstrapped: () => void) =>
    createLoops({
      ...{ watches, settings, labelRules, loops, images, events, clock, telemetry },
      workers: config.workers,
      bootstrapMs: milliseconds(config.bootstrap.timeout),
      serviceAccountSecrets: createServiceAccountReader(client, clock),
      write: base.releases.through(createWriter(client, mayWrite, 'metadata', onConflict)),
      evictor: createEvictor(client, mayWrite),
      lastWriteMs: base.answers.lastWriteMs,
      onBootstrapped(undecided) {
        void collectSoon();
        onBootstrapped();
        if (!loops.includes('nodes') || !settings().taints.manage) return;
        log.info({ stillWaiting: undecided }, 'bootstrap over: nodes are tainted from now on');
      },
    });

  const onError = (err: unknown) => log.warn({ err }, 'pods with the scheduling gate could not be listed');
  const gated = createGatedPods({ client, clock, onChange: (keys) => logGated(log, keys), onError });

  const { daemonSets, namespaces, listeners } = watches;
  let keep: KeepWatch | undefined;

  /** Tries the protection of DaemonSets once the bootstrap is over, so that it does not slow down the start, and with each new watch. */
  async function watchKeep(bootstrapped: AbortSignal, over: AbortSignal): Promise<void> {
    // In the mode observe nothing is written, so nothing has to be protected.
    if (observes || !loops.includes('daemonsets')) return;
    await clock.delay(PROBE_AT_LATEST_MS, AbortSignal.any([bootstrapped, over]));
    if (over.aborted) return;
    const probes = () => keepProbes(daemonSets.store.values(), namespaces.store.get, settings());
    const present = createKeepWatch({ client, probes, onNews: (verdict) => logProtection(log, verdict) });
    keep = present;
    listeners.daemonSetsOpened = () => void present.look(over);
    listeners.daemonSetsOpened();
    await until(over);
    keep = undefined;
    listeners.daemonSetsOpened = undefined;
  }

  return {
    /** Counts the gated pods that were found without a watch on pods. */
    gatedElsewhere: gated.count,
    /** Whether updates that drop archaware's tolerations from a DaemonSet are corrected; undefined: not known. */
    keepsDaemonSets: (): boolean | undefined => keep?.holds(),
    /** What is published for the policy archaware-place; undefined if nothing should be. */
    published: (): Publication | undefined => publisher?.publication(),
    /** Runs a term until the Lease is lost or SIGTERM arrives, then waits for the writes under way. `begin`: called with the end of the term. */
    async run(lost: AbortSignal, begin: (over: AbortSignal) => void): Promise<void> {
      const kill = AbortSignal.any([lost, ending.writes]);
      const over = AbortSignal.any([signal, kill]);
      if (!loops.includes('pods')) void gated.watch(over);
      const bootstrapped = new AbortController();
      const term = createTerm(() => bootstrapped.abort());
      void watchKeep(bootstrapped.signal, over);
      void publisher?.run(over);
      log.info({ identity: running.identity }, 'leading');
      if (observes) log.info('placement.mode observe: nothing is written but Events, the Lease and the status');
      // Every write under way listens to this signal, so many listeners are not a leak.
      setMaxListeners(0, kill);
      await running.runTerm(term, over, kill, () => begin(over));
    },
  };
}
