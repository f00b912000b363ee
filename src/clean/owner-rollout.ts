import { type JsonObject, numberAt, objectAt, stringAt, stringsAt } from '../kit/json.ts';
import { readDaemonSet } from '../placement/objects/daemonset.ts';

/** The annotation of a pod template by which `kubectl rollout restart` replaces all pods. */
export const RESTARTED_ANNOTATION = 'kubectl.kubernetes.io/restartedAt';

/** The kinds whose pods `clean` waits for. */
export type RolledKind = 'Deployment' | 'StatefulSet' | 'DaemonSet';

/** How far an owner is with replacing its pods, as `kubectl rollout status` judges it. */
export type OwnerRollout = {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly deleting: boolean;
  /** Why a restart would not replace all of its pods; undefined if it would. */
  readonly obstacle: string | undefined;
  /** Whether every pod is of the newest template and available. */
  readonly isWhole: boolean;
  /** The counts in words. They change with each step. */
  readonly progress: string;
  /** When it was restarted last, as the template says. */
  readonly restartedAt: string | undefined;
};

type RolloutCounts = Pick<OwnerRollout, 'obstacle' | 'isWhole' | 'progress'>;

/** Reads the state of an owner's rollout. Never throws. */
export function readOwnerRollout(kind: RolledKind, object: JsonObject): OwnerRollout {
  const metadata = objectAt(object, 'metadata');
  const template = objectAt(objectAt(object, 'spec'), 'template');
  return {
    uid: stringAt(metadata, 'uid') ?? '',
    resourceVersion: stringAt(metadata, 'resourceVersion') ?? '',
    deleting: metadata.deletionTimestamp !== undefined,
    restartedAt: stringsAt(objectAt(template, 'metadata'), 'annotations')[RESTARTED_ANNOTATION],
    ...countsOf(kind, object),
  };
}

function countsOf(kind: RolledKind, object: JsonObject): RolloutCounts {
  const [spec, status] = [objectAt(object, 'spec'), objectAt(object, 'status')];
  const count = (field: string) => numberAt(status, field) ?? 0;
  const wanted = numberAt(spec, 'replicas') ?? 1;
  const isObserved = count('observedGeneration') >= (numberAt(objectAt(object, 'metadata'), 'generation') ?? 0);
  const [replicas, updated, available] = [count('replicas'), count('updatedReplicas'), count('availableReplicas')];
  switch (kind) {
    case 'Deployment':
      return {
        obstacle: spec.paused === true ? 'its Deployment is paused' : undefined,
        isWhole: isObserved && updated >= wanted && replicas <= updated && available >= updated,
        progress: progressText(updated, wanted, available),
      };
    case 'StatefulSet': {
      const ready = count('readyReplicas');
      return {
        obstacle: statefulSetObstacle(objectAt(spec, 'updateStrategy')),
        isWhole: isObserved && updated >= wanted && ready >= wanted,
        progress: progressText(updated, wanted, ready),
      };
    }
    case 'DaemonSet': {
      const { rolledOut, updated: own, desired, available: there } = readDaemonSet(object);
      return { obstacle: undefined, isWhole: rolledOut, progress: progressText(own, desired, there) };
    }
    default:
      return kind satisfies never;
  }
}

function progressText(updated: number, wanted: number, available: number): string {
  return `${updated} of ${wanted} up to date, ${available} available`;
}

function statefulSetObstacle(strategy: JsonObject): string | undefined {
  if (stringAt(strategy, 'type') === 'OnDelete') return 'its StatefulSet replaces pods only when they are deleted';
  const partition = numberAt(objectAt(strategy, 'rollingUpdate'), 'partition') ?? 0;
  return partition > 0 ? `its StatefulSet updates only the pods from number ${partition} on` : undefined;
}
