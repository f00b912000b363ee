import { type JsonObject, listAt, objectAt } from '../../src/kit/json.ts';
import {
  type AdmissionDecision,
  type AdmissionInput,
  admitPod,
  readAdmitted,
} from '../../src/placement/admission/pod.ts';
import type { ImageAnswer } from '../../src/placement/images.ts';
import type { Settings } from '../../src/placement/settings.ts';
import { jsonPatch } from '../simulator/objects/patch.ts';
import { shown } from './affinities.ts';
import { input, known } from './objects.ts';

export const GATE = 'archaware.dev/architecture';
export const MANAGED = 'archaware.dev/managed';

export type Circumstances = {
  readonly answers?: Readonly<Record<string, ImageAnswer>>;
  readonly settings?: Partial<Settings>;
  readonly namespace?: Partial<AdmissionInput['namespace']>;
  readonly mayGate?: boolean;
  readonly withdrawn?: AdmissionInput['withdrawn'];
  readonly clusterArchitectures?: readonly string[];
};

/** A pod as the API server sends it for review, with one container for each image. */
export function pod(spec: JsonObject = {}, metadata: JsonObject = {}, images: readonly string[] = ['a']): JsonObject {
  const containers = images.map((image, index) => ({ name: `c${index}`, image, imagePullPolicy: 'IfNotPresent' }));
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', ...metadata }, spec: { containers, ...spec } };
}

/** The pod with another container. */
export function injected(object: JsonObject, image: string): JsonObject {
  const spec = objectAt(object, 'spec');
  const containers = [...(listAt(spec, 'containers') ?? []), { name: `sidecar-${image}`, image }];
  return { ...object, spec: { ...spec, containers } };
}

/** Admits a pod. By default its images are for amd64 and arm64, and it may be gated. */
export function admit(object: JsonObject, given: Circumstances = {}): AdmissionDecision {
  const all = admissionOf(object, given);
  return admitPod(readAdmitted(all), all);
}

/** A pod and what is known beside it. */
export function admissionOf(object: JsonObject, given: Circumstances = {}): AdmissionInput {
  const { answers = { a: known('linux/amd64,linux/arm64') }, settings = {}, namespace = {} } = given;
  const { settings: all, clusterArchitectures, namesOf, answerOf } = input(answers, { settings });
  return {
    object,
    settings: all,
    clusterArchitectures: given.clusterArchitectures ?? clusterArchitectures,
    namesOf,
    answerOf,
    namespace: { name: 'shop', labels: {}, preferred: undefined, ...namespace },
    mayGate: given.mayGate ?? true,
    withdrawn: given.withdrawn ?? [],
    ownNamespace: 'archaware',
  };
}

/** The pod after the API server has applied an answer. */
export function applied(object: JsonObject, admission: AdmissionDecision): JsonObject {
  return 'patch' in admission ? jsonPatch({ ...object }, JSON.stringify(admission.patch)) : object;
}

/** The decision, and the pod after it. */
export function review(
  object: JsonObject,
  given: Circumstances = {},
): { kind: AdmissionDecision['kind']; after: JsonObject } {
  const admission = admit(object, given);
  return { kind: admission.kind, after: applied(object, admission) };
}

/** A pod in one line: `tolerates amd64; affinity zone In a; gates x; notes archaware.dev/managed`. */
export function placement(object: JsonObject): string {
  const spec = objectAt(object, 'spec');
  const tolerations = (listAt(spec, 'tolerations') ?? []).map(({ key, operator, value }) =>
    operator !== 'Equal' ? String(key ?? '*') : key === 'supported-arch' ? String(value) : `${key}=${value}`,
  );
  const gates = (listAt(spec, 'schedulingGates') ?? []).map(({ name }) => String(name));
  const notes = Object.keys(objectAt(objectAt(object, 'metadata'), 'annotations'));
  const parts: [name: string, text: string][] = [
    ['tolerates', tolerations.join()],
    ['affinity', shown(spec)],
    ['gates', gates.join()],
    ['notes', notes.join()],
  ];
  return parts.flatMap(([name, text]) => (text === '' ? [] : `${name} ${text}`)).join('; ');
}
