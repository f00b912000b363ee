import fc from 'fast-check';
import { systemClock } from '../../src/kit/clock.ts';
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
/** Usually the valid value, and seldom any other. */
const mostly = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.oneof({ arbitrary, weight: 150 }, { arbitrary: odd, weight: 1 });
/** A list, seldom with thousands of items. */
const many = (item: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> => {
  const few = fc.array(item, { maxLength: 3 });
  const flood = fc.tuple(
    fc.array(item, { minLength: 1, maxLength: 2 }),
    fc.constantFrom('×10', '×1000', '×50000', '×999999'),
  );
  return fc.oneof(
    { arbitrary: few, weight: 100 },
    { arbitrary: flood.map(([items, times]) => [...items, times]), weight: 1 },
  );
};

const KEYS = ['kubernetes.io/arch', 'beta.kubernetes.io/arch', 'kubernetes.io/os', 'pool', 'example.com/zone'];
const key = fc.constantFrom(...KEYS);
const architecture = fc.constantFrom('amd64', 'arm64', 's390x');
const toleration = fc.oneof(
  fc.record({
    key: fc.constant('supported-arch'),
    operator: fc.constant('Equal'),
    value: architecture,
    effect: fc.constantFrom('NoSchedule', ''),
  }),
  fc.record({ key: mostly(fc.constantFrom('supported-arch', 'example.com/gpu')), operator: fc.constant('Exists') }),
  fc.constantFrom({ operator: 'Exists' }, { key: 'a', effect: 'NoExecute', tolerationSeconds: 300 }, {}),
);
const expression = fc.oneof(
  fc.record({ key, operator: fc.constantFrom('In', 'NotIn'), values: many(architecture) }),
  fc.record({ key: mostly(key), operator: fc.constantFrom('Exists', 'DoesNotExist') }),
);
const matchFields = fc.constant([{ key: 'metadata.name', operator: 'In', values: ['n1'] }]);
const term = fc.record(
  { matchExpressions: mostly(many(mostly(expression))), matchFields: mostly(matchFields), newer: odd },
  { requiredKeys: [] },
);
const weighted = fc.record({ weight: mostly(fc.integer({ min: 1, max: 100 })), preference: term });
const affinity = fc.record(
  {
    nodeAffinity: mostly(
      fc.record(
        {
          requiredDuringSchedulingIgnoredDuringExecution: mostly(fc.record({ nodeSelectorTerms: many(mostly(term)) })),
          preferredDuringSchedulingIgnoredDuringExecution: mostly(many(mostly(weighted))),
        },
        { requiredKeys: [] },
      ),
    ),
    podAntiAffinity: odd,
  },
  { requiredKeys: [] },
);
const ours = fc.record({
  key: fc.constant('supported-arch'),
  operator: fc.constant('Equal'),
  value: architecture,
  effect: fc.constant('NoSchedule'),
});
const managed = fc.record(
  {
    tolerations: many(ours),
    required: many(
      fc.record(
        { term: fc.integer({ min: 0, max: 3 }), key, operator: fc.constant('In'), values: many(architecture) },
        { requiredKeys: ['key', 'operator', 'values'] },
      ),
    ),
    preferred: many(fc.record({ architecture, weight: fc.integer({ min: 1, max: 100 }) })),
  },
  { requiredKeys: [] },
);
const metadata = fc.record(
  {
    name: mostly(fc.constant('p1')),
    labels: mostly(
      fc.record(
        {
          pool: fc.constantFrom('a', ''),
          [PREFERRED]: fc.constantFrom('arm64', 'AMD64', 'x'),
          [IGNORE_LABEL]: fc.constantFrom('false', 'true'),
        },
        { requiredKeys: [] },
      ),
    ),
    annotations: mostly(
      fc.record(
        {
          [ARCHITECTURES_ANNOTATION]: mostly(fc.constantFrom('all', 'amd64', 'arm64,s390x', '')),
          [MANAGED_ANNOTATION]: mostly(managed.map((text) => ({ text }))),
          [TOLERATIONS_ANNOTATION]: mostly(many(ours).map((text) => ({ text }))),
          'example.com/note': fc.constantFrom<unknown>('', 'é"\\', { text: ['x'.repeat(37), '×6549'] }, 'note'),
        },
        { requiredKeys: [] },
      ),
    ),
    ownerReferences: mostly(
      fc.constantFrom([], [{ kind: 'DaemonSet', controller: true }], [{ kind: 'ReplicaSet', controller: true }]),
    ),
    managedFields: odd,
  },
  { requiredKeys: [] },
);
const container = fc.record(
  {
    name: fc.constantFrom('a', 'b'),
    image: mostly(fc.constantFrom(...Object.keys(ANSWERS), 'both', 'both', 'amd64')),
    imagePullPolicy: fc.constantFrom('Always', 'IfNotPresent', 'Never'),
    newer: odd,
  },
  { requiredKeys: ['name', 'image'] },
);
const volume = fc.record({
  name: mostly(fc.constantFrom('data', 'other')),
  image: mostly(
    fc.record(
      { reference: mostly(fc.constantFrom(...Object.keys(ANSWERS))), pullPolicy: fc.constantFrom('Always', 'Never') },
      { requiredKeys: [] },
    ),
  ),
});
const spec = fc.record(
  {
    containers: mostly(
      fc.oneof({ arbitrary: fc.array(container, { minLength: 1, maxLength: 3 }), weight: 8 }, many(container)),
    ),
    initContainers: mostly(many(container)),
    volumes: mostly(many(volume)),
    runtimeClassName: mostly(fc.constantFrom('', 'wasmtime')),
    tolerations: mostly(many(mostly(toleration))),
    affinity: mostly(affinity),
    nodeSelector: mostly(fc.dictionary(key, architecture, { maxKeys: 2 })),
    schedulingGates: mostly(fc.subarray([{ name: ARCHITECTURE_GATE }, { name: 'example.com/other' }])),
    nodeName: mostly(fc.constantFrom('', '', 'n1')),
    priorityClassName: fc.constantFrom('', 'system-node-critical'),
    imagePullSecrets: mostly(fc.constant([{ name: 's' }])),
    os: mostly(fc.record({ name: fc.constantFrom('linux', 'windows') })),
    newer: odd,
  },
  { requiredKeys: ['containers'] },
);
const pod = fc.record({ metadata: mostly(metadata), spec: mostly(spec) });
const template = fc.record({ metadata: mostly(metadata), spec: mostly(spec) });
const daemonSet = fc.record({ metadata: mostly(metadata), spec: mostly(fc.record({ template: mostly(template) })) });

const reviewText = fc
  .tuple(
    fc.constantFrom('pods', 'pods', 'pods', 'daemonsets', 'nodes'),
    mostly(fc.constantFrom('CREATE', 'CREATE', 'CREATE', 'UPDATE', 'DELETE', 'CONNECT')),
    pod,
    daemonSet,
    daemonSet,
    fc.record(
      {
        uid: mostly(fc.constant('705ab4f5-6393-11e8-b7cc-42010a800002')),
        namespace: mostly(fc.constantFrom('shop', 'kube-system', 'archaware', 'other')),
        subResource: mostly(fc.constantFrom('', '', '', 'status')),
        dryRun: mostly(fc.boolean()),
        options: mostly(fc.constantFrom({ fieldManager: 'kubectl' }, { fieldManager: 'archaware-controller' })),
      },
      { requiredKeys: ['uid', 'namespace'] },
    ),
    mostly(fc.constant('admission.k8s.io/v1')),
    fc.constantFrom('AdmissionReview', 'AdmissionReview', 'AdmissionReview', 'AdmissionReview', 'Review'),
  )
  .map(([resource, operation, newPod, object, oldObject, request, apiVersion, kind]) => {
    const isPod = resource === 'pods';
    const which = { group: isPod ? '' : 'apps', version: 'v1', resource };
    const about: JsonObject = isPod ? { object: newPod } : { object, oldObject };
    return JSON.stringify({ apiVersion, kind, request: { ...request, operation, resource: which, ...about } });
  });
