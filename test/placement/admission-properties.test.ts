import { expect } from 'chai';
import fc from 'fast-check';
import { isObject, type JsonObject, listAt, objectAt } from '../../src/kit/json.ts';
import { put } from '../../src/placement/admission/record.ts';
import { obstaclesTo, readDemands } from '../../src/placement/fit.ts';
import { readPod } from '../../src/placement/objects/pod.ts';
import { PREFERRED_TERMS, REQUIRED } from '../../src/placement/patch/affinity.ts';
import { releasePatch } from '../../src/placement/patch/patch.ts';
import { placingFor } from '../../src/placement/placing.ts';
import type { Settings } from '../../src/placement/settings.ts';
import { jsonPatch } from '../simulator/objects/patch.ts';
import { validatePodUpdate } from '../simulator/objects/pod-rules.ts';
import { admit, applied, type Circumstances, GATE, injected } from './admissions.ts';
import { decideCase, failed, input, known, pending, subjectOf, taint } from './objects.ts';
import { anyPod, indifferentPod } from './random-pods.ts';

const answers = {
  both: known('linux/amd64,linux/arm64'),
  arm: known('linux/arm64'),
  mixed: known('linux/amd64,linux/arm64,windows/amd64'),
  cold: pending,
  lost: failed(300),
};
const IMAGES = Object.keys(answers);
const KNOWN = ['both', 'arm', 'mixed'];

const someSettings: fc.Arbitrary<Partial<Settings>> = fc.record({
  mode: fc.constantFrom('taints', 'affinity', 'both'),
  preferred: fc.constantFrom({}, { arm64: 75 }, { arm64: 75, amd64: 25 }),
  schedulable: fc.constantFrom([], ['arm64'], ['amd64', 'arm64']),
  matchNodeLabels: fc.constantFrom([], ['pool']),
  noCommonArchitecture: fc.constantFrom('hold', 'release'),
  unresolvable: fc.constantFrom('open', 'wait'),
});
const circumstances: fc.Arbitrary<Circumstances> = fc
  .tuple(someSettings, fc.boolean())
  .map(([settings, mayGate]) => ({ answers, settings, mayGate }));

/** Removes empty objects and lists, which mean nothing, and the order of lists. */
function normal(value: unknown): unknown {
  if (Array.isArray(value))
    return value
      .map(normal)
      .map((item) => JSON.stringify(item))
      .sort();
  if (!isObject(value)) return value;
  const entries = Object.entries(value).map(([name, item]) => [name, normal(item)] as const);
  return Object.fromEntries(entries.filter(([, item]) => !isEmpty(item)).sort());
}

/** Only for fields that may be absent as well: `{}` in a list is a term. */
function isEmpty(value: unknown): boolean {
  return (Array.isArray(value) && value.length === 0) || (isObject(value) && Object.keys(value).length === 0);
}

/** The pod without what admission may write: tolerations, gates, annotations, required terms and preferences. */
function unwritten(pod: JsonObject): unknown {
  const affinity = objectAt(objectAt(pod, 'spec'), 'affinity');
  const { [REQUIRED]: required, [PREFERRED_TERMS]: _, ...node } = objectAt(affinity, 'nodeAffinity');
  const { nodeSelectorTerms: _terms, ...rest } = isObject(required) ? required : {};
  const { tolerations: _t, schedulingGates: _g, ...spec } = objectAt(pod, 'spec');
  const { annotations: _a, ...metadata } = objectAt(pod, 'metadata');
  return normal({
    ...pod,
    metadata,
    spec: { ...spec, affinity: { ...affinity, nodeAffinity: { ...node, [REQUIRED]: rest } } },
  });
}

/** The entries of lists that admission may add to. All of them must be in the pod afterwards, unchanged. */
function expectKept(before: JsonObject, after: JsonObject): void {
  for (const field of ['tolerations', 'schedulingGates']) {
    const now = listAt(objectAt(after, 'spec'), field) ?? [];
    for (const item of listAt(objectAt(before, 'spec'), field) ?? []) expect(now).to.deep.include(item);
  }
  expect(objectAt(objectAt(after, 'metadata'), 'annotations')).to.deep.include(
    objectAt(objectAt(before, 'metadata'), 'annotations'),
  );
  const node = (pod: JsonObject) => objectAt(objectAt(objectAt(pod, 'spec'), 'affinity'), 'nodeAffinity');
  const [old, now] = [node(before), node(after)];
  for (const item of listAt(old, PREFERRED_TERMS) ?? []) expect(listAt(now, PREFERRED_TERMS)).to.deep.include(item);
  const terms = listAt(objectAt(now, REQUIRED), 'nodeSelectorTerms') ?? [];
  for (const [index, term] of (listAt(objectAt(old, REQUIRED), 'nodeSelectorTerms') ?? []).entries()) {
    const { matchExpressions, ...rest } = term;
    const { matchExpressions: expressions, ...others } = terms[index] ?? {};
    expect(others).to.deep.equal(rest);
    const kept = Array.isArray(matchExpressions) ? matchExpressions : [];
    expect(Array.isArray(expressions) ? expressions.slice(0, kept.length) : []).to.deep.equal(kept);
  }
}

const NODES = ['amd64', 'arm64', 's390x'].flatMap((architecture) =>
  ['a', 'b', undefined].flatMap((zone, index) =>
    ['linux', 'windows'].flatMap((os) =>
      ['a', undefined].map((pool) => ({
        name: `n${index}`,
        unschedulable: false,
        taints: [taint(`supported-arch=${architecture}:NoSchedule`)],
        labels: {
          'kubernetes.io/arch': architecture,
          'kubernetes.io/os': os,
          ...(zone === undefined ? {} : { zone, gpu: 'c' }),
          ...(pool === undefined ? {} : { pool }),
        },
      })),
    ),
  ),
);

/** Whether affinity and node selector let a pod onto a node. */
function attracts(pod: JsonObject, node: (typeof NODES)[number]): boolean {
  return !obstaclesTo(readDemands(objectAt(pod, 'spec')), { ...node, taints: [] }).some(
    ({ kind }) => kind === 'affinity',
  );
}

describe('admission of any pod', () => {
  /** The nodes that a pod may run on: neither its affinity nor a taint keeps it off. */
  const nodesOf = (pod: JsonObject) =>
    NODES.filter((node) => obstaclesTo(readDemands(objectAt(pod, 'spec')), node).length === 0);

  it('lets a pod onto no node with a sidecar that is injected later that it would not let it onto with one from the start', () => {
    fc.assert(
      fc.property(anyPod(IMAGES), circumstances, fc.constantFrom(...IMAGES), (pod, given, image) => {
        const later = injected(applied(pod, admit(pod, given)), image);
        const start = injected(pod, image);
        const [one, other] = [applied(later, admit(later, given)), applied(start, admit(start, given))];
        expect(nodesOf(other)).to.include.members(nodesOf(one));
        const held = (object: JsonObject) =>
          normal(put({}, ['spec', 'schedulingGates'], objectAt(object, 'spec').schedulingGates));
        expect(held(one)).to.deep.equal(held(other));
      }),
      { numRuns: 200 },
    );
  });

  it('lets a pod onto no node because of a record that its author forged', () => {
    const values = fc.subarray(['amd64', 'arm64', 's390x'], { minLength: 1 });
    const record = fc.record({
      tolerations: fc.array(
        fc.record({
          key: fc.constantFrom('supported-arch', 'gpu'),
          value: fc.constantFrom('amd64', 'arm64'),
          effect: fc.constant('NoSchedule'),
        }),
      ),
      required: fc.array(fc.record({ key: fc.constantFrom('kubernetes.io/arch', 'kubernetes.io/os', 'zone'), values })),
    });
    fc.assert(
      fc.property(anyPod(KNOWN), circumstances, record, (pod, given, forged) => {
        const first = applied(pod, admit(pod, given));
        for (const object of [pod, first]) {
          const claiming = put(object, ['metadata', 'annotations', 'archaware.dev/managed'], JSON.stringify(forged));
          const after = applied(claiming, admit(claiming, given));
          expect(nodesOf(first)).to.include.members(nodesOf(after));
        }
      }),
      { numRuns: 200 },
    );
  });
});

describe('admission of a pod that does not mention the architecture', () => {
  it('leaves exactly the nodes that its own demands and the decision allow', () => {
    const pods = fc.tuple(indifferentPod(KNOWN), someSettings);
    fc.assert(
      fc.property(pods, ([pod, settings]) => {
        fc.pre(settings.mode !== 'taints');
        const after = applied(pod, admit(pod, { answers, settings }));
        const { labels, images } = readPod(pod);
        const isSpoken = settings.matchNodeLabels?.length === 1 && labels.pool !== undefined;
        fc.pre(!isSpoken || !JSON.stringify(objectAt(pod, 'spec')).includes('"pool"'));
        const set = images.some(({ image }) => image === 'arm') ? ['arm64'] : ['amd64', 'arm64'];
        const allowed = set.filter((name) => !settings.schedulable?.length || settings.schedulable.includes(name));
        const isMixed = images.some(({ image }) => image === 'mixed');
        const isAllowed = (node: (typeof NODES)[number]) =>
          allowed.includes(node.labels['kubernetes.io/arch']) &&
          (!isMixed || node.labels['kubernetes.io/os'] === 'linux') &&
          (!isSpoken || ('pool' in node.labels ? node.labels.pool : undefined) === labels.pool);
        const expected = NODES.filter((node) => attracts(pod, node) && isAllowed(node));
        expect(NODES.filter((node) => attracts(after, node))).to.deep.equal(expected);
        const isRepelled = (node: (typeof NODES)[number]) =>
          obstaclesTo(readDemands(objectAt(after, 'spec')), node).some(({ kind }) => kind === 'taint');
        if (settings.mode === 'both') expect(NODES.filter(isAllowed).filter(isRepelled)).to.deep.equal([]);
      }),
      { numRuns: 50 },
    );
  });
});

describe('the release of any gated pod', () => {
  const gatedPods = fc
    .tuple(anyPod(KNOWN), someSettings, fc.nat({ max: 2 }), fc.boolean())
    .map(([pod, settings, at, counts]) => {
      const gates = [...(listAt(objectAt(pod, 'spec'), 'schedulingGates') ?? [])];
      gates.splice(at, 0, { name: GATE });
      const gated = put(pod, ['spec', 'schedulingGates'], gates);
      return { pod: counts ? gated : put(gated, ['metadata', 'generation'], undefined), settings };
    });

  function released(object: JsonObject, given: Partial<Settings>): JsonObject {
    const pod = readPod(object);
    if (pod.gated === undefined) throw new Error('expected a gated pod');
    const what = input(answers, { template: pod, settings: given });
    const decision = decideCase(what);
    const placing = decision.kind === 'place' ? placingFor(decision, subjectOf(what)) : undefined;
    return jsonPatch({ ...object }, JSON.stringify(releasePatch(pod, pod.gated, placing)));
  }

  it("is accepted by the API server's rules, removes only archaware's gate, and keeps the rest", () => {
    fc.assert(
      fc.property(gatedPods, ({ pod, settings }) => {
        const after = released(pod, settings);
        expect(validatePodUpdate({ ...after }, { ...pod })).to.deep.equal([]);
        const others = (listAt(objectAt(pod, 'spec'), 'schedulingGates') ?? []).filter(({ name }) => name !== GATE);
        expect(listAt(objectAt(after, 'spec'), 'schedulingGates') ?? []).to.deep.equal(others);
        const ungated = put(pod, ['spec', 'schedulingGates'], others);
        expect(unwritten(after)).to.deep.equal(unwritten(pod));
        expectKept(ungated, after);
      }),
      { numRuns: 50 },
    );
  });

  it('adds what admission would have added', () => {
    fc.assert(
      fc.property(gatedPods, ({ pod, settings }) => {
        const admitted = applied(pod, admit(pod, { answers, settings }));
        // A pod that asks for what `architectures.schedulable` excludes stays held.
        fc.pre(!JSON.stringify(objectAt(admitted, 'spec')).includes(GATE));
        const bare = (object: JsonObject) =>
          normal(put(object, ['metadata', 'annotations', 'archaware.dev/managed'], undefined));
        expect(bare(released(pod, settings))).to.deep.equal(bare(admitted));
      }),
      { numRuns: 50 },
    );
  });
});
