import { setTimeout as wait } from 'node:timers/promises';
import { byName } from '../../analysis/workloads/overview.ts';
import { ClusterError, type Connection } from '../../app/connect.ts';
import { createServiceAccountReader } from '../../app/registries/pull-secrets.ts';
import type { Context } from '../../app/surroundings.ts';
import { loopsThatRun } from '../../config/settings.ts';
import { NEVER } from '../../controllers/image-source.ts';
import { createLoops, type Loops } from '../../controllers/loops/loops.ts';
import { type Decided, decidedOf } from '../../controllers/memory.ts';
import { createWatches, kindsFor } from '../../controllers/watches.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { find } from '../../kube/read.ts';
import { pathOf, type Writer } from '../../kube/writer.ts';
import { type Decision, decide, standing } from '../../placement/decide.ts';
import { architecturesOf } from '../../placement/nodes/node.ts';
import { objectName } from '../../placement/objects/kinds.ts';
import { type Namespace, readNamespace } from '../../placement/objects/namespace.ts';
import { withBoundedLabels } from '../../placement/objects/too-large.ts';
import { standingArchitectures, standingTemplate } from '../../placement/placing.ts';
import type { Settings } from '../../placement/settings.ts';
import { readDaemonSetSubject, readPodSubject, type Subject } from '../../placement/subject.ts';
import type { Asking } from '../lookups/with-lookups.ts';
import { nameOf } from '../output.ts';
import type { Plan } from './plan-shape.ts';

type PlannedLoops = Parameters<typeof createLoops>[0];

/** The part of the cluster to read, and the rules for labels. */
type PlanReading = Required<Pick<Parameters<typeof createWatches>[0], 'scope' | 'onPod'>> &
  Pick<PlannedLoops, 'labelRules'> & {
    /** Whether the nodes may be listed. */
    readonly knowsNodes: boolean;
  };

/** What the controllers would write, what they have seen and decided, and what new pods would get. */
export type DecidedAll = Awaited<ReturnType<typeof decideAll>>;

/**
 * Runs the controllers with a writer that only records, until they have decided everything and every image was looked up. Throws the
 * first error of a controller.
 */
export async function decideAll(
  { config, clock, signal: interrupt }: Context,
  settings: Settings,
  { scope, onPod, labelRules, knowsNodes }: PlanReading,
  { cluster: { client }, resolver, images, progress, signal, end }: Asking<Connection>,
) {
  // Recorded by object: an object may be reconciled twice, but `run` would write it once.
  const recorded = new Map<string, Plan['changes'][number]>();
  const record: Writer = async ({ action, ...target }, patch) => {
    const named = objectName(target);
    recorded.set(nameOf(named), { ...named, action, patch });
    return { kind: 'recorded' };
  };
  // With the rights of one namespace alone, it can be got and not listed.
  const home = scope.namespace === undefined ? undefined : await homeOf(client, scope.namespace, signal);
  const isRead = (kind: string) => (kind === 'nodes' ? knowsNodes : kind !== 'namespaces' || home === undefined);
  const kinds = new Set([...kindsFor(config)].filter(isRead));
  const watches = createWatches({ client, clock, kinds, scope, onPod, refusedMs: 0 });
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
  if (home !== undefined) watches.namespaces.store.put(home.name, home);
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

async function homeOf(client: ApiClient, name: string, signal: AbortSignal): Promise<Namespace> {
  const object = await find(client, pathOf({ kind: 'Namespace', name: encodeURIComponent(name) }), signal);
  if (object === undefined) throw new ClusterError(`namespace ${name} does not exist`);
  return withBoundedLabels(readNamespace(object));
}

/**
 * What new pods like those of the cluster would get, by their images. The controllers' own decisions are no answer to that: they
 * say what is to be written now, which is nothing for most pods that run already. `pods`, `daemonSets`: by `namespace/name`.
 */
export type FromImages = {
  readonly pods: ReadonlyMap<string, Decided>;
  readonly daemonSets: ReadonlyMap<string, Decided>;
};

type PlanParts = Pick<PlannedLoops, 'watches' | 'images' | 'serviceAccountSecrets'> & {
  readonly loops: Loops;
  readonly signal: AbortSignal;
};

/**
 * Decides about each object that the controllers have decided, from its images alone. Starts the lookups that nobody has needed yet,
 * unless `isLast`. An object whose images are unknown counts as archaware placed it before.
 */
async function decideFromImages(parts: PlanParts, isLast: boolean): Promise<FromImages> {
  const { watches, loops, images, serviceAccountSecrets, signal } = parts;
  const clusterArchitectures = architecturesOf(watches.nodes.store.values());
  const fromImages = (subject: Subject, secrets: readonly string[]) =>
    decide(subject, {
      clusterArchitectures,
      namesOf: images.namesOf,
      answerOf: (image) => images.answer(image, subject.namespace, secrets, isLast ? NEVER : undefined),
      waitedMs: 0,
    });
  const pods = new Map<string, Decided>();
  for (const [key, decided] of decidedOf(loops.podStates)) {
    const pod = watches.pods.store.get(key);
    const namespace = pod && watches.namespaces.store.get(pod.namespace);
    if (pod === undefined || namespace === undefined || decided.decision.kind === 'skip') pods.set(key, decided);
    else {
      const subject = readPodSubject(pod, namespace, decided.settings);
      const placed = standingArchitectures(subject, pod.written, images.namesOf);
      pods.set(key, { ...decided, decision: orPlaced(fromImages(subject, pod.pullSecrets), placed) });
    }
  }
  const daemonSets = new Map<string, Decided>();
  for (const [key, decided] of decidedOf(loops.daemonSetStates)) {
    const daemonSet = watches.daemonSets.store.get(key);
    const namespace = daemonSet && watches.namespaces.store.get(daemonSet.namespace);
    if (daemonSet === undefined || namespace === undefined || decided.decision.kind === 'skip')
      daemonSets.set(key, decided);
    else {
      const { template, recorded } = daemonSet;
      const subject = readDaemonSetSubject(daemonSet, namespace, decided.settings);
      const own = template.pullSecrets;
      const secrets =
        own.length > 0 ? own : await serviceAccountSecrets(namespace.name, template.serviceAccountName, signal);
      const placed = standingTemplate(subject, recorded, images.namesOf);
      daemonSets.set(key, { ...decided, decision: orPlaced(fromImages(subject, secrets), placed) });
    }
  }
  return { pods, daemonSets };
}

function orPlaced(decision: Decision, placed: readonly string[] | undefined): Decision {
  const isUnknown = decision.kind === 'wait' || (decision.kind === 'place' && decision.unknown.length > 0);
  // What was placed may have been a guess, so the images stay among the unknown ones.
  return isUnknown && placed !== undefined ? standing(placed, { failed: decision.failed, unknown: [] }) : decision;
}
