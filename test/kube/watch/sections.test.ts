import { expect } from 'chai';
import fc from 'fast-check';
import type { JsonObject } from '../../../src/kit/json.ts';
import { rememberDigests } from '../../../src/kube/watch/digests.ts';
import { sectionsOf, withoutManagedFields } from '../../../src/kube/watch/sections.ts';
import { isSameNode, type Node, readNode, readNodeSections } from '../../../src/placement/nodes/node.ts';
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
const state = fc.constantFrom<JsonObject>(
  { running: { startedAt: 'now' } },
  { waiting: { reason: 'ContainerCreating' } },
  { waiting: { reason: 'CrashLoopBackOff' } },
  { terminated: { exitCode: 1 } },
  { terminated: { exitCode: 0 } },
);
const lastState = fc.constantFrom<JsonObject>({}, { terminated: { exitCode: 1, message: 'exec format error' } });
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
        containerStatuses: fc.array(fc.record({ name: fc.constantFrom('a', 'b'), state, lastState }), { maxLength: 2 }),
      }),
    })
    .map((pod): JsonObject => ({ kind: 'Pod', apiVersion: 'v1', ...pod }));

const nodeWith = (version: string) =>
  fc
    .record({
      metadata: metadata({ uid: 'u', resourceVersion: version }),
      spec: fc.record({ taints: fc.array(toleration, { maxLength: 2 }), unschedulable: fc.boolean() }),
      status: fc.record({
        conditions: fc
          .tuple(
            fc.array(fc.record({ message: text }), { maxLength: 2 }),
            fc.constantFrom('True', 'True', 'True', 'Unknown'),
            text,
          )
          .map(([others, status, message]) => [...others, { type: 'Ready', status, message }]),
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
        expect(sections?.resourceVersion ?? '2').to.equal('2');
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

  it('give the same node if only its digest is compared, whatever its texts look like', () => {
    let [changed, same] = [0, 0];
    /** A node, and the same node with another status, or with one other part of the rest. */
    const heartbeats = fc.tuple(nodeWith('1'), nodeWith('2'), fc.constantFrom('', '', 'labels', 'annotations', 'spec'));
    fc.assert(
      fc.property(heartbeats, ([first, other, part]) => {
        const [one, two] = [first.metadata as JsonObject, other.metadata as JsonObject];
        const mixed: JsonObject = { ...one, ...(part === '' || part === 'spec' ? {} : { [part]: two[part] }) };
        const { labels, annotations } = mixed;
        const spec = part === 'spec' ? other.spec : first.spec;
        const metadata = { ...one, resourceVersion: '2', labels, annotations, managedFields: two.managedFields };
        const second = { ...other, metadata, spec };
        let [stored, statuses] = [readNode(first), 0];
        const lookUp = () => stored;
        const read = rememberDigests<Node>((sections, before, isStatus) => {
          statuses += isStatus ? 1 : 0;
          return readNodeSections(sections, before, isStatus);
        }, lookUp);
        const next = (object: JsonObject): Node => {
          const sections = sectionsOf(lineOf(object));
          stored = (sections && read(sections)) ?? readNode(object);
          return stored;
        };
        // The first event of an object is parsed: nothing is known about what was listed.
        expect(next(first)).to.deep.equal(readNode(first));
        expect(statuses).to.equal(0);
        expect(next(second)).to.deep.equal(readNode(second));
        const rest = (object: JsonObject) =>
          JSON.stringify([{ ...(object.metadata as JsonObject), resourceVersion: '', managedFields: [] }, object.spec]);
        if (statuses > 0) expect(rest(second)).to.equal(rest(first));
        if (rest(second) === rest(first)) same += statuses;
        else changed += 1;
      }),
    );
    expect(same, 'events that changed only the status').to.be.above(10);
    expect(changed, 'events that changed more').to.be.above(10);
  });

  it('are parsed if the stored object is not the one whose digest is known', () => {
    const [first] = fc.sample(nodeWith('1'), { numRuns: 1, seed: 1 });
    const sections = sectionsOf(lineOf(first ?? {}));
    if (sections === undefined) throw new Error('not cut');
    let stored = readNode(first ?? {});
    const seen: boolean[] = [];
    const read = rememberDigests<Node>(
      (parts, before, isStatus) => {
        seen.push(isStatus);
        return readNodeSections(parts, before, isStatus);
      },
      () => stored,
    );
    stored = read(sections) ?? stored;
    stored = read(sections) ?? stored;
    // As a list or a write stores it.
    stored = { ...stored, labels: { other: 'value' } };
    stored = read(sections) ?? stored;
    expect(seen).to.deep.equal([false, true, false]);
    expect(stored).to.deep.equal(readNode(first ?? {}));
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
    [
      'an object without a name at its beginning',
      '{"type":"MODIFIED","object":{"metadata":{"x":1,"managedFields":[]},"spec":{},"status":{}}}',
    ],
  ] as const) {
    it(`are not cut out of ${what}`, () => {
      expect(sectionsOf(Buffer.from(line))).to.equal(undefined);
    });
  }

  it('are nothing where they are not JSON', () => {
    const begin = '{"name":"a","uid":"u","resourceVersion":"1"';
    const line = `{"type":"MODIFIED","object":{"metadata":${begin},"x,"managedFields":[]},"spec":{"x},"status":{"architecture":"s390x","type":"Ready","status":"True","x}}}`;
    const sections = sectionsOf(Buffer.from(line));
    expect([sections?.metadata(), sections?.spec(), sections?.status()]).to.deep.equal([
      undefined,
      undefined,
      undefined,
    ]);
    const conditions = [{ type: 'Ready', status: 'True' }];
    const before = readNode({ metadata: { uid: 'u' }, status: { nodeInfo: { architecture: 's390x' }, conditions } });
    expect(sections && readNodeSections(sections, before)).to.equal(undefined);
  });
});
