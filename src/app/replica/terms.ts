import { setMaxListeners } from 'node:events';
import { createGatedPods } from '../../controllers/gated-pods.ts';
import type { ImageSource } from '../../controllers/images.ts';
import { createKeepWatch } from '../../controllers/keep-probe.ts';
import { milliseconds } from '../../kit/duration.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { createEvictor } from '../../kube/eviction.ts';
import { createWriter } from '../../kube/writer.ts';
import { keepProbes } from '../../placement/patch/keep-probe.ts';
import type { Settings } from '../../placement/settings.ts';
import { createLoops, type Loops } from '../controllers.ts';
import { createServiceAccountReader } from '../registries/pull-secrets.ts';
import { createNodeFetcher, type Watches } from '../watches.ts';
import type { Base } from './base.ts';
import type { Leadership } from './leadership.ts';
import { outcomeLog } from './outcome-log.ts';
import { gatedPodLog, keepLog, unmanagedTaintLog } from './term-log.ts';

/** The terms of leadership of this replica. */
export type Terms = {
  /** Returns the controllers of the present term; undefined between terms. */
  current(): Loops | undefined;
  /** Counts the gated pods that were found without a watch on pods. */
  gatedElsewhere(): number;
  /** Whether updates that drop archaware's tolerations from a DaemonSet are corrected; undefined: not known. */
  keepsDaemonSets(): boolean | undefined;
  /** Runs a term until the Lease is lost or SIGTERM arrives, then waits for the writes under way. */
  run(lost: AbortSignal, onBegin: () => void): Promise<void>;
};

/** The parts that a term works with. */
export type TermParts = {
  readonly watches: Watches;
  readonly events: EventRecorder;
  readonly images: ImageSource;
  readonly settings: () => Settings;
};

/** Milliseconds after the bootstrap. The decision that ended it, and its write, are over by then. */
const CALM_MS = 500;
/** Milliseconds after the start of a term. The first probe does not wait for longer, however many DaemonSets still have to roll. */
const PROBE_AT_LATEST_MS = 5 * 60_000;

/** Creates the terms; none runs yet. */
export function createTerms(base: Base, leadership: Leadership, parts: TermParts): Terms {
  const { context, client, clock, config, loops, observes, signal, ending, log, metrics, labels, lastWriteMs } = base;
  const { mayWrite, identity } = leadership;
  const { settings, ...shared } = parts;
  let current: Loops | undefined;

  /** The decisions about every pod leave garbage, and gaps between what stays. */
  async function collectSoon(): Promise<void> {
    await clock.delay(CALM_MS, signal);
    if (!signal.aborted) context.keepHeapSmall();
  }

  const createTerm = (onBootstrapped: () => void) =>
    createLoops({
      ...shared,
      settings,
      clock,
      labelRules: labels.rules,
      loops,
      workers: config.workers,
      bootstrapMs: milliseconds(config.bootstrap.timeout),
      serviceAccountSecrets: createServiceAccountReader(client, clock),
      fetchNode: createNodeFetcher(client),
      write: createWriter(client, mayWrite, 'metadata'),
      wrongNode: { evictor: createEvictor(client, mayWrite), onWrongNode: metrics.wrongNodeFound },
      onOutcome: outcomeLog(log, metrics),
      onPlaced: metrics.podPlaced,
      onAlike: (images) => metrics.cacheAnswered('hit', images),
      onRefused: metrics.writeRefused,
      lastWriteMs,
      onUnmanagedTaints: unmanagedTaintLog(log),
      onJoinedUntainted: metrics.nodeJoinedUntainted,
      onBootstrapped(undecided) {
        void collectSoon();
        onBootstrapped();
        if (!loops.includes('nodes') || !settings().taints.manage) return;
        log.info({ stillWaiting: undecided }, 'bootstrap over: nodes are tainted from now on');
      },
    });

  const gated = createGatedPods({
    client,
    clock,
    onChange: gatedPodLog(log),
    onError: (err) => log.warn({ err }, 'pods with the scheduling gate could not be listed'),
  });

  const { daemonSets, namespaces } = parts.watches;
  const keep = createKeepWatch({
    client,
    clock,
    probes: () => keepProbes(daemonSets.store.values(), namespaces.store.get, settings()),
    onNews: keepLog(log),
  });

  /** Tries the protection of DaemonSets once the bootstrap is over, so that it does not slow down the start. */
  async function watchKeep(bootstrapped: AbortSignal, over: AbortSignal): Promise<void> {
    // In the mode observe nothing is written, so nothing has to be protected.
    if (observes || !loops.includes('daemonsets')) return;
    await clock.delay(PROBE_AT_LATEST_MS, AbortSignal.any([bootstrapped, over]));
    await keep.watch(over);
  }

  return {
    current: () => current,
    gatedElsewhere: gated.count,
    keepsDaemonSets: keep.holds,
    async run(lost, onBegin) {
      const over = AbortSignal.any([lost, ending.writes]);
      if (!loops.includes('pods')) void gated.watch(AbortSignal.any([signal, over]));
      const bootstrapped = new AbortController();
      current = createTerm(() => bootstrapped.abort());
      void watchKeep(bootstrapped.signal, AbortSignal.any([signal, over]));
      log.info({ identity }, 'leading');
      if (observes) log.info('placement.mode observe: nothing is written but Events and the Lease');
      onBegin();
      // Every write under way listens to this signal, so many listeners are not a leak.
      setMaxListeners(0, over);
      await current.run(AbortSignal.any([signal, over]), over);
      current = undefined;
    },
  };
}
