import { expect } from 'chai';
import fc from 'fast-check';
import { type JsonObject, objectAt } from '../../../src/kit/json.ts';
import { partsOf } from '../../../src/placement/admission/parts.ts';
import { admit, applied, type Circumstances, MANAGED, pod } from '../admissions.ts';
import { failed, known, pending } from '../objects.ts';
import { anyPod } from '../random-pods.ts';

const answers = {
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

describe('the parts of a pod that admission reads', () => {
  it('lead to the same decision as the whole pod', () => {
    fc.assert(
      fc.property(pods, circumstances, (object, given) => {
        const decided = admit(object, given);
        expect(admit(partsOf(object), given)).to.deep.equal(decided);
        const again = applied(object, decided);
        expect(admit(partsOf(again), given)).to.deep.equal(admit(again, given));
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
  for (const [given, object] of odd) {
    it(`lead to the same decision for ${given}`, () => {
      expect(admit(partsOf(object))).to.deep.equal(admit(object));
    });
  }

  it('are the same for the pods of a template', () => {
    const one = (volume: string, time: string) =>
      pod(
        { volumes: [{ name: volume, projected: {} }] },
        { name: undefined, generateName: 'web-', managedFields: [{ time }], ownerReferences: [{ uid: time }] },
      );
    expect(JSON.stringify(partsOf(one('kube-api-access-x7x2b', '1')))).to.equal(
      JSON.stringify(partsOf(one('kube-api-access-99zzk', '2'))),
    );
  });
});
