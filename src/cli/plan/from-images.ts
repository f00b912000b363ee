import type { ImageSource } from '../../controllers/image-source.ts';
import { NEVER } from '../../controllers/image-source.ts';
import type { Loops } from '../../controllers/loops/loops.ts';
import { type Decided, decidedOf } from '../../controllers/memory.ts';
import type { Watches } from '../../controllers/watches.ts';
import { type Decision, decide, standing } from '../../placement/decide.ts';
import { architecturesOf } from '../../placement/nodes/node.ts';
import { standingArchitectures, standingTemplate } from '../../placement/placing.ts';
import { readDaemonSetSubject, readPodSubject, type Subject } from '../../placement/subject.ts';

/**
 * What new pods like those of the cluster would get, by their images. The controllers' own decisions are no answer to that: they
 * say what is to be written now, which is nothing for most pods that run already. `pods`, `daemonSets`: by `namespace/name`.
 */
export type FromImages = {
  readonly pods: ReadonlyMap<string, Decided>;
  readonly daemonSets: ReadonlyMap<string, Decided>;
};

type Parts = {
  readonly watches: Watches;
  readonly loops: Loops;
  readonly images: Pick<ImageSource, 'answer' | 'namesOf'>;
  readonly serviceAccountSecrets: (namespace: string, name: string, signal: AbortSignal) => Promise<readonly string[]>;
  readonly signal: AbortSignal;
};

/**
 * Decides about each object that the controllers have decided, from its images alone. Starts the lookups that nobody has needed yet,
 * unless `isLast`. An object whose images are unknown counts as archaware placed it before.
 */
export async function decideFromImages(parts: Parts, isLast: boolean): Promise<FromImages> {
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
  return isUnknown && placed !== undefined ? standing(placed, undefined) : decision;
}
