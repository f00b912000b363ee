import { createEvents, type EventRecorder } from '../../kube/events.ts';
import { createPullSecretReader, createSecretProblems } from '../registries/pull-secrets.ts';
import { createRegistries } from '../registries/registries.ts';
import { createWatches, kindsFor, type Watches } from '../watches.ts';
import type { Base } from './base.ts';
import type { Leadership } from './leadership.ts';

/** Creates the recorder of Events. It writes only while this replica leads. */
export function startEvents(
  { client, clock, end, log, metrics }: Base,
  { identity, mayWrite }: Leadership,
): EventRecorder {
  return createEvents({
    client,
    instance: identity,
    mayWrite,
    clock,
    signal: end,
    onError: (err) => log.warn({ err }, 'event not written'),
    onDrop: metrics.eventDropped,
    onDropped: (count) => log.warn({ count }, 'Events dropped: too many at once, or too many about one object'),
  });
}

/** Creates the watches that the configured controllers need. They do not run yet. */
export function startWatches({ client, clock, config, context, log, metrics, answers }: Base): Watches {
  return createWatches({
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
    onHeard(bytes) {
      answers.heard();
      context.received(bytes);
    },
  });
}

/** Creates the resolver, and the memory of pull secrets that could not be used. */
export async function startRegistries({ clock, config, files, cache, client, end, log, metrics }: Base) {
  const problems = createSecretProblems(clock, (secret, reason) =>
    log.warn({ secret, reason }, 'pull secret cannot be used'),
  );
  const registries = await createRegistries(config, files, {
    cache,
    clock,
    log,
    readPullSecrets: createPullSecretReader(client, clock),
    onNamed: metrics.registriesConfigured,
    signal: end,
    apiServer: client,
    onUnusableSecret: problems.add,
    onRequest: metrics.registryAnswered,
    onResolution: metrics.imageResolved,
    onCache: (result) => metrics.cacheAnswered(result),
    onRateLimit: metrics.rateLimitTold,
  });
  return { registries, secretProblems: problems.get };
}
