import { setTimeout as wait } from 'node:timers/promises';
import { byName } from '../../analysis/workloads/overview.ts';
import { ClusterError, type Connection } from '../../app/connect.ts';
import { createServiceAccountReader } from '../../app/registries/pull-secrets.ts';
import type { Context } from '../../app/surroundings.ts';
import { loopsThatRun } from '../../config/settings.ts';
import { createLoops, type Loops } from '../../controllers/loops/loops.ts';
import { createWatches, kindsFor, type Watches } from '../../controllers/watches.ts';
import type { Writer } from '../../kube/writer.ts';
import type { Settings } from '../../placement/settings.ts';
import type { Asking } from '../lookups/with-lookups.ts';
import { decideFromImages, type FromImages } from './from-images.ts';
import type { Plan } from './plan-shape.ts';

/** The part of the cluster to read, and the rules for labels. */
type Reading = Required<Pick<Parameters<typeof createWatches>[0], 'scope' | 'onPod'>> &
  Pick<Parameters<typeof createLoops>[0], 'labelRules'> & {
    /** Whether the nodes may be listed. */
    readonly knowsNodes: boolean;
  };

/**
 * Runs the controllers with a writer that only records, until they have decided everything and every image was looked up. Throws the
 * first error of a controller.
 */
export async function decideAll(
  { config, clock, signal: interrupt }: Context,
  settings: Settings,
  { scope, onPod, labelRules, knowsNodes }: Reading,
  { cluster: { client }, resolver, images, progress, signal, end }: Asking<Connection>,
): Promise<{
  readonly changes: Plan['changes'];
  readonly watches: Watches;
  readonly loops: Loops;
  readonly fromImages: FromImages;
}> {
  // Recorded by object: an object may be reconciled twice, but `run` would write it once.
  const recorded = new Map<string, Plan['changes'][number]>();
  const record: Writer = async ({ kind, namespace, name, action }, patch) => {
    const change = { kind, ...(namespace === undefined ? {} : { namespace }), name, action, patch };
    recorded.set(JSON.stringify([kind, namespace, name]), change);
    return { kind: 'recorded' };
  };
  const watches = createWatches({
    client,
    clock,
    kinds: new Set([...kindsFor(config)].filter((kind) => knowsNodes || kind !== 'nodes')),
    scope,
    onPod,
    refusedMs: 0,
  });
  const serviceAccountSecrets = createServiceAccountReader(client, clock);
  let failure: unknown;
  const loops = createLoops({
    watches,
    settings: () => settings,
    labelRules,
    loops: loopsThatRun(config),
    workers: config.workers,
    bootstrapMs: undefined,
    images,
    serviceAccountSecrets,
    write: record,
    events: { emit: () => false },
    clock,
    telemetry: {
      outcome(_controller, _key, _seconds, result) {
        if (result.outcome === 'error') failure ??= result.error;
      },
    },
  });
  resolver.onSettled(loops.lookupEnded);
  const watching = watches.run(signal);
  await Promise.race([watches.whenSynced(), watching]);
  if (scope.namespace !== undefined && watches.namespaces.store.get(scope.namespace) === undefined) {
    throw new ClusterError(`namespace ${scope.namespace} does not exist`);
  }
  const running = loops.run(signal, signal);
  const lookedUp = async () => {
    while (!signal.aborted && failure === undefined && !(loops.idle() && resolver.pending() === 0)) {
      progress.show('images to look up', resolver.pending());
      await wait(10);
    }
  };
  await lookedUp();
  const deciding = { watches, loops, images, serviceAccountSecrets, signal };
  await decideFromImages(deciding, false);
  await lookedUp();
  const fromImages = await decideFromImages(deciding, true);
  progress.end();
  end();
  await running;
  if (failure !== undefined) throw failure;
  interrupt.throwIfAborted();
  return { changes: [...recorded.values()].sort(byName), watches, loops, fromImages };
}
