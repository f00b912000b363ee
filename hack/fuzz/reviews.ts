import fc from 'fast-check';
import { systemClock } from '../../src/kit/clock.ts';
import { objectAt } from '../../src/kit/json.ts';
import {
  ARCHITECTURE_GATE,
  ARCHITECTURES_ANNOTATION,
  IGNORE_LABEL,
  MANAGED_ANNOTATION,
  PREFERRED,
  TOLERATIONS_ANNOTATION,
} from '../../src/names.ts';
import type { ImageAnswer } from '../../src/placement/images.ts';
import { RequestError, type Reviewed } from '../../src/webhook/body.ts';
import { createReviewer } from '../../src/webhook/review.ts';
import { settings } from '../../test/placement/objects.ts';
import { anyPod } from '../../test/placement/random-pods.ts';
import { isObject, type JsonObject } from '../../test/simulator/json.ts';
import { readNotation } from './notation.ts';
import { checkReviewed, isPrintable } from './review-rules.ts';
import { must, type Target } from './target.ts';

/**
 * Milliseconds of processor time for a review of 3 MiB, well below the two seconds after which the API server goes on
 * without it.
 */
const SLOW = 1000;

const platforms = (...names: string[]): ImageAnswer => ({
  kind: 'known',
  platforms: names.map((architecture) => ({ os: 'linux', architecture })),
});
const failed: ImageAnswer = {
  kind: 'failed',
  code: 'denied',
  message: 'no',
  registry: 'r',
  sinceMs: 1e6,
  retryInMs: 1000,
};
const ANSWERS: Readonly<Record<string, ImageAnswer>> = {
  both: platforms('amd64', 'arm64'),
  amd64: platforms('amd64'),
  arm64: platforms('arm64'),
  several: { kind: 'known', platforms: ['linux', 'windows'].map((os) => ({ os, architecture: 'amd64' })) },
  single: { kind: 'known', platforms: [{ os: 'linux', architecture: 's390x' }], isIndex: false },
  wasm: { kind: 'known', platforms: [{ os: 'wasi', architecture: 'wasm' }], isIndex: true },
  none: platforms(),
  pending: { kind: 'pending' },
  failed,
};

/** The settings under which every input is reviewed. */
const REVIEWERS: readonly ((body: unknown) => Reviewed)[] = [
  reviewer({}, false),
  reviewer({ mode: 'both', preferred: { arm64: 75 }, matchNodeLabels: ['pool'], noCommonArchitecture: 'reject' }, true),
  reviewer({ mode: 'affinity', schedulable: ['amd64', 'arm64'], unresolvable: 'wait' }, true),
  reviewer({ mode: 'both', noCommonArchitecture: 'release', unresolvable: 'fallback', fallback: ['amd64'] }, true),
];

function reviewer(given: Parameters<typeof settings>[0], mayGate: boolean) {
  return createReviewer({
    settings: () => settings(given),
    namespaceOf: (name) => ({
      name,
      uid: name,
      resourceVersion: '1',
      labels: {},
      preferred: name === 'shop' ? 'arm64=60,amd64=20' : 'nonsense',
    }),
    clusterArchitectures: () => ['amd64', 'arm64'],
    liveTaints: () => new Set(['supported-arch:NoSchedule']),
    namesOf: (image) => [image],
    answerOf: ({ image }) => (Object.hasOwn(ANSWERS, image) ? ANSWERS[image] : undefined) ?? { kind: 'pending' },
    mayLookUp: () => true,
    mayGate: () => mayGate,
    refused: (_, owner) => (owner.length % 2 === 0 ? ['tolerations'] : ['affinity', 'gate']),
    ownNamespace: 'archaware',
    warns: true,
    clock: systemClock,
  });
}

/** AdmissionReviews in the notation of {@link readNotation}, under several settings. */
export const reviews: Target = {
  name: 'reviews',
  get valid() {
    return reviewText;
  },
  pieces: [
    ...['{', '}', '[', ']', ',', ':', '"', '"×9999"', 'null', '0', '-1', '""', '"a":', '{"text":', '{},', '[],'],
    ...['{"key":"a"},', '{"name":"c","image":"both"},', '{"matchExpressions":[]},', '"__proto__":{},', '0,', '"k",'],
  ],
  get openings() {
    const object =
      '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE",';
    const pod = `${object}"resource":{"group":"","version":"v1","resource":"pods"},"object":{"metadata":{},"spec":{`;
    const containers = '"containers":[{"name":"c","image":"both"}],';
    const affinity = `${pod}${containers}"affinity":{"nodeAffinity":{"`;
    return [
      object,
      `${object}"object":`,
      `${pod}"containers":[`,
      `${pod}${containers}"tolerations":[`,
      `${pod}${containers}"schedulingGates":[`,
      `${pod}${containers}"nodeSelector":{`,
      `${affinity}requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[`,
      `${affinity}preferredDuringSchedulingIgnoredDuringExecution":[`,
      `${affinity}`,
    ];
  },
  run(text) {
    const body = readNotation(text);
    if (body === undefined) return false;
    // All of them run, even if the first one refuses: a refusal does not depend on settings.
    return REVIEWERS.map((review) => checkOne(body, review)).some((taken) => taken);
  },
};

function checkOne(body: unknown, review: (body: unknown) => Reviewed): boolean {
  try {
    const reviewed = inTime(() => review(body));
    must(isObject(body), 'only an object is taken');
    checkReviewed(body, reviewed, review);
    return true;
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    must(error.status >= 400 && error.status < 500, 'what is refused is the request');
    must(error.message !== '' && isPrintable(error.message), 'why it is refused can be shown');
    return false;
  }
}

/** Runs work and limits its processor time, which other programs do not affect. */
function inTime<T>(work: () => T): T {
  const before = process.cpuUsage();
  const result = work();
  const { user, system } = process.cpuUsage(before);
  must((user + system) / 1000 < SLOW, `a review takes less than ${SLOW} ms`);
  return result;
}

const odd = fc.oneof(fc.jsonValue(), fc.constantFrom('×3', '__proto__', 'x'.repeat(70), '', 'a\nb'));
const list = (item: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> => fc.array(item, { maxLength: 3 });
const architecture = fc.constantFrom('amd64', 'arm64', 's390x');
const key = fc.constantFrom('kubernetes.io/arch', 'kubernetes.io/os', 'pool');
const ours = fc.record({
  key: fc.constant('supported-arch'),
  operator: fc.constant('Equal'),
  value: architecture,
  effect: fc.constant('NoSchedule'),
});
const managed = fc.record(
  {
    tolerations: list(ours),
    required: list(
      fc.record(
        { term: fc.integer({ min: 0, max: 3 }), key, operator: fc.constant('In'), values: list(architecture) },
        { requiredKeys: ['key', 'operator', 'values'] },
      ),
    ),
    preferred: list(fc.record({ architecture, weight: fc.integer({ min: 1, max: 100 }) })),
  },
  { requiredKeys: [] },
);
/** What the pods of random-pods.ts do not have. */
const metadata = fc.record(
  {
    labels: fc.record(
      {
        pool: fc.constantFrom('a', ''),
        [PREFERRED]: fc.constantFrom('arm64', 'x'),
        [IGNORE_LABEL]: fc.constant('true'),
      },
      { requiredKeys: [] },
    ),
    annotations: fc.record(
      {
        [ARCHITECTURES_ANNOTATION]: fc.constantFrom('all', 'amd64', 'arm64,s390x', ''),
        [MANAGED_ANNOTATION]: managed.map((text) => ({ text })),
        [TOLERATIONS_ANNOTATION]: list(ours).map((text) => ({ text })),
        'example.com/note': fc.constantFrom<unknown>('é"\\', { text: ['x'.repeat(37), '×6549'] }),
      },
      { requiredKeys: [] },
    ),
    ownerReferences: fc.constantFrom('DaemonSet', 'ReplicaSet').map((kind) => [{ kind, controller: true }]),
  },
  { requiredKeys: [] },
);
const volume = fc.record({
  name: fc.constantFrom('data', 'other'),
  image: fc.record({
    reference: fc.constantFrom(...Object.keys(ANSWERS)),
    pullPolicy: fc.constantFrom('Always', 'Never'),
  }),
});
const spec = fc.record(
  {
    initContainers: list(fc.constantFrom(...Object.keys(ANSWERS)).map((image) => ({ name: image, image }))),
    volumes: list(volume),
    runtimeClassName: fc.constantFrom('', 'wasmtime'),
    schedulingGates: fc.subarray([{ name: ARCHITECTURE_GATE }, { name: 'example.com/other' }]),
    nodeName: fc.constantFrom('', 'n1'),
    priorityClassName: fc.constant('system-node-critical'),
    imagePullSecrets: fc.constant([{ name: 's' }]),
    os: fc.record({ name: fc.constantFrom('linux', 'windows') }),
  },
  { requiredKeys: [] },
);
const pod = fc.tuple(anyPod(['both', 'both', ...Object.keys(ANSWERS)]), metadata, spec).map(
  ([object, more, moreOfSpec]): JsonObject => ({
    metadata: { ...objectAt(object, 'metadata'), ...more },
    spec: { ...objectAt(object, 'spec'), ...moreOfSpec },
  }),
);
const daemonSet = fc.tuple(metadata, pod).map(([more, template]) => ({ metadata: more, spec: { template } }));
/** What happens to a value at a place in thousandths: another one comes in its place, or in a list it is there many times. */
const damage = fc.record({
  at: fc.nat(999),
  by: fc.oneof({ arbitrary: odd, weight: 20 }, fc.constantFrom('×10', '×1000', '×50000', '×999999')),
});

/** Returns a copy of a review with damaged values. */
function damaged(review: object, all: readonly { readonly at: number; readonly by: unknown }[]): object {
  const copy = structuredClone(review);
  for (const { at, by } of all) {
    const places = placesIn(copy);
    places[Math.floor((at * places.length) / 1000)]?.(by);
  }
  return copy;
}

/** For each value in an object or a list a function that damages it. */
function placesIn(holder: object): ((by: unknown) => void)[] {
  return Object.entries(holder).flatMap(([name, value]) => {
    const act = (by: unknown) => {
      const isRepeated = Array.isArray(holder) && String(by).startsWith('×');
      if (isRepeated) holder.splice(Number(name) + 1, 0, by);
      else Object.assign(holder, { [name]: by });
    };
    return [act, ...(typeof value === 'object' && value !== null ? placesIn(value) : [])];
  });
}

const reviewText = fc
  .tuple(
    fc.constantFrom('pods', 'pods', 'pods', 'daemonsets', 'nodes'),
    fc.constantFrom('CREATE', 'CREATE', 'CREATE', 'UPDATE', 'DELETE', 'CONNECT'),
    pod,
    daemonSet,
    daemonSet,
    fc.record(
      {
        uid: fc.constant('705ab4f5-6393-11e8-b7cc-42010a800002'),
        namespace: fc.constantFrom('shop', 'kube-system', 'archaware', 'other'),
        subResource: fc.constantFrom('', '', '', 'status'),
        dryRun: fc.boolean(),
        options: fc.constantFrom({ fieldManager: 'kubectl' }, { fieldManager: 'archaware-controller' }),
      },
      { requiredKeys: ['uid', 'namespace'] },
    ),
    fc.oneof({ arbitrary: fc.constant([]), weight: 2 }, fc.array(damage, { maxLength: 3 })),
  )
  .map(([resource, operation, newPod, object, oldObject, request, damages]) => {
    const isPod = resource === 'pods';
    const which = { group: isPod ? '' : 'apps', version: 'v1', resource };
    const about: JsonObject = isPod ? { object: newPod } : { object, oldObject };
    const review = { ...request, operation, resource: which, ...about };
    const what = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' };
    return JSON.stringify(damaged({ ...what, request: review }, damages));
  });
