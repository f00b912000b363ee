import { expect } from 'chai';
import fc from 'fast-check';
import type { JsonObject } from '../../../src/kit/json.ts';
import { sectionsOf, withoutManagedFields } from '../../../src/kube/watch/sections.ts';
import { isSameNode, readNode, readNodeSections } from '../../../src/placement/nodes/node.ts';
import { readPod, readPodSections } from '../../../src/placement/objects/pod.ts';

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
  ),
);
const texts = fc.dictionary(fc.constantFrom('app', 'spec', 'status', 'managedFields', 'nodeName', 'x"y'), text);
const toleration = fc.record({ key: text, operator: fc.constantFrom('Exists', 'Equal'), value: text });
const container = fc.record({
  name: fc.constantFrom('a', 'b'),
  image: text,
  env: fc.array(fc.record({ name: text, value: text }), { maxLength: 2 }),
});
const state = fc.constantFrom<JsonObject>(
  { running: { startedAt: 'now' } },
  { waiting: { reason: 'ContainerCreating' } },
  { waiting: { reason: 'CrashLoopBackOff' } },
  { terminated: { exitCode: 1 } },
);
const managedFields = fc.array(
  fc.record({
    manager: fc.constantFrom('kubelet', 'archaware-controller'),
    fieldsV1: fc.constant({ 'f:metadata': { 'f:labels': { '.': {} } }, 'f:spec': { 'f:tolerations': {} } }),
  }),
  { maxLength: 2 },
);

const metadata = (extra: JsonObject) =>
  fc
    .record({ labels: texts, annotations: texts, managedFields, deleted: fc.boolean() })
    .map(({ deleted, labels, annotations, managedFields: fields }) => ({
      name: 'one',
      ...extra,
      ...(deleted ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
      labels,
      annotations,
      managedFields: fields,
    }));

const podWith = (version: string) =>
  fc
    .record({
      metadata: metadata({ namespace: 'shop', uid: 'u', resourceVersion: version, generation: 2 }),
      spec: fc.record({
        nodeSelector: texts,
        nodeName: fc.constantFrom('n1', ''),
        containers: fc.array(container, { minLength: 1, maxLength: 2 }),
        tolerations: fc.array(toleration, { maxLength: 2 }),
      }),
      status: fc.record({
        phase: fc.constantFrom('Pending', 'Running'),
        conditions: fc.array(fc.record({ message: text }), { maxLength: 2 }),
        containerStatuses: fc.array(fc.record({ name: fc.constantFrom('a', 'b'), state }), { maxLength: 2 }),
      }),
    })
    .map((pod): JsonObject => ({ kind: 'Pod', apiVersion: 'v1', ...pod }));

const nodeWith = (version: string) =>
  fc
    .record({
      metadata: metadata({ uid: 'u', resourceVersion: version }),
      spec: fc.record({ taints: fc.array(toleration, { maxLength: 2 }), unschedulable: fc.boolean() }),
      status: fc.record({
        conditions: fc.array(fc.record({ message: text }), { maxLength: 2 }),
        nodeInfo: fc.record({ kernelVersion: text, architecture: fc.constantFrom('amd64', 'arm64') }),
      }),
    })
    .map((node): JsonObject => ({ kind: 'Node', apiVersion: 'v1', ...node }));

const lineOf = (object: JsonObject) => Buffer.from(JSON.stringify({ type: 'MODIFIED', object }));

describe('the parts of a watch event', () => {
  it('give the same pod as the whole event, whatever its texts look like', () => {
    let read = 0;
    fc.assert(
      fc.property(podWith('1'), podWith('2'), (first, second) => {
        // An unchanged generation means an unchanged spec; only the binding to a node may come later.
        const spec = first.spec as JsonObject;
        const { nodeName } = second.spec as JsonObject;
        const changed = { ...second, spec: { ...spec, nodeName: spec.nodeName || nodeName } };
        const before = readPod(first);
        const sections = sectionsOf(lineOf(changed));
        const parts = sections && readPodSections(sections, before);
        if (parts === undefined) return;
        read += 1;
        expect(parts).to.deep.equal(readPod(changed, before));
      }),
    );
    expect(read, 'pods that were read from their parts').to.be.above(10);
  });

  it('give the same node as the whole event, whatever its texts look like', () => {
    let [read, same] = [0, 0];
    fc.assert(
      fc.property(nodeWith('1'), nodeWith('2'), (first, second) => {
        const before = readNode(first);
        const sections = sectionsOf(lineOf(second));
        const parts = sections && readNodeSections(sections, before);
        const { resourceVersion: _one, ...whole } = readNode(second);
        const { resourceVersion: _other, ...was } = before;
        const isEqual = JSON.stringify(whole) === JSON.stringify(was);
        expect(isSameNode(readNode(second), before)).to.equal(isEqual);
        if (parts === undefined) return;
        read += 1;
        if (isEqual) same += 1;
        expect(parts).to.deep.equal(readNode(second));
      }),
    );
    expect(read, 'nodes that were read from their parts').to.be.above(10);
    expect(same, 'unchanged nodes').to.be.below(read);
  });

  it('leave the event as it is but for the managed fields, which stay if they name archaware', () => {
    fc.assert(
      fc.property(podWith('1'), (pod) => {
        const line = lineOf(pod);
        const { managedFields: fields, ...others } = pod.metadata as JsonObject;
        const isOurs = JSON.stringify(fields).includes('archaware');
        const expected = isOurs ? pod : { ...pod, metadata: others };
        expect(JSON.parse(withoutManagedFields(line))).to.deep.equal({ type: 'MODIFIED', object: expected });
      }),
    );
  });

  for (const [what, line] of [
    [
      'an object without managed fields',
      '{"type":"MODIFIED","object":{"metadata":{"name":"a"},"spec":{},"status":{}}}',
    ],
    ['an object without a spec', '{"type":"MODIFIED","object":{"metadata":{"name":"a","managedFields":[]},"data":{}}}'],
    ['parts in another order', '{"type":"MODIFIED","object":{"spec":{},"status":{},"metadata":{"managedFields":[]}}}'],
    ['nonsense', '{"type":"MODIFIED","object":{"metadata":{"x,"managedFields":[]},"spec":{},"status":{}}}'],
  ] as const) {
    it(`are not cut out of ${what}`, () => {
      expect(sectionsOf(Buffer.from(line))).to.equal(undefined);
    });
  }
});
