import fc from 'fast-check';
import type { JsonObject } from '../../src/kit/json.ts';
import { PREFERRED_TERMS, REQUIRED } from '../../src/placement/patch/affinity.ts';
import { requires, term } from './affinities.ts';

/**
 * Pods as other people write them: any affinity, tolerations, gates, annotations, and unknown fields on every
 * object. The API server accepts all of them.
 */

/** Fields of a newer API server on any object, with different values. */
const unknown = fc.option(fc.record({ later: fc.integer(), deep: fc.constant({ er: [1, null, { x: [] }] }) }), {
  nil: {},
});

function withUnknown(arbitrary: fc.Arbitrary<JsonObject>): fc.Arbitrary<JsonObject> {
  return fc.tuple(arbitrary, unknown).map(([object, more]) => ({ ...object, ...more }));
}

function optional(field: string, arbitrary: fc.Arbitrary<unknown>): fc.Arbitrary<JsonObject> {
  return fc.option(arbitrary, { nil: undefined }).map((value) => (value === undefined ? {} : { [field]: value }));
}

function merged(...parts: readonly fc.Arbitrary<JsonObject>[]): fc.Arbitrary<JsonObject> {
  return withUnknown(fc.tuple(...parts).map((objects) => Object.assign({}, ...objects)));
}

const architectures = fc.subarray(['amd64', 'arm64', 's390x'], { minLength: 1 });

function expressionOn(key: fc.Arbitrary<string>, values: fc.Arbitrary<string[]>): fc.Arbitrary<JsonObject> {
  return withUnknown(
    fc.oneof(
      fc.record({ key, operator: fc.constantFrom('In', 'NotIn'), values }),
      fc.record({ key, operator: fc.constantFrom('Exists', 'DoesNotExist') }),
    ),
  );
}

const onOthers = expressionOn(fc.constantFrom('zone', 'gpu', 'pool'), fc.subarray(['a', 'b', 'c'], { minLength: 1 }));
const onArchitecture = expressionOn(fc.constantFrom('kubernetes.io/arch', 'beta.kubernetes.io/arch'), architectures);
const onName = fc.record({
  key: fc.constant('metadata.name'),
  operator: fc.constantFrom('In', 'NotIn'),
  values: fc.constantFrom(['n0'], ['n1']),
});

function termOf(expression: fc.Arbitrary<JsonObject>): fc.Arbitrary<JsonObject> {
  return merged(
    optional('matchExpressions', fc.array(expression, { maxLength: 3 })),
    optional('matchFields', fc.array(onName, { maxLength: 1 })),
  );
}

function affinityOf(expression: fc.Arbitrary<JsonObject>): fc.Arbitrary<JsonObject> {
  const terms = withUnknown(
    fc.record({ nodeSelectorTerms: fc.array(termOf(expression), { minLength: 1, maxLength: 4 }) }),
  );
  const preferred = withUnknown(
    fc.record({ weight: fc.integer({ min: 1, max: 100 }), preference: termOf(expression) }),
  );
  const node = merged(optional(REQUIRED, terms), optional(PREFERRED_TERMS, fc.array(preferred, { maxLength: 2 })));
  return merged(
    optional('nodeAffinity', node),
    optional('podAntiAffinity', fc.constant({ required: [{ topologyKey: 'x' }] })),
  );
}

const effect = fc.constantFrom('NoSchedule', 'NoExecute');
const toleration = withUnknown(
  fc.oneof(
    fc.record({ key: fc.constantFrom('x', 'supported-arch'), operator: fc.constant('Exists'), effect }),
    fc.record({
      key: fc.constantFrom('x', 'supported-arch'),
      operator: fc.constant('Equal'),
      value: fc.constantFrom('amd64', 'arm64', 'y'),
      effect,
    }),
    fc.record({ key: fc.constant('supported-arch'), value: fc.constantFrom('amd64', 'arm64') }),
  ),
);
/** An entry exactly as archaware would write it. */
const likeOurs = fc
  .constantFrom('amd64', 'arm64')
  .map((value): JsonObject => ({ key: 'supported-arch', operator: 'Equal', value, effect: 'NoSchedule' }));

const labels = fc.dictionary(
  fc.constantFrom('app', 'pool', 'archaware.dev/preferred', 'arch.noe.adevinta.com/preferred'),
  fc.constantFrom('arm64', 'amd64', 'a', ''),
  { noNullPrototype: true },
);
const annotations = fc.dictionary(fc.constantFrom('note', 'a/b~c', 'x'), fc.string(), { noNullPrototype: true });

function podWith(
  affinity: fc.Arbitrary<JsonObject>,
  selector: string[],
  images: readonly string[],
): fc.Arbitrary<JsonObject> {
  const container = fc.tuple(fc.constantFrom(...images), unknown);
  const spec = merged(
    optional('affinity', affinity),
    optional(
      'tolerations',
      fc.array(fc.oneof({ weight: 3, arbitrary: toleration }, { weight: 1, arbitrary: likeOurs }), { maxLength: 4 }),
    ),
    optional(
      'schedulingGates',
      fc.subarray(['q', 'r']).map((names) => names.map((name) => ({ name }))),
    ),
    optional(
      'nodeSelector',
      fc.dictionary(fc.constantFrom(...selector), fc.constantFrom('a', 'arm64'), { noNullPrototype: true }),
    ),
    fc.array(container, { minLength: 1, maxLength: 2 }).map((containers) => ({
      containers: containers.map(([image, more], index) => ({ name: `c${index}`, image, ...more })),
    })),
  );
  const metadata = merged(
    fc.constant({ name: 'web', uid: 'u1', generation: 1, resourceVersion: '1' }),
    optional('labels', labels),
    optional('annotations', annotations),
  );
  return withUnknown(fc.record({ metadata, spec }));
}

/** Any. */
export function anyPod(images: readonly string[]): fc.Arbitrary<JsonObject> {
  const whole = requires(term('arch In amd64,arm64'));
  const expression = fc.oneof({ weight: 3, arbitrary: onOthers }, { weight: 1, arbitrary: onArchitecture });
  const affinity = fc.oneof(
    { weight: 9, arbitrary: affinityOf(expression) },
    { weight: 1, arbitrary: fc.constant(whole) },
  );
  return podWith(
    affinity,
    ['zone', 'pool', 'kubernetes.io/arch', 'beta.kubernetes.io/arch', 'beta.kubernetes.io/os'],
    images,
  );
}

/** Affinity without a requirement on the architecture. */
export function indifferentPod(images: readonly string[]): fc.Arbitrary<JsonObject> {
  return podWith(affinityOf(onOthers), ['zone'], images);
}
