import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { hostname } from 'node:os';
import { absentArchitectureLog } from '../app/absent-architectures.ts';
import { cannotListen } from '../app/cannot-listen.ts';
import { checkLeaseNamespace, connect } from '../app/connect.ts';
import { type Context, EXIT } from '../app/context.ts';
import { createLoops, type Loops, type LoopsOptions, until } from '../app/controllers.ts';
import { createEnding, sayFarewell } from '../app/ending.ts';
import { observeState } from '../app/gauges.ts';
import { keepHeapSmall } from '../app/heap.ts';
import { followLabelRules, openLabelRules } from '../app/label-rules/label-rules.ts';
import { leadInTurns } from '../app/lead.ts';
import { outcomeLog } from '../app/outcome-log.ts';
import { openCacheFile } from '../app/registries/cache-file.ts';
import {
  createPullSecretReader,
  createSecretProblems,
  createServiceAccountReader,
} from '../app/registries/pull-secrets.ts';
import { createRegistries, openFiles } from '../app/registries/registries.ts';
import { type ReloadingOptions, reloadOnChange } from '../app/reload.ts';
import { gatedPodLog, unmanagedTaintLog } from '../app/term-log.ts';
import { VERSION } from '../app/version.ts';
import { createNodeFetcher, createWatches, kindsFor } from '../app/watches.ts';
import { startAdmission } from '../app/webhook.ts';
import { concernsRegistries } from '../config/reload.ts';
import { toSettings } from '../config/settings.ts';
import { type GatedPodsOptions, watchGatedPods } from '../controllers/gated-pods.ts';
import { createImageSource } from '../controllers/images.ts';
import { systemClock as clock } from '../kit/clock.ts';
import { milliseconds } from '../kit/duration.ts';
import { createEvents } from '../kube/events.ts';
import { createEvictor } from '../kube/eviction.ts';
import { createLease } from '../kube/lease.ts';
import { brokenWatches, createAnswers } from '../kube/watch/watch-health.ts';
import { createWriter } from '../kube/writer.ts';
import { serveHealth } from '../observability/health.ts';
import { createLog, type Logger } from '../observability/log.ts';
import { createMetrics, type Metrics } from '../observability/metrics.ts';
import { createImageCache } from '../oci/cache/cache.ts';

/**
 * Runs the loops until the signal aborts: every replica watches, the one that holds the lease writes. Then it takes no
 * new work, ends the writes under way and releases the lease, and meanwhile goes on answering admission for a while. Throws
 * what keeps it from starting.
 */
export async function run(context: Context): Promise<number> {
  try {
    return await runToTheEnd(context);
  } catch (error) {
    // Told to end before it had started: what broke off is no failure.
    if (context.signal.aborted) return EXIT.done;
    throw error;
  }
}

async function runToTheEnd(context: Context): Promise<number> {
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
  // Ends what may go on while the last writes do: watches, look-ups, Events, the metrics.
  const end = new AbortController();
  const ending = createEnding(signal, clock);
  try {
    const identity = `${hostname()}-${randomUUID()}`;
    const { enabled, name, leaseDuration } = config.leaderElection;
    if (enabled) await checkLeaseNamespace(client, leaseNamespace, signal);
    const lease = createLease({
      client: leaseClient,
      namespace: leaseNamespace,
      name,
      identity,
      durationMs: milliseconds(leaseDuration),
      clock,
      onError: (err) => log.warn({ err, lease: `${leaseNamespace}/${name}` }, 'lease not renewed'),
    });
    const mayWrite = () => !enabled || lease.fresh();
    const events = createEvents({
      client,
      instance: identity,
      mayWrite,
      clock,
      signal: end.signal,
      onError: (err) => log.warn({ err }, 'event not written'),
      onDrop: metrics.eventDropped,
      onDropped: (count) => log.warn({ count }, 'Events dropped: too many at once, or too many about one object'),
    });
    const watches = createWatches({
      client,
      clock,
      kinds: kindsFor(config),
      onRestart(kind, reason) {
        metrics.watchRestarted(kind);
        log.debug({ kind, reason }, 'watch started again');
      },
      onTrouble: (kind, attempt, reason) =>
        log.warn({ kind, reason }, `the ${attempt} fails and is tried again; changes are not seen meanwhile`),
      onWorking: (kind) => log.info({ kind }, 'the watch works again'),
      onHeard: answers.heard,
    });
    const secretProblems = createSecretProblems(clock, (secret, reason) =>
      log.warn({ secret, reason }, 'pull secret passed over'),
    );
    const registries = await createRegistries(config, files, {
      cache,
      clock,
      log,
      readPullSecrets: createPullSecretReader(client, clock),
      onNamed: metrics.registriesConfigured,
      signal: end.signal,
      apiServer: client,
      onUnusableSecret: secretProblems.add,
      onRequest: metrics.registryAnswered,
      onResolution: metrics.imageResolved,
      onCache: metrics.cacheAnswered,
      onRateLimit: metrics.rateLimitTold,
    });
    const { resolver } = registries;
    let settings = toSettings(config);
    let loops: Loops | undefined;
    const images = createImageSource(resolver, clock, secretProblems.get);
    const regarding = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace: leaseNamespace, name, uid: '' };
    const admission = config.webhook.enabled
      ? startAdmission({
          config,
          client,
          clock,
          log,
          metrics,
          events,
          regarding,
          ownNamespace: leaseNamespace,
          mayWrite,
          hasLeader: () => (enabled ? lease.live() : !signal.aborted),
          watches,
          settings: () => settings,
          images,
          leaving: signal,
          signal: AbortSignal.any([end.signal, ending.admission]),
        })
      : undefined;
    resolver.onSettled((canonical) => loops?.imageSettled(canonical));
    const apply: ReloadingOptions['apply'] = async (next, changed) => {
      const decided = toSettings(next);
      if (changed.some(concernsRegistries)) {
        await registries.replace(next);
      }
      settings = decided;
      log.level = next.log.level;
      inForce = next;
      tellAbsent();
      loops?.settingsChanged();
    };
    let inForce = config;
    const logAbsent = absentArchitectureLog(log);
    // Before all nodes are there, none can be missed.
    const tellAbsent = () => watches.notSynced().length === 0 && logAbsent(inForce, watches.nodes.store.values());
    let gatedElsewhere = 0;
    const leads = () => loops !== undefined && mayWrite();
    await startHealth(context, metrics, log, end.signal, {
      observed: observeState({
        watches,
        resolver,
        loops: () => loops,
        leader: leads,
        certificateExpiry: () => admission?.expiry(),
        now: clock.wall,
        settings: () => settings,
        managesNodes: config.loops.includes('nodes'),
        gatedElsewhere: () => gatedElsewhere,
      }),
      // From the signal on, so that the replica's address leaves the Service while it still answers.
      notReady: () => [
        ...(signal.aborted ? ['ending'] : []),
        ...watches.notSynced(),
        ...(admission?.ready() === false ? ['certificate'] : []),
        // It gates nothing before it has seen one, so what it knows no image of would pass.
        ...(admission && enabled && !lease.introduced() ? ['leader'] : []),
        // A replica that answers admission does so with what it knows.
        ...(admission ? [] : brokenWatches(watches.health(), answers.period())),
      ],
    });

    const reloading = reloadOnChange(context, { apply, log, metrics, events, regarding, signal });
    const labelRules = await followLabelRules(labels, {
      log,
      events,
      regarding,
      signal,
      onChange: () => loops?.labelRulesChanged(),
    });
    const watching = watches.run(end.signal);
    // A kind that may not be listed ends the process: it could not do its work.
    await Promise.race([Promise.all([watches.whenSynced(), reloading]), watching, until(signal)]);
    if (!signal.aborted) await admission?.serve();
    log.info(
      { version: VERSION, server: client.host, pods: watches.pods.store.size, nodes: watches.nodes.store.size },
      'watching',
    );
    if (!signal.aborted) tellAbsent();
    keepHeapSmall();
    const options: LoopsOptions = {
      watches,
      settings: () => settings,
      labelRules: labels.rules,
      loops: config.loops,
      workers: config.workers,
      bootstrapMs: milliseconds(config.bootstrap.timeout),
      images,
      serviceAccountSecrets: createServiceAccountReader(client, clock),
      fetchNode: createNodeFetcher(client),
      write: createWriter(client, mayWrite),
      wrongNode: { evictor: createEvictor(client, mayWrite), onWrongNode: metrics.wrongNodeFound },
      events,
      clock,
      onOutcome: outcomeLog(log, metrics),
      onPlaced: metrics.podPlaced,
      onRefused: metrics.writeRefused,
      onUnmanagedTaints: unmanagedTaintLog(log),
      onJoinedUntainted: metrics.nodeJoinedUntainted,
      onBootstrapped(open) {
        if (!config.loops.includes('nodes') || !settings.taints.manage) return;
        log.info({ stillWaiting: open }, 'bootstrap over: nodes are tainted from now on');
      },
    };
    const tellGated = gatedPodLog(log);
    const gatedPods: GatedPodsOptions = {
      client,
      clock,
      onChange(keys) {
        gatedElsewhere = keys.length;
        tellGated(keys);
      },
      onError: (err) => log.warn({ err }, 'pods with the scheduling gate could not be looked for'),
    };
    const term = async (lost: AbortSignal) => {
      const over = AbortSignal.any([lost, ending.writes]);
      if (!config.loops.includes('pods')) void watchGatedPods(gatedPods, AbortSignal.any([signal, over]));
      loops = createLoops(options);
      log.info({ identity }, 'leading');
      labelRules.tell();
      // Every write under way listens to it; that is no leak.
      setMaxListeners(0, over);
      await loops.run(AbortSignal.any([signal, over]), over);
      loops = undefined;
    };
    if (enabled) await leadInTurns(lease, term, signal, () => log.warn('lease lost: another replica may lead'));
    else await term(end.signal);
    await sayFarewell({ lease: enabled ? lease : undefined, events, clock, log }, ending.all);
    if (admission !== undefined) {
      // Another replica leads by now, and pods may be gated for it.
      if (enabled) void lease.follow(ending.admission);
      await Promise.race([admission.closed(), until(ending.all)]);
    }
    await Promise.race([cacheFile?.close(), until(ending.all)]);
    log.info('ended');
    log.flush();
    return EXIT.done;
  } finally {
    ending.cancel();
    end.abort();
    await close();
  }
}

async function startHealth(
  { config }: Context,
  metrics: Metrics,
  log: Logger,
  signal: AbortSignal,
  state: { observed: Parameters<Metrics['render']>[0]; notReady: () => string[] },
): Promise<void> {
  const { address } = config.metrics;
  if (address === '') return;
  try {
    const { port } = await serveHealth(
      { address, metrics: () => metrics.render(state.observed), notReady: state.notReady },
      signal,
    );
    log.info({ port }, 'serving /metrics, /healthz and /readyz');
    log.flush();
  } catch (error) {
    throw cannotListen('metrics.address', address, error);
  }
}
