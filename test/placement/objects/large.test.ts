import { expect } from 'chai';
import { readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import { readPod } from '../../../src/placement/objects/pod.ts';
import { keptDaemonSet, keptPod, withBoundedLabels } from '../../../src/placement/objects/too-large.ts';
import { FLOODS, type Parts } from '../../support/large-objects.ts';

const METADATA = { name: 'big', namespace: 'shop', uid: 'u', generation: 1, resourceVersion: '7' };
const GATE = { name: 'archaware.dev/architecture' };

function podObject({ labels, annotations, spec, status }: Parts) {
  const metadata = { ...METADATA, labels, annotations };
  return { metadata, spec: { containers: [{ name: 'c', image: 'app' }], ...spec }, status };
}

function daemonSetObject({ labels, annotations, spec }: Parts) {
  const metadata = { ...METADATA, labels, annotations };
  return { metadata, spec: { template: { metadata, spec: { containers: [], ...spec } } } };
}

function many(count: number, value = 'v') {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`key-${at}`, value]));
}

describe('an object that the API server accepts, of one tenant', () => {
  for (const [name, parts] of FLOODS) {
    it(`as a pod or a DaemonSet takes less than 20 KB: ${name}`, () => {
      const [pod, daemonSet] = [readPod(podObject(parts)), readDaemonSet(daemonSetObject(parts))];
      expect(JSON.stringify(keptPod(pod)).length).to.be.below(pod.tooLarge ? 1_000 : 20_000);
      expect(JSON.stringify(keptDaemonSet(daemonSet)).length).to.be.below(daemonSet.template.tooLarge ? 1_500 : 20_000);
    });
  }
});

describe('an object is too large', () => {
  const rows: readonly [what: string, is: boolean, parts: Parts][] = [
    ['with the labels of a usual one', false, { labels: many(20) }],
    ['with 100 labels', false, { labels: many(100) }],
    ['with 300 labels', true, { labels: many(300) }],
    ['with a node selector of 300 labels', true, { spec: { nodeSelector: many(300) } }],
    [
      'with 50 images and 50 tolerations',
      false,
      {
        spec: {
          containers: Array.from({ length: 50 }, (_, at) => ({ image: `registry.example.com/team/app-${at}:1.27.3` })),
          tolerations: Array.from({ length: 50 }, (_, at) => ({ key: `${at}` })),
        },
      },
    ],
  ];
  for (const [what, is, parts] of rows) {
    it(`${what}: ${is}`, () => {
      const found = [readPod(podObject(parts)).tooLarge, readDaemonSet(daemonSetObject(parts)).template.tooLarge];
      expect(found.map((bytes) => bytes !== undefined)).to.deep.equal([is, is]);
      for (const bytes of found) if (bytes !== undefined) expect(bytes).to.be.above(16 * 1024);
    });
  }

  it('or not by the labels that it has now, although its generation stays', () => {
    const small = podObject({ labels: many(2) });
    const large = podObject({ labels: many(300) });
    let before = readPod(small);
    const sizes = [small, large, small, large].map((object) => {
      before = keptPod(readPod(object, before));
      return before.tooLarge !== undefined;
    });
    expect(sizes).to.deep.equal([false, true, false, true]);
    const again = readPod(small, keptPod(readPod(large)));
    expect(again).to.deep.equal(readPod(small));
  });

  it('not because of the record that archaware writes to a DaemonSet about its images', () => {
    const recorded = JSON.stringify({ images: ['x'.repeat(10_000)], tolerations: [] });
    const read = readDaemonSet(
      daemonSetObject({ annotations: { 'archaware.dev/tolerations': recorded }, spec: { nodeSelector: many(200) } }),
    );
    expect(read.template.tooLarge).to.equal(undefined);
  });
});

describe('what is kept of a pod that is too large', () => {
  it('is what a skipped pod is handled by', () => {
    const labels = { ...many(300), 'archaware.dev/ignore': 'true' };
    const ownerReferences = [{ controller: true, apiVersion: 'v1', kind: 'Job', name: 'n'.repeat(400_000), uid: 'o' }];
    const object = podObject({ labels, spec: { nodeName: 'n1', schedulingGates: [{ name: 'other' }, GATE] } });
    const kept = keptPod(readPod({ ...object, metadata: { ...object.metadata, ownerReferences } }));
    const { labels: left, gated, nodeName, images, tolerations, generation, resourceVersion } = kept;
    expect({ left, nodeName, images, tolerations, generation, resourceVersion }).to.deep.equal({
      ...{ left: { 'archaware.dev/ignore': 'true' }, nodeName: 'n1', images: [], tolerations: undefined },
      ...{ generation: 1, resourceVersion: '7' },
    });
    expect(gated).to.deep.equal({
      gates: [{ name: 'other' }, GATE],
      affinity: undefined,
      nodeSelector: undefined,
      ours: [],
    });
    expect(kept.owner?.name).to.have.length(254);
  });

  it('has no list of gates that its author made long', () => {
    const schedulingGates = [GATE, ...Array.from({ length: 5_000 }, (_, at) => ({ name: `example.com/${at}` }))];
    expect(keptPod(readPod(podObject({ spec: { schedulingGates } }))).gated).to.equal(undefined);
  });

  it('is all of any other pod, but not all of thousands of broken containers with one image', () => {
    const names = Array.from({ length: 5_000 }, (_, at) => `c${at}`);
    const status = {
      containerStatuses: names.map((name) => ({ name, state: { waiting: { reason: 'CrashLoopBackOff' } } })),
    };
    const object = podObject({ spec: { containers: names.map((name) => ({ name, image: 'app' })) }, status });
    const read = keptPod(readPod(object));
    expect(read.tooLarge).to.equal(undefined);
    expect(read.broken?.length).to.be.within(32, 200);
    expect(readPod(object, read).broken).to.equal(read.broken);
  });
});

describe('labels of nodes and namespaces', () => {
  const labels = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`example.com/label-${at}`, 'v']));

  it('are kept as they are if they are not too many', () => {
    const object = { labels: { app: 'web' } };
    expect(withBoundedLabels(object)).to.equal(object);
  });

  it('are kept up to a number of bytes, those of Kubernetes and of archaware first', () => {
    const ours = { 'kubernetes.io/arch': 'arm64', 'topology.kubernetes.io/zone': 'a', 'archaware.dev/ignore': 'true' };
    const kept = withBoundedLabels({ labels: { ...labels, ...ours } }).labels;
    expect(JSON.stringify(kept).length).to.be.below(64 * 1024);
    expect(kept).to.include(ours);
    expect(Object.keys(kept).length).to.be.above(100);
  });
});
