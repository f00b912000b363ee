import { type JsonObject, listAt, objectAt, stringAt } from '../../kit/json.ts';
import type { NarrowedImage } from '../images.ts';
import { readOwner } from '../objects/pod.ts';
import type { Candidate } from '../readiness/candidate.ts';

/** A workload with ready pods on an architecture that an image of its newest template lacks. */
export type Stranded = {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly architecture: string;
  /** The ready pods on nodes of the architecture. */
  readonly pods: number;
  /** The images of the newest template that lack it, as the template writes them. */
  readonly images: readonly string[];
};

type Counts = ReadonlyMap<string, number>;

/** Counts the ready pods of each workload by the architecture of their nodes. */
export type ReadyPods = {
  /** Takes a pod, or an object between pods and their workload (a ReplicaSet, a Job), in any order. Others are passed over. */
  add(object: JsonObject): void;
  /** Returns a function that gives the number of ready pods of a workload by architecture. */
  counted(): (workload: Pick<Candidate, 'namespace' | 'uid'>) => Counts;
};

/** Creates an empty count. `architectureOf`: of a node by its name; undefined if it is not known. */
export function createReadyPods(architectureOf: (node: string) => string | undefined): ReadyPods {
  /** By what controls the pods, then by architecture. */
  const byHolder = new Map<string, Map<string, number>>();
  /** What controls ReplicaSets and Jobs. */
  const above = new Map<string, string>();
  const seen = new Set<string>();
  return {
    add(object) {
      const metadata = objectAt(object, 'metadata');
      const owner = readOwner(metadata);
      if (owner === undefined) return;
      // Whoever creates an object writes its owner reference: only an owner in the same namespace counts.
      const namespace = stringAt(metadata, 'namespace') ?? '';
      const uid = stringAt(metadata, 'uid') ?? '';
      const holder = keyOf(namespace, owner.uid);
      if (object.kind === 'ReplicaSet' || object.kind === 'Job') above.set(keyOf(namespace, uid), holder);
      if (object.kind !== 'Pod' || !isReady(object)) return;
      const architecture = architectureOf(stringAt(objectAt(object, 'spec'), 'nodeName') ?? '');
      // A list whose pages expired is read again.
      if (architecture === undefined || seen.has(uid)) return;
      seen.add(uid);
      addTo(byHolder, holder, architecture, 1);
    },
    counted() {
      const byTop = new Map<string, Map<string, number>>();
      for (const [holder, counts] of byHolder) {
        for (const [name, pods] of counts) addTo(byTop, above.get(holder) ?? holder, name, pods);
      }
      return ({ namespace, uid }) => byTop.get(keyOf(namespace, uid)) ?? new Map();
    },
  };
}

/**
 * Returns the architectures with ready pods of a workload that an image of its newest template lacks. `narrowed`: what is known of
 * the images; empty for what archaware leaves alone, and where an annotation states the architectures.
 */
export function strandedOf(
  { kind, namespace, name }: Pick<Stranded, 'kind' | 'namespace' | 'name'>,
  narrowed: readonly NarrowedImage[],
  pods: Counts,
): Stranded[] {
  return [...pods].sort().flatMap(([architecture, count]) => {
    const lacking = narrowed.filter(({ said }) => said.kind === 'set' && !said.architectures.includes(architecture));
    const images = [...new Set(lacking.map(({ image }) => image.image))];
    return images.length === 0 ? [] : [{ kind, namespace, name, architecture, pods: count, images }];
  });
}

function isReady(pod: JsonObject): boolean {
  if (stringAt(objectAt(pod, 'metadata'), 'deletionTimestamp') !== undefined) return false;
  const conditions = listAt(objectAt(pod, 'status'), 'conditions') ?? [];
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
}

function keyOf(namespace: string, uid: string): string {
  return `${namespace}/${uid}`;
}

function addTo(counts: Map<string, Map<string, number>>, key: string, architecture: string, pods: number): void {
  const of = counts.get(key) ?? new Map<string, number>();
  counts.set(key, of.set(architecture, (of.get(architecture) ?? 0) + pods));
}
