import { type JsonObject, listAt, objectAt, stringAt, stringsAt } from '../../kit/json.ts';
import { withoutOurs } from '../../placement/objects/asked-platform.ts';
import type { PodImage } from '../../placement/objects/containers.ts';
import { type Owner, readOwner } from '../../placement/objects/pod.ts';
import { readWorkload, type Workload } from '../../placement/objects/workload.ts';
import { type Requests, requestsOf } from './requests.ts';

/** An object that creates pods, or a pod, reduced to what the report needs: the object itself may be dropped. */
export type Candidate = Pick<
  Workload,
  'kind' | 'namespace' | 'name' | 'template' | 'pod' | 'daemonSet' | 'demands' | 'spread'
> & {
  readonly uid: string;
  readonly owner: Owner | undefined;
  readonly labels: Readonly<Record<string, string>>;
  /** The containers and image volumes of the template, each with its image. */
  readonly users: readonly ImageUser[];
  readonly replicas: number;
  /** Of one pod. */
  readonly requests: Requests;
};

/** A container or an image volume that uses an image. */
type ImageUser = { readonly name: string; readonly image: string; readonly pullPolicy: string };

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

/** Returns the names of the containers and volumes that use an image of the template. */
export function usersOf({ users }: Pick<Candidate, 'users'>, { image, pullPolicy }: PodImage): string[] {
  const names = users.filter((user) => user.image === image && user.pullPolicy === pullPolicy).map(({ name }) => name);
  return [...new Set(names)];
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
