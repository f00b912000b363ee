import { type JsonObject, listAt, objectAt, stringAt, stringsAt } from '../../kit/json.ts';
import { withoutOurs } from '../../placement/objects/asked-platform.ts';
import { readOwner } from '../../placement/objects/kinds.ts';
import { type Requests, requestsOf } from '../../placement/objects/requests.ts';
import { readWorkload, type Workload } from '../../placement/objects/workload.ts';
import type { ImageUser, Judged } from '../../placement/readiness/target-verdict.ts';

/** An object that creates pods, or a pod, reduced to what the report needs: the object itself may be dropped. */
export type Candidate = Judged &
  Pick<Workload, 'namespace' | 'name' | 'template' | 'pod' | 'daemonSet' | 'spread'> & {
    readonly uid: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly replicas: number;
    /** Of one pod. */
    readonly requests: Requests;
  };

/** Reads a candidate; undefined for an object of another kind, and for pods and Jobs that have finished or are being deleted. */
export function readCandidate(object: JsonObject): Candidate | undefined {
  const workload = readWorkload(object);
  if (workload?.replicas === undefined) return undefined;
  const { spec, kind, namespace, name, template, pod, daemonSet, demands, namesNode, replicas } = workload;
  const metadata = objectAt(object, 'metadata');
  if (stringAt(metadata, 'deletionTimestamp') !== undefined) return undefined;
  // A mirror pod shows a file on its node; it cannot go anywhere else.
  if (pod !== undefined && (pod.mirror || pod.phase === 'Succeeded' || pod.phase === 'Failed')) return undefined;
  const own = stringsAt(metadata, 'labels');
  const authored = namesNode ? demands : { ...demands, nodeName: undefined };
  return {
    kind,
    namespace,
    name,
    template,
    pod,
    daemonSet,
    demands: pod?.written?.architectures === undefined ? authored : withoutOurs(authored),
    spread: workload.spread,
    uid: stringAt(metadata, 'uid') ?? '',
    owner: readOwner(metadata),
    labels: Object.keys(own).length > 0 ? own : template.labels,
    users: usersIn(spec),
    replicas,
    requests: requestsOf(spec),
  };
}

function usersIn(spec: JsonObject): ImageUser[] {
  const containers = ['initContainers', 'containers'].flatMap((list) => listAt(spec, list) ?? []);
  const volumes = (listAt(spec, 'volumes') ?? []).filter(({ image }) => typeof image === 'object' && image !== null);
  return [
    ...containers.map((container) => ({
      name: stringAt(container, 'name') ?? '',
      image: stringAt(container, 'image') ?? '',
      pullPolicy: stringAt(container, 'imagePullPolicy') ?? '',
    })),
    ...volumes.map((volume) => ({
      name: `volume ${stringAt(volume, 'name') ?? ''}`,
      image: stringAt(objectAt(volume, 'image'), 'reference') ?? '',
      pullPolicy: stringAt(objectAt(volume, 'image'), 'pullPolicy') ?? '',
    })),
  ];
}
