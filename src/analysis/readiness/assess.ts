import { type JsonObject, objectAt, stringAt, stringsAt } from '../../kit/json.ts';
import { settingsFor, skipTemplate } from '../../placement/eligibility.ts';
import type { ImageAnswer } from '../../placement/images.ts';
import { withoutOurs } from '../../placement/objects/asked-platform.ts';
import { hasEnded, namedImages, type PodImage } from '../../placement/objects/containers.ts';
import { readOwner } from '../../placement/objects/kinds.ts';
import type { Namespace } from '../../placement/objects/namespace.ts';
import { type Requests, requestsOf } from '../../placement/objects/requests.ts';
import {
  type Assessment,
  assessSubject,
  type ImageUser,
  type Judged,
} from '../../placement/readiness/target-verdict.ts';
import type { Settings } from '../../placement/settings.ts';
import { readWorkload, readWorkloadSubject, type Workload } from '../workloads/workload.ts';

/** The circumstances that all workloads of a report share. */
export type Circumstances = {
  /** The global settings; policies apply as in `run`. */
  readonly settings: Settings;
  /** The architectures of the cluster's nodes and the targets, sorted: what follows the cluster may go to any of them. */
  readonly architectures: readonly string[];
  readonly namespaceOf: (name: string) => Pick<Namespace, 'name' | 'labels' | 'preferred'>;
  /** The normalised names of an image, as `decide` takes them. */
  readonly namesOf: (image: string) => readonly string[];
  /** Whether what archaware leaves alone is assessed as well. */
  readonly assessesAll?: boolean;
};

/** Returns the images of a candidate that need a registry. */
export function imagesToAsk(candidate: Candidate, circumstances: Circumstances): PodImage[] {
  const asked: PodImage[] = [];
  assess(candidate, circumstances, (image) => {
    asked.push(image);
    return { kind: 'pending' };
  });
  return [...new Set(asked)];
}

/** Assesses a candidate. `answerOf`: the result of the lookup of an image; `sinceMs` in it should be infinite, as nothing is tried again. */
export function assess(
  candidate: Candidate,
  circumstances: Circumstances,
  answerOf: (image: PodImage) => ImageAnswer,
): Assessment {
  const namespace = circumstances.namespaceOf(candidate.namespace);
  const settings = settingsFor(circumstances.settings, { namespace, labels: candidate.template.labels });
  const subject = readWorkloadSubject(candidate, namespace, settings);
  const { architectures: clusterArchitectures, namesOf } = circumstances;
  const knowledge = { clusterArchitectures, namesOf, answerOf, waitedMs: Number.POSITIVE_INFINITY };
  // A daemon pod whose DaemonSet was not read stands for its template.
  const isDaemonPod = subject.skipped === 'daemon-pod';
  const skipped = isDaemonPod ? skipTemplate(candidate.template, namespace, settings) : subject.skipped;
  return assessSubject(subject, settings, knowledge, circumstances.assessesAll === true ? undefined : skipped);
}

/** Returns what is known of an image of a candidate. */
export type AnswerOf = (image: PodImage, candidate: Candidate) => ImageAnswer;

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
  if (pod !== undefined && (pod.mirror || hasEnded(pod.phase))) return undefined;
  const own = stringsAt(metadata, 'labels');
  const authored = namesNode || metadata.uid === undefined ? demands : { ...demands, nodeName: undefined };
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
  return [...namedImages(spec)].map(({ name = '', image = '', pullPolicy = '', volume }) => {
    return { name: volume === undefined ? name : `volume ${volume}`, image, pullPolicy };
  });
}
