import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import { type DaemonSet, readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import {
  boundedLabels,
  isStub,
  stubOfDaemonSet,
  stubOfPod,
  weightOfDaemonSet,
  weightOfPod,
  wholePod,
} from '../../../src/placement/objects/large.ts';
import { type Pod, readPod } from '../../../src/placement/objects/pod.ts';
import { FLOODS, type Parts } from '../../support/large-objects.ts';

const MOST = 16 * 1024;
const digest = (text: string) => `${text.length} ${text.slice(0, 20)}`;

function pod({ labels, annotations, spec, status }: Parts): Pod {
  return readPod({
    metadata: { name: 'big', namespace: 'shop', uid: 'u', generation: 1, resourceVersion: '7', labels, annotations },
    spec: { containers: [{ name: 'c', image: 'app' }], ...spec },
    status,
  });
}

function daemonSet({ labels, annotations, spec }: Parts): DaemonSet {
  const metadata = {
    name: 'big',
    namespace: 'shop',
    uid: 'u',
    generation: 1,
    resourceVersion: '7',
    labels,
    annotations,
  };
  return readDaemonSet({ metadata, spec: { template: { metadata, spec: { containers: [], ...spec } } } });
}

describe('an object that the API server accepts, of one tenant', () => {
  for (const [name, parts] of FLOODS) {
    it(`as a pod takes a few KB at most: ${name}`, () => {
      const read = pod(parts);
      const isLarge = weightOfPod(read, MOST) > MOST;
      const kept = isLarge ? stubOfPod(read, () => 'd'.repeat(44)) : read;
      expect(JSON.stringify(kept).length).to.be.below(16_000);
      if (isLarge) expect(isStub(kept)).to.equal(true);
    });

    it(`as a DaemonSet takes a few KB at most: ${name}`, () => {
      const read = daemonSet(parts);
      const kept = weightOfDaemonSet(read, MOST) > MOST ? stubOfDaemonSet(read) : read;
      expect(JSON.stringify(kept).length).to.be.below(16_000);
    });
  }
});

describe('what is kept of a large pod', () => {
  const labels: Record<string, string> = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`k${at}`, 'v']));
  const given = (more: JsonObject = {}): Pod => pod({ labels: { ...labels, ...more } });

  it('is what its queue, the metrics and its node need', () => {
    const read = pod({
      labels: { ...labels, 'archaware.dev/ignore': 'true' },
      spec: { nodeName: 'n1', schedulingGates: [{ name: 'archaware.dev/architecture' }] },
      status: { phase: 'Pending' },
    });
    const kept = stubOfPod(read, digest);
    const { namespace, name, uid, generation, resourceVersion, phase, nodeName } = kept;
    expect({ namespace, name, uid, generation, resourceVersion, phase, nodeName }).to.deep.equal({
      namespace: 'shop',
      name: 'big',
      uid: 'u',
      generation: 1,
      resourceVersion: '7',
      phase: 'Pending',
      nodeName: 'n1',
    });
    expect(kept.labels).to.deep.equal({ 'archaware.dev/ignore': 'true' });
    expect(kept.gated).not.to.equal(undefined);
    expect([kept.images, kept.tolerations, kept.pullSecrets]).to.deep.equal([[], undefined, []]);
  });

  it('has a digest that changes with everything that is not kept', () => {
    const kept = stubOfPod(given(), digest);
    expect(stubOfPod(given(), digest).large).to.equal(kept.large);
    expect(wholePod(given(), digest).large).to.equal(kept.large);
    expect(stubOfPod(given({ more: 'x' }), digest).large).not.to.equal(kept.large);
  });

  it('has the same list of broken containers after an event that changes nothing in it', () => {
    const object = {
      metadata: { uid: 'u', generation: 1, labels },
      spec: { containers: [{ name: 'c', image: 'app' }] },
      status: { containerStatuses: [{ name: 'c', state: { waiting: { reason: 'CrashLoopBackOff' } } }] },
    };
    const kept = stubOfPod(readPod(object), digest);
    expect(kept.broken).to.have.length(1);
    expect(stubOfPod(readPod(object, kept), digest).broken).to.equal(kept.broken);
  });

  it('is never used as the whole pod when the next event comes', () => {
    const object = { metadata: { uid: 'u', generation: 1, labels }, spec: { containers: [{ image: 'app' }] } };
    const next = readPod(object, stubOfPod(readPod(object), digest));
    expect(next).to.deep.equal(readPod(object));
  });
});

describe('labels of nodes and namespaces', () => {
  const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`example.com/label-${at}`, 'v']));

  it('are kept as they are if they are not too many', () => {
    const labels = { app: 'web' };
    expect(boundedLabels(labels)).to.equal(labels);
  });

  it('are kept up to a number of bytes, those of Kubernetes and of archaware first', () => {
    const ours = { 'kubernetes.io/arch': 'arm64', 'topology.kubernetes.io/zone': 'a', 'archaware.dev/ignore': 'true' };
    const kept = boundedLabels({ ...many, ...ours });
    expect(JSON.stringify(kept).length).to.be.below(64 * 1024);
    expect(kept).to.include(ours);
    expect(Object.keys(kept).length).to.be.above(100);
  });
});
