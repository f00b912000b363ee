import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { absentArchitectureLog } from '../../config/absent.ts';
import { concernsRegistries } from '../../config/reload.ts';
import type { Config } from '../../config/schema.ts';
import { toSettings } from '../../config/settings.ts';
import { createImageSource } from '../../controllers/image-source.ts';
import type { Loops } from '../../controllers/loops/loops.ts';
import type { Watches } from '../../controllers/watches.ts';
import { milliseconds } from '../../kit/duration.ts';
import { isObject } from '../../kit/json.ts';
import type { Regarding } from '../../kube/events.ts';
import { createLease, type Leadership, leadAlone } from '../../kube/lease.ts';
import { knownImagesPath } from '../../names.ts';
import { EVERYBODY, type ImageCache } from '../../oci/cache.ts';
import { ImageError } from '../../oci/errors.ts';
import { readReference } from '../../oci/reference.ts';
import { architecturesOf, readAnswers } from '../../placement/publish/known-images.ts';
import type { Settings } from '../../placement/settings.ts';
import { checkLeaseNamespace } from '../connect.ts';
import { createPullSecretReader, createSecretProblems } from '../registries/pull-secrets.ts';
import { createRegistries } from '../registries/registries.ts';
import type { Base } from './base.ts';

/**
 * What changes while a replica runs: the settings, the label rules, the resolver of images, who leads, and the controllers of the
 * present term. This object alone owns them. Other parts ask it each time and keep no copy.
 */
export type Running = Awaited<ReturnType<typeof createRunning>>;

/**
 * Creates the object with the configuration of the start. The replica does not lead yet. Throws if the namespace of the Lease does not
 * exist, or if a file of registries or credentials cannot be read.
 */
export async function createRunning(base: Base, watches: Watches) {
  const { config, labels, log, leaseNamespace: namespace } = base;
  const identity = `${hostname()}-${randomUUID()}`;
  const { name } = config.leaderElection;
  const regarding: Regarding = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace, name, uid: '' };
  const leadership = await prepareToLead(base, identity);
  /** Only a reload replaces it. */
  let inForce = { config, settings: toSettings(config) };
  if (config.placement.publish) await readPublished(base, base.cache);
  const { registries, secretProblem } = await openRegistries(base);
  const { resolver } = registries;
  let loops: Loops | undefined;
  resolver.onSettled((canonical) => loops?.lookupEnded(canonical));
  const logAbsentOf = absentArchitectureLog(log);

  /** Logs the architectures that the configuration names and no node has. Logs nothing before all nodes are listed. */
  function logAbsent(): void {
    if (watches.notSynced().length === 0) logAbsentOf(inForce.config, watches.nodes.store.values());
  }

  return {
    ...leadership,
    identity,
    /** The object for Events that are about archaware itself. */
    regarding,
    settings: (): Settings => inForce.settings,
    labelRules: labels.rules,
    resolver,
    images: createImageSource(resolver, secretProblem),
    logAbsent,
    /** Returns the controllers of the present term; undefined between terms. */
    loops: (): Loops | undefined => loops,
    async runTerm(term: Loops, signal: AbortSignal, kill: AbortSignal, onBegin: () => void): Promise<void> {
      loops = term;
      onBegin();
      await term.run(signal, kill);
      loops = undefined;
    },
    /** Applies changed keys. If it throws, it has changed nothing. */
    async apply(next: Config, changed: readonly string[]): Promise<void> {
      const read = { config: next, settings: toSettings(next) };
      if (changed.some(concernsRegistries)) await registries.replace(next);
      inForce = read;
      log.level = next.log.level;
      logAbsent();
      loops?.settingsChanged();
    },
    labelRulesChanged: () => loops?.labelRulesChanged(),
  };
}

async function prepareToLead(base: Base, identity: string): Promise<Leadership> {
  const { config, client, clock, leaseClient, leaseNamespace: namespace, signal, end, log } = base;
  const { enabled, name, leaseDuration } = config.leaderElection;
  const cannotRelease = base.releases.fail;
  if (!enabled) return leadAlone(signal, end, () => !cannotRelease());
  await checkLeaseNamespace(client, namespace, signal);
  const durationMs = milliseconds(leaseDuration);
  function onError(err: unknown): void {
    log.warn({ err, lease: `${namespace}/${name}` }, 'lease not renewed');
    // All its connections may be dead, and nothing else waits for them.
    leaseClient.renew();
  }
  const onAnswered = base.renewConnections;
  const how = { client: leaseClient, namespace, name, identity, durationMs, clock, onError, onAnswered, cannotRelease };
  return createLease(how);
}

/** Creates the resolver, and the memory of pull secrets that could not be used. */
async function openRegistries({ clock, config, files, cache, client, end, log, metrics }: Base) {
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
    telemetry: {
      unusableSecret: problems.add,
      requested: metrics.registryAnswered,
      resolved: metrics.imageResolved,
      cached: metrics.cacheAnswered,
      rateLimited: metrics.rateLimitTold,
    },
  });
  return { registries, secretProblem: problems.get };
}

/**
 * Puts what an earlier leader published into the cache of images. So a restart asks registries only about images that are used again,
 * when their tags are due. Tags may have moved while nobody led, so each gets an age below `images.cache.tagTtl`: they are due one after
 * another.
 */
export async function readPublished(
  base: Pick<Base, 'client' | 'config' | 'leaseNamespace' | 'clock' | 'signal' | 'log'>,
  cache: ImageCache,
): Promise<void> {
  const { client, config, leaseNamespace, clock, signal, log } = base;
  const tagTtl = milliseconds(config.images.cache.tagTtl);
  try {
    const object = await client.request('get', knownImagesPath(leaseNamespace), { signal });
    for (const [image, answer] of isObject(object) ? readAnswers(object) : []) {
      const reference = readReference(image);
      // What images.overrides says is not an answer about the image.
      if (reference instanceof ImageError || answer.startsWith('!')) continue;
      const platforms = architecturesOf(answer).map((architecture) => ({ os: 'linux', architecture }));
      const found = { platforms, skipped: [], isIndex: !answer.startsWith('=') };
      const checkedAt = clock.steady() - clock.random() * tagTtl;
      cache.setTag(reference.canonical, EVERYBODY, { digest: '', found, checkedAt, source: '' });
    }
  } catch (err) {
    log.debug({ err }, 'what an earlier leader published cannot be read: registries are asked instead');
  }
}
