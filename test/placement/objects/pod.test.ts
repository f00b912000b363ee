import { expect } from 'chai';
import { type JsonObject, objectAt } from '../../../src/kit/json.ts';
import { readNode } from '../../../src/placement/nodes/node.ts';
import { readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import { readNamespace } from '../../../src/placement/objects/namespace.ts';
import { readPod, readPullSecrets } from '../../../src/placement/objects/pod.ts';
import { prefers, requires, term } from '../affinities.ts';

const POD: JsonObject = {
  metadata: {
    namespace: 'shop',
    name: 'web-1',
    uid: 'u1',
    generation: 3,
    resourceVersion: '42',
    creationTimestamp: '2026-01-01T00:00:01Z',
    labels: { app: 'web' },
    annotations: { 'archaware.dev/architectures': 'amd64', 'kubernetes.io/config.mirror': 'h' },
    ownerReferences: [
      { kind: 'Other', name: 'o', uid: 'u0' },
      { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'u2', controller: true },
    ],
    deletionTimestamp: '2026-01-01T01:00:00Z',
  },
  spec: {
    os: { name: 'windows' },
    nodeName: 'n1',
    nodeSelector: { 'kubernetes.io/arch': 'arm64' },
    priorityClassName: 'high',
    serviceAccountName: 'robot',
    imagePullSecrets: [{ name: 'one' }, {}, { name: 'two' }],
    initContainers: [{ image: 'init', imagePullPolicy: 'Always' }],
    containers: [
      { image: 'a', imagePullPolicy: 'IfNotPresent' },
      { image: 'a', imagePullPolicy: 'IfNotPresent' },
    ],
    tolerations: [{ key: 'x', operator: 'Exists', tolerationSeconds: 300, new: { field: true } }],
  },
  status: { phase: 'Pending' },
};

describe('reading a pod', () => {
  it('reads the fields that matter, and keeps its tolerations whole', () => {
    const { labels, ...pod } = readPod(POD);
    expect({ ...labels }).to.deep.equal({ app: 'web' });
    expect(pod).to.deep.equal({
      statement: 'amd64',
      runtime: { os: 'windows', hasRuntimeClass: false },
      asked: { text: 'kubernetes.io/arch=arm64 by its nodeSelector', architectures: ['arm64'] },
      images: [
        { image: 'init', pullPolicy: 'Always' },
        { image: 'a', pullPolicy: 'IfNotPresent' },
      ],
      tolerations: [{ key: 'x', operator: 'Exists', tolerationSeconds: 300, new: { field: true } }],
      priorityClassName: 'high',
      pullSecrets: ['one', 'two'],
      serviceAccountName: 'robot',
      namespace: 'shop',
      name: 'web-1',
      written: undefined,
      uid: 'u1',
      generation: 3,
      resourceVersion: '42',
      createdAt: Date.UTC(2026, 0, 1, 0, 0, 1),
      deleting: true,
      mirror: true,
      phase: 'Pending',
      nodeName: 'n1',
      broken: undefined,
      owner: { kind: 'ReplicaSet', apiVersion: 'apps/v1', name: 'web', uid: 'u2' },
      selects: { nodeSelector: { 'kubernetes.io/arch': 'arm64' }, terms: undefined },
      requests: { cpu: 0, memory: 0 },
      gated: undefined,
      tooLarge: undefined,
    });
  });

  // archaware-controller (2022) kept every object whole: 158 MB.
  it('keeps nothing else: not annotations, managed fields, environment or status', () => {
    const long = 'x'.repeat(10_000);
    const metadata = objectAt(POD, 'metadata');
    const annotations = { ...objectAt(metadata, 'annotations'), 'example.com/note': long };
    const managedFields = [{ manager: 'm', fieldsV1: { 'f:spec': long } }];
    const status = { ...objectAt(POD, 'status'), conditions: [{ type: 'Ready', message: long }] };
    const padded = readPod({ ...POD, metadata: { ...metadata, annotations, managedFields }, status });
    expect(JSON.stringify(padded)).to.equal(JSON.stringify(readPod(POD)));
  });

  const gate = { name: 'archaware.dev/architecture' };
  const gated: [spec: JsonObject, expected: JsonObject | undefined][] = [
    [{}, undefined],
    [{ schedulingGates: [] }, undefined],
    [{ schedulingGates: [{ name: 'example.com/quota' }] }, undefined],
    [{ schedulingGates: [gate] }, { gates: [gate], affinity: undefined, nodeSelector: undefined, ours: [] }],
    [
      { schedulingGates: [{ name: 'q', new: 1 }, gate], affinity: { new: {} }, nodeSelector: { a: 'b' } },
      { gates: [{ name: 'q', new: 1 }, gate], affinity: { new: {} }, nodeSelector: { a: 'b' }, ours: [] },
    ],
    [{ schedulingGates: 'x' }, undefined],
  ];
  for (const [spec, expected] of gated)
    it(`takes what may be narrowed of a pod with the gates ${JSON.stringify(spec.schedulingGates)}`, () =>
      expect(readPod({ spec }).gated).to.deep.equal(expected));

  it('distinguishes an absent list of tolerations from an empty one', () => {
    expect(readPod({}).tolerations).to.equal(undefined);
    expect(readPod({ spec: { tolerations: null } }).tolerations).to.equal(undefined);
    expect(readPod({ spec: { tolerations: [] } }).tolerations).to.deep.equal([]);
  });

  const terms = (...each: JsonObject[]): JsonObject => ({ affinity: requires(...each) });
  const os: [spec: JsonObject, expected: string][] = [
    [{}, 'linux'],
    [{ os: { name: 'windows' } }, 'windows'],
    [{ os: { name: '' } }, 'linux'],
    [{ os: 'windows' }, 'linux'],
    [{ nodeSelector: { 'kubernetes.io/os': 'windows' } }, 'windows'],
    [{ os: {}, nodeSelector: { 'kubernetes.io/os': 'windows' } }, 'windows'],
    [{ os: { name: 'linux' }, nodeSelector: { 'kubernetes.io/os': 'windows' } }, 'linux'],
    [{ nodeSelector: { 'beta.kubernetes.io/os': 'windows' } }, 'linux'],
    [terms(term('os In windows')), 'windows'],
    [terms(term('disk In ssd,nvme', 'os In windows')), 'windows'],
    [terms(term('os In windows'), term('os In windows')), 'windows'],
    // Alternatives that do not agree on an OS.
    [terms(term('os In windows'), term('os In linux')), 'linux'],
    [terms(term('os In windows'), term('disk In ssd')), 'linux'],
    [terms(term('os In windows,linux')), 'linux'],
    [terms(term('os NotIn linux')), 'linux'],
    [terms(term('os Exists')), 'linux'],
    [terms(term('old-os In windows')), 'linux'],
    [terms(), 'linux'],
    [terms({ matchExpressions: [{ key: 'kubernetes.io/os', operator: 'In', values: [7] }] }), 'linux'],
    // More direct fields go before affinity.
    [{ ...terms(term('os In windows')), nodeSelector: { 'kubernetes.io/os': 'linux' } }, 'linux'],
    [{ ...terms(term('os In windows')), os: { name: 'linux' } }, 'linux'],
    // A preference does not count.
    [{ affinity: prefers('os In windows') }, 'linux'],
  ];
  for (const [spec, expected] of os)
    it(`takes ${JSON.stringify(spec)} for ${expected}`, () => expect(readPod({ spec }).runtime.os).to.equal(expected));

  it('keeps labels with the names of built-in properties', () => {
    const { labels } = readPod({ metadata: JSON.parse('{"labels": {"__proto__": "x", "constructor": "y", "n": 1}}') });
    expect(Object.entries(labels)).to.deep.equal([
      ['__proto__', 'x'],
      ['constructor', 'y'],
    ]);
  });
});

describe('reading a pod again', () => {
  const spec = { containers: [{ name: 'c', image: 'a' }], tolerations: [{ key: 'k' }] };
  const first = { metadata: { uid: 'u', generation: 1, resourceVersion: '5', labels: { a: 'b' } }, spec };
  const before = readPod(first);
  const again = (metadata: object, more: object = {}) =>
    readPod({ ...first, ...more, metadata: { ...first.metadata, resourceVersion: '6', ...metadata } }, before);

  it('reuses the fields that only a new generation changes', () => {
    expect(again({}).images).to.equal(before.images);
    expect(again({}).tolerations).to.equal(before.tolerations);
    expect(again({})).to.deep.equal({ ...before, resourceVersion: '6' });
  });

  it('reads everything for a new generation, another pod, and a pod without generation', () => {
    const changed = { spec: { ...spec, containers: [{ name: 'c', image: 'other' }] } };
    const images = [{ image: 'other', pullPolicy: '' }];
    expect(again({ generation: 2 }, changed).images).to.deep.equal(images);
    expect(again({ uid: 'v' }, changed).images).to.deep.equal(images);
    const uncounted = readPod({ ...first, metadata: { uid: 'u' } });
    expect(readPod({ ...changed, metadata: { uid: 'u' } }, uncounted).images).to.deep.equal(images);
  });

  it('reads the fields that change without a new generation', () => {
    expect(again({ labels: { a: 'c' } }).labels).to.deep.equal({ a: 'c' });
    expect(again({ annotations: { 'archaware.dev/architectures': 'arm64' } }).statement).to.equal('arm64');
    expect(again({ deletionTimestamp: 'x' }).deleting).to.equal(true);
    expect(again({}, { status: { phase: 'Running' } }).phase).to.equal('Running');
    expect(again({}, { spec: { ...spec, nodeName: 'n' } }).nodeName).to.equal('n');
    const owner = { kind: 'ReplicaSet', name: 'r', uid: 'x', controller: true };
    expect(again({ ownerReferences: [owner] }).owner).to.include({ kind: 'ReplicaSet', uid: 'x' });
  });
});

describe('malformed objects', () => {
  const odd = [undefined, null, 0, -1, Number.NaN, true, '', 'text', [], [null], [[]], {}, { a: 1 }, [{ a: 1 }]];
  const everyField = (names: string, value: unknown) =>
    Object.fromEntries(names.split(' ').map((name) => [name, value]));
  const readers = { readPod, readNode, readNamespace, readDaemonSet };
  const shapes: [where: string, make: (value: unknown) => JsonObject][] = [
    ['as metadata', (value) => ({ metadata: value })],
    ['as spec', (value) => ({ spec: value })],
    ['as status', (value) => ({ status: value })],
    [
      'in every field of metadata',
      (value) => ({
        metadata: everyField(
          'name namespace uid generation resourceVersion creationTimestamp deletionTimestamp labels annotations ownerReferences',
          value,
        ),
      }),
    ],
    [
      'in every field of spec',
      (value) => ({
        spec: everyField(
          'os nodeName nodeSelector containers initContainers tolerations taints imagePullSecrets template updateStrategy priorityClassName',
          value,
        ),
      }),
    ],
    [
      'in lists',
      (value) => ({ spec: { containers: [value], tolerations: [value], taints: [value], imagePullSecrets: [value] } }),
    ],
    [
      'in a template',
      (each) => ({ spec: { template: { metadata: each, spec: { containers: [each], tolerations: [each] } } } }),
    ],
    ['as an owner', (value) => ({ metadata: { ownerReferences: [value, { controller: true, kind: value }] } })],
    ['as nodeInfo', (value) => ({ status: { nodeInfo: value, phase: value, desiredNumberScheduled: value } })],
  ];
  for (const [where, make] of shapes) {
    it(`are read as far as possible, with any value ${where}`, () => {
      for (const value of odd) {
        for (const read of Object.values(readers)) expect(read(make(value))).to.be.an('object');
      }
    });
  }

  it('are left out of a list if they are not objects', () =>
    expect(readPod({ spec: { tolerations: [null, 'x', [], { key: 'k' }] } }).tolerations).to.deep.equal([
      { key: 'k' },
    ]));

  it('has each image once for each pull policy, and no name that is too long', () => {
    const read = (...images: string[]) => {
      const containers = images.map((image) => ({ image }));
      return readPod({ spec: { initContainers: [{ image: 'first' }], containers } }).images;
    };
    expect(read('a', 'first', 'a', '').map(({ image }) => image)).to.deep.equal(['first', 'a']);
    expect(read('x'.repeat(100_000)).map(({ image }) => image.length)).to.deep.equal([5, 801]);
  });

  it('keeps 32 names of pull secrets without duplicates, and one more that marks the limit', () => {
    const read = (...names: string[]) => readPullSecrets({ imagePullSecrets: names.map((name) => ({ name })) });
    const many = Array.from({ length: 20_000 }, (_, index) => `s${index}`);
    expect(read('a', 'b', 'a', '')).to.deep.equal(['a', 'b']);
    expect(read(...many.slice(0, 32))).to.have.lengthOf(32);
    expect(read(...many)).to.deep.equal(many.slice(0, 33));
    expect(read('x'.repeat(100_000)).map(({ length }) => length)).to.deep.equal([254]);
  });
});
