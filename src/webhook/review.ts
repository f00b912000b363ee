import type { Clock } from '../kit/clock.ts';
import { isObject, type JsonObject, listAt, objectAt, stringAt } from '../kit/json.ts';
import type { Operation } from '../kit/json-patch.ts';
import { printable } from '../kit/printable.ts';
import { admitDaemonSet } from '../placement/admission/daemonset.ts';
import { admitJob } from '../placement/admission/job.ts';
import { type AdmissionDecision, type AdmissionInput, admitPod } from '../placement/admission/pod.ts';
import { warningsFor } from '../placement/admission/warnings.ts';
import type { ImageAnswer } from '../placement/images.ts';
import type { PodImage } from '../placement/objects/containers.ts';
import { templateIn } from '../placement/objects/kinds.ts';
import type { Namespace } from '../placement/objects/namespace.ts';
import { readPullSecrets } from '../placement/objects/pod.ts';
import type { PlacedPart } from '../placement/refused-parts.ts';
import type { Settings } from '../placement/settings.ts';
import { RequestError, type Reviewed } from './body.ts';
import { createRemembering, type ReviewVerdict } from './remembered.ts';

export type ReviewerOptions = {
  readonly settings: () => Settings;
  readonly namespaceOf: (name: string) => Namespace | undefined;
  readonly clusterArchitectures: () => readonly string[];
  /** Returns the taints that nodes have, as `key:effect`. */
  readonly liveTaints: () => ReadonlySet<string>;
  readonly namesOf: (image: string) => readonly string[];
  /** Answers from memory. An unknown image is looked up for later reviews; `mayStart` is called before and may prevent it. */
  readonly answerOf: (
    image: PodImage,
    namespace: string,
    pullSecrets: readonly string[],
    mayStart: () => boolean,
  ) => ImageAnswer;
  /** Whether a review may start one more lookup for a namespace. A `true` is counted against the namespace's allowance. */
  readonly mayLookUp: (namespace: string) => boolean;
  /** Whether a live leader is there that releases gated pods. */
  readonly mayGate: () => boolean;
  /** Returns the parts that the API server refuses in pods of the owner with this uid. */
  readonly refused: (namespace: string, owner: string) => readonly PlacedPart[];
  readonly ownNamespace: string;
  /** Whether authors are warned. */
  readonly warns: boolean;
  /** Whether pods get a label with what was decided; default: no. */
  readonly labels?: boolean;
  readonly clock: Pick<Clock, 'monotonic'>;
};

const API_VERSION = 'admission.k8s.io/v1';
const KIND = 'AdmissionReview';
/** The beginning of every answer, up to the uid. */
const HEAD = `{"apiVersion":"${API_VERSION}","kind":"${KIND}","response":{"uid":`;
/** How many lookups one review starts at most. The API server may still reject the object; if not, the controller starts the others. */
const MOST_ASKED = 64;
const MESSAGE_BYTES = 4096;
const UNCHANGED = verdict('unchanged', { allowed: true });

/**
 * Creates the function that answers an AdmissionReview of `admission.k8s.io/v1`, from memory only. It throws a RequestError for
 * anything else. Objects of other kinds and other operations are allowed unchanged.
 */
export function createReviewer(options: ReviewerOptions): (body: unknown) => Reviewed {
  const judgePod = createRemembering((pod, knowledge) => verdictOn(admitPod(pod, knowledge)), options.clock);
  return (body) => {
    const { uid, request } = readRequest(body);
    const { outcome, fields } = judge(request, options, judgePod);
    const warnings = outcome === 'rejected' || !options.warns ? [] : warningsOn(request, options);
    const warned = warnings.length === 0 ? '' : `"warnings":${JSON.stringify(warnings)},`;
    return { outcome, text: `${HEAD}${JSON.stringify(uid)},${warned}${fields}}` };
  };
}

function verdict(outcome: ReviewVerdict['outcome'], response: JsonObject): ReviewVerdict {
  return { outcome, fields: JSON.stringify(response).slice(1) };
}

function verdictOn(admission: AdmissionDecision): ReviewVerdict {
  switch (admission.kind) {
    case 'unchanged':
      return UNCHANGED;
    case 'patched':
    case 'gated':
      return verdict(admission.kind, { allowed: true, ...patchOf(admission.patch) });
    case 'rejected': {
      const message = printable(admission.message, MESSAGE_BYTES);
      return verdict('rejected', { allowed: false, status: { code: 403, reason: 'Forbidden', message } });
    }
    default:
      return admission satisfies never;
  }
}

function readRequest(body: unknown): { uid: string; request: JsonObject } {
  if (!isObject(body)) throw new RequestError(400, `the body: expected an ${KIND} of ${API_VERSION}`);
  for (const [field, expected] of [
    ['apiVersion', API_VERSION],
    ['kind', KIND],
  ] as const) {
    if (body[field] !== expected) {
      throw new RequestError(400, `${field}: got ${shown(body[field])}, expected ${JSON.stringify(expected)}`);
    }
  }
  if (!isObject(body.request)) throw new RequestError(400, `request: got ${shown(body.request)}, expected an object`);
  const uid = stringAt(body.request, 'uid') ?? '';
  if (uid === '') throw new RequestError(400, `request.uid: got ${shown(body.request.uid)}, expected a text`);
  return { uid, request: body.request };
}

function shown(value: unknown): string {
  if (isObject(value)) return 'an object';
  return Array.isArray(value) ? 'a list' : printable(JSON.stringify(value) ?? 'nothing', 80);
}

function judge(
  request: JsonObject,
  options: ReviewerOptions,
  judgePod: (input: AdmissionInput) => ReviewVerdict,
): ReviewVerdict {
  const kind = objectAt(request, 'resource');
  const [group, version, resource] = [stringAt(kind, 'group'), stringAt(kind, 'version'), stringAt(kind, 'resource')];
  const operation = stringAt(request, 'operation');
  if ((stringAt(request, 'subResource') ?? '') !== '') return UNCHANGED;
  const name = `${group || 'core'}/${version}/${resource} ${operation}`;
  switch (name) {
    case 'core/v1/pods CREATE':
      return judgePod(
        // A spread would copy field by field, for each review.
        Object.assign(commonOf(request, options), {
          object: objectOf(request, 'object'),
          mayGate: options.mayGate(),
          withdrawn: withdrawnFrom(request, options),
          ownNamespace: options.ownNamespace,
          isLabelled: options.labels === true,
        }),
      );
    case 'apps/v1/daemonsets CREATE':
    case 'apps/v1/daemonsets UPDATE': {
      const patch = admitDaemonSet({
        ...commonOf(request, options),
        object: objectOf(request, 'object'),
        before: operation === 'UPDATE' ? objectOf(request, 'oldObject') : undefined,
        writer: stringAt(objectAt(request, 'options'), 'fieldManager'),
        liveTaints: options.liveTaints(),
      });
      return verdictOn(patch.length === 0 ? { kind: 'unchanged' } : { kind: 'patched', patch });
    }
    case 'batch/v1/jobs CREATE': {
      const patch = admitJob({ ...commonOf(request, options), object: objectOf(request, 'object') });
      return verdictOn(patch.length === 0 ? { kind: 'unchanged' } : { kind: 'patched', patch });
    }
    default:
      return UNCHANGED;
  }
}

/** The kinds whose authors are warned, by their resource. */
const WARNED: Readonly<Record<string, string>> = {
  'core/v1/pods': 'Pod',
  'apps/v1/deployments': 'Deployment',
  'apps/v1/statefulsets': 'StatefulSet',
  'apps/v1/daemonsets': 'DaemonSet',
  'batch/v1/jobs': 'Job',
  'batch/v1/cronjobs': 'CronJob',
};

/** Returns the warnings for the author of an object. Nothing is looked up for them. */
function warningsOn(request: JsonObject, options: ReviewerOptions): string[] {
  const { group, version, resource } = objectAt(request, 'resource');
  const kind = WARNED[`${group || 'core'}/${version}/${resource}`];
  const operation = stringAt(request, 'operation');
  if (kind === undefined || stringAt(request, 'subResource')) return [];
  if (operation !== 'CREATE' && operation !== 'UPDATE') return [];
  const object = objectOf(request, 'object');
  const metadata = objectAt(object, 'metadata');
  // A controller made it of an object whose author was warned.
  if (listAt(metadata, 'ownerReferences')?.some(({ controller }) => controller === true)) return [];
  const before = operation === 'UPDATE' ? templateIn(kind, objectOf(request, 'oldObject')) : undefined;
  const template = templateIn(kind, object);
  const common = commonOf(request, options, objectAt(template, 'spec'), () => false);
  return warningsFor({ ...common, metadata, template, before });
}

/** Returns the parts to leave out of a pod, because the API server refused pods of the same owner for them. */
function withdrawnFrom(request: JsonObject, { settings, refused }: ReviewerOptions): readonly PlacedPart[] {
  if (settings().refused === 'keep') return [];
  const owners = listAt(objectAt(objectOf(request, 'object'), 'metadata'), 'ownerReferences') ?? [];
  const uid = stringAt(owners.find(({ controller }) => controller === true) ?? {}, 'uid');
  return uid === undefined ? [] : refused(stringAt(request, 'namespace') ?? '', uid);
}

function commonOf(
  request: JsonObject,
  options: ReviewerOptions,
  podSpec = podSpecOf(request),
  mayStart = limitOf(request, options),
) {
  const name = stringAt(request, 'namespace') ?? '';
  const pullSecrets = readPullSecrets(podSpec);
  return {
    settings: options.settings(),
    // The watch may not show a new namespace yet. It is then treated as a namespace without labels.
    namespace: options.namespaceOf(name) ?? { name, labels: {}, preferred: undefined },
    clusterArchitectures: options.clusterArchitectures(),
    namesOf: options.namesOf,
    answerOf: (image: PodImage) => options.answerOf(image, name, pullSecrets, mayStart),
  };
}

function podSpecOf(request: JsonObject): JsonObject {
  const spec = objectAt(objectOf(request, 'object'), 'spec');
  return isObject(spec.template) ? objectAt(spec.template, 'spec') : spec;
}

/** Returns the function that is called before a lookup is started. */
function limitOf(request: JsonObject, { mayLookUp }: ReviewerOptions): () => boolean {
  let left = request.dryRun === true ? 0 : MOST_ASKED;
  return () => left-- > 0 && mayLookUp(stringAt(request, 'namespace') ?? '');
}

function objectOf(request: JsonObject, field: 'object' | 'oldObject'): JsonObject {
  const object = request[field];
  if (isObject(object)) return object;
  throw new RequestError(400, `request.${field}: got ${shown(object)}, expected an object`);
}

function patchOf(patch: readonly Operation[]): JsonObject {
  return { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') };
}
