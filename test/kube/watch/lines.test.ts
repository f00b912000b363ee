import { expect } from 'chai';
import fc from 'fast-check';
import type { JsonObject } from '../../../src/kit/json.ts';
import { withoutManagedFields } from '../../../src/kube/watch/watch-once.ts';

/** Texts that look like the bytes that are searched. */
const text = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.constantFrom(
    '"metadata":{',
    ',"managedFields":[',
    ']},"spec":{"',
    '},"status":{',
    '\\"},"spec":{',
    '"nodeName":"',
    'a"}]},"spec":{',
    'ümläut',
    '"architecture":"arm64"',
    '"phase":"Running"',
    '"terminated":{',
  ),
);
const texts = fc.dictionary(
  fc.constantFrom('app', 'spec', 'status', 'managedFields', 'nodeName', 'resourceVersion', 'x"y'),
  text,
);
const toleration = fc.record({ key: text, operator: fc.constantFrom('Exists', 'Equal'), value: text });
const container = fc.record({
  name: fc.constantFrom('a', 'b'),
  image: text,
  env: fc.array(fc.record({ name: text, value: text }), { maxLength: 2 }),
});
const managedFields = fc.array(
  fc.record({
    manager: fc.constantFrom('kubelet', 'archaware-controller'),
    fieldsV1: fc.constant({ 'f:metadata': { 'f:labels': { '.': {} } }, 'f:spec': { 'f:tolerations': {} } }),
  }),
  { maxLength: 2 },
);

const pods = fc
  .record({
    metadata: fc
      .record({ labels: texts, annotations: texts, managedFields })
      .map((fields) => ({ name: 'one', namespace: 'shop', uid: 'u', resourceVersion: '1', generation: 2, ...fields })),
    spec: fc.record({
      nodeSelector: texts,
      containers: fc.array(container, { minLength: 1, maxLength: 2 }),
      tolerations: fc.array(toleration, { maxLength: 2 }),
    }),
    status: fc.record({ conditions: fc.array(fc.record({ message: text }), { maxLength: 2 }) }),
  })
  .map((pod) => ({ kind: 'Pod', apiVersion: 'v1', ...pod }));

const lineOf = (object: JsonObject) => Buffer.from(JSON.stringify({ type: 'MODIFIED', object }));

describe('the line of a watch event', () => {
  it('stays as it is but for the managed fields, which stay if they name archaware', () => {
    fc.assert(
      fc.property(pods, (pod) => {
        const { managedFields: fields, ...others } = pod.metadata;
        const isOurs = JSON.stringify(fields).includes('archaware');
        const expected = isOurs ? pod : { ...pod, metadata: others };
        expect(JSON.parse(withoutManagedFields(lineOf(pod)))).to.deep.equal({ type: 'MODIFIED', object: expected });
      }),
    );
  });

  for (const [what, object] of [
    ['without managed fields', { metadata: { name: 'a' }, spec: {}, status: {} }],
    ['without a spec', { metadata: { name: 'a', managedFields: [] }, data: {} }],
    ['with its parts in another order', { spec: {}, status: {}, metadata: { managedFields: [] } }],
  ] as const) {
    it(`stays as it is for an object ${what}`, () => {
      expect(withoutManagedFields(lineOf(object))).to.equal(lineOf(object).toString());
    });
  }
});
