import { expect } from 'chai';
import fc from 'fast-check';
import { type JsonObject, objectAt } from '../../../src/kit/json.ts';
import {
  type AdmissionInput,
  type AdmissionKnowledge,
  type Admitted,
  admissionKey,
  admitPod,
  readAdmitted,
} from '../../../src/placement/admission/pod.ts';
import type { ImageAnswer } from '../../../src/placement/images.ts';
import { admissionOf, admit, applied, type Circumstances, MANAGED, pod } from '../admissions.ts';
import { failed, known, pending } from '../objects.ts';
import { anyPod } from '../random-pods.ts';

const answers: Readonly<Record<string, ImageAnswer>> = {
  both: known('linux/amd64,linux/arm64'),
  arm: known('linux/arm64'),
  mixed: known('linux/amd64,linux/arm64,windows/amd64'),
  wasm: known('wasi/wasm'),
  cold: pending,
  lost: failed(300),
};
const IMAGES = Object.keys(answers);

/** Fields that decide and that the random pods do not have. */
const more = fc.record(
  {
    nodeName: fc.constantFrom('', 'n1', 5),
    os: fc.constantFrom({ name: 'windows' }, {}, 'linux'),
    runtimeClassName: fc.constantFrom('', 'wasmtime'),
    priorityClassName: fc.constantFrom('', 'system-node-critical'),
    imagePullSecrets: fc.constant([{ name: 's' }]),
    initContainers: fc
      .array(fc.record({ image: fc.constantFrom(...IMAGES), imagePullPolicy: fc.constantFrom('Always', 'Never') }))
      .map((items): unknown[] => [...items, null, 'x']),
    volumes: fc.constantFrom<unknown[]>(
      [
        { name: 'v', image: { reference: 'arm', pullPolicy: 'IfNotPresent' } },
        { name: 'w', emptyDir: {} },
      ],
      [{ name: 'token', projected: { sources: [] } }],
      [null, { name: 'v', image: 'both' }],
    ),
    tolerations: fc.constantFrom<unknown>('none', null, {}),
    affinity: fc.constantFrom<unknown>('none', null, []),
  },
  { requiredKeys: [] },
);
const about = fc.record(
  {
    name: fc.constantFrom('', 'web-0'),
    generateName: fc.constant('web-'),
    deletionTimestamp: fc.constant('2026-01-01T00:00:00Z'),
    ownerReferences: fc.constantFrom<unknown[]>(
      [{ kind: 'DaemonSet', controller: true, name: 'd', uid: 'd' }],
      [null, { kind: 'DaemonSet' }, { kind: 'ReplicaSet', controller: true }],
    ),
    managedFields: fc.constant([{ manager: 'archaware-controller', fieldsV1: { 'f:spec': { 'f:tolerations': {} } } }]),
    annotations: fc.dictionary(
      fc.constantFrom('archaware.dev/architectures', 'kubernetes.io/config.mirror', MANAGED, 'note'),
      fc.constantFrom('arm64', 'all', '{}', '{"required":[{"key":"kubernetes.io/arch","values":["arm64"]}]}'),
      { noNullPrototype: true },
    ),
  },
  { requiredKeys: [] },
);
const phase = fc.constantFrom({}, { status: { phase: 'Pending' } }, { status: { phase: 'Failed' } }, { status: 5 });
const pods = fc.tuple(anyPod(IMAGES), more, about, phase).map(
  ([object, spec, metadata, status]): JsonObject => ({
    ...object,
    ...status,
    metadata: { ...objectAt(object, 'metadata'), ...metadata },
    spec: { ...objectAt(object, 'spec'), ...spec },
  }),
);
const circumstances: fc.Arbitrary<Circumstances> = fc
  .record({
    mode: fc.constantFrom('taints', 'affinity', 'both'),
    preferred: fc.constantFrom({}, { arm64: 75 }),
    matchNodeLabels: fc.constantFrom([], ['pool']),
    noCommonArchitecture: fc.constantFrom('hold', 'release', 'reject'),
  })
  .map((settings) => ({ answers, settings }));

const keyOf = (input: AdmissionInput) => admissionKey(readAdmitted(input), input);
const decisionOf = (input: AdmissionInput) => admitPod(readAdmitted(input), input);

describe('the patch for the part of a pod that admission reads', () => {
  it('is right for the whole pod, also when the API server calls again', () => {
    fc.assert(
      fc.property(pods, circumstances, (object, given) => {
        const first = admit(object, given);
        const after = applied(object, first);
        const unread = ({ metadata, spec, ...rest }: JsonObject) => {
          const { annotations: _, ...named } = objectAt({ metadata }, 'metadata');
          const { tolerations: __, affinity: ___, schedulingGates: ____, ...kept } = objectAt({ spec }, 'spec');
          return { ...rest, named, kept };
        };
        expect(unread(after)).to.deep.equal(unread(object));
        expect(admit(after, given)).to.deep.equal(first.kind === 'rejected' ? first : { kind: 'unchanged' });
      }),
      { numRuns: 300 },
    );
  });

  const odd: [given: string, object: JsonObject][] = [
    ['nothing', {}],
    ['no spec', { metadata: {} }],
    ['a spec of another type', { metadata: 'x', spec: 5 }],
    ['lists instead of objects', { metadata: [], spec: [], status: [] }],
    ['containers of another type', { spec: { containers: { image: 'both' }, volumes: 'x' } }],
  ];
  for (const [given, object] of odd)
    it(`can be applied to ${given}`, () => expect(applied(object, admit(object))).to.be.an('object'));
});

describe('the key of an admission', () => {
  it('is the same for the pods of a template', () => {
    const one = (volume: string, time: string) =>
      pod(
        { volumes: [{ name: volume, projected: {} }] },
        { name: undefined, generateName: 'web-', managedFields: [{ time }], ownerReferences: [{ uid: time }] },
      );
    expect(keyOf(admissionOf(one('kube-api-access-x7x2b', '1')))).to.equal(
      keyOf(admissionOf(one('kube-api-access-99zzk', '2'))),
    );
  });

  const of = (object: JsonObject, given: Circumstances = {}, more: Partial<AdmissionInput> = {}): AdmissionInput => ({
    ...admissionOf(object, { answers, ...given, settings: { mode: 'both', ...given.settings } }),
    ...more,
  });
  const arm = (spec: JsonObject = {}, metadata: JsonObject = {}) => pod(spec, metadata, ['arm']);
  const cold = pod({}, {}, ['cold']);
  const never = pod({ containers: [{ image: 'arm', imagePullPolicy: 'Never' }] });
  const owned = { ownerReferences: [{ kind: 'DaemonSet', apiVersion: 'apps/v1', name: 'd', controller: true }] };
  const own = { namespace: { name: 'archaware' } };

  /** Two admissions that differ in one field alone: a field without a row does not compile. */
  const rows: Readonly<
    Record<
      keyof Admitted | Exclude<keyof AdmissionKnowledge, 'namesOf' | 'answerOf'>,
      readonly [one: AdmissionInput, other: AdmissionInput]
    >
  > = {
    subject: [of(arm()), of(pod({}, {}, ['both']))],
    isBound: [of(arm()), of(arm({ nodeName: 'n1' }))],
    isPinned: [of(arm(), own), of(arm({}, owned), own)],
    mayBeHeldBack: [of(cold), of(cold, {}, { ownNamespace: 'shop' })],
    isLabelled: [of(arm()), of(arm(), {}, { isLabelled: true })],
    sent: [of(arm()), of(arm({ tolerations: [{ key: 'gpu', operator: 'Exists' }] }))],
    clusterArchitectures: [of(never), of(never, { clusterArchitectures: ['arm64'] })],
    mayGate: [of(cold), of(cold, { mayGate: false })],
    withdrawn: [of(arm()), of(arm(), { withdrawn: ['tolerations'] })],
  };
  for (const [field, [one, other]] of Object.entries(rows)) {
    it(`changes with ${field}, which changes the answer`, () => {
      expect(keyOf(one)).not.to.equal(keyOf(other));
      expect(decisionOf(one)).not.to.deep.equal(decisionOf(other));
      const rest = (input: AdmissionInput) => {
        const admitted = readAdmitted(input);
        const { clusterArchitectures, mayGate, withdrawn } = input;
        return { ...admitted, clusterArchitectures, mayGate, withdrawn, [field]: undefined };
      };
      expect(rest(one), 'nothing else differs').to.deep.equal(rest(other));
    });
  }
});
