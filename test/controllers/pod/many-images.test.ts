import { expect } from 'chai';
import type { ImageSource } from '../../../src/controllers/image-source.ts';
import { createPodController } from '../../../src/controllers/pod/controller.ts';
import { createController } from '../../../src/kube/control-loop.ts';
import { createStore } from '../../../src/kube/watch/collection.ts';
import type { Namespace } from '../../../src/placement/objects/namespace.ts';
import { type Pod, readPod } from '../../../src/placement/objects/pod.ts';
import { settings } from '../../placement/objects.ts';
import { createHandClock } from '../hand-clock.ts';

const IMAGES = 60;
const KEY = 'shop/p';

describe('a pod with many images', () => {
  it('is decided once for many answers', async () => {
    const clock = createHandClock();
    const pods = createStore<Pod>();
    const namespaces = createStore<Namespace>();
    namespaces.put('shop', { name: 'shop', uid: 'n', resourceVersion: '1', labels: {}, preferred: undefined });
    const containers = Array.from({ length: IMAGES }, (_, index) => ({ name: `c${index}`, image: `i${index}` }));
    const metadata = { name: 'p', namespace: 'shop', uid: 'u', resourceVersion: '1', generation: 1 };
    pods.put(KEY, readPod({ metadata, spec: { containers } }));
    const answered = new Set<string>();
    const asked = new Map<string, number>();
    const images: ImageSource = {
      answer({ image }) {
        asked.set(image, (asked.get(image) ?? 0) + 1);
        if (!answered.has(image)) return { kind: 'pending' };
        return { kind: 'known', platforms: [{ os: 'linux', architecture: 'arm64' }] };
      },
      namesOf: (image) => [image],
      unusableSecrets: () => [],
      canonicalOf: (image) => image,
    };
    const pod = createPodController({
      pods,
      namespaces,
      settings: () => settings(),
      clusterArchitectures: () => ['amd64', 'arm64'],
      images,
      write: async () => ({ kind: 'written', object: { metadata: { ...metadata, resourceVersion: '2' } } }),
      events: { emit: () => true },
      clock,
      isPaced: true,
      onTurn() {},
      onDecided() {},
    });
    const outcomes: string[] = [];
    const { enqueue, enqueueAfter, idle, run } = createController({
      name: 'pod',
      workers: 1,
      reconcile: pod.reconcile,
      clock,
      isUrgent: () => true,
      onOutcome: (_key, _seconds, { outcome }) => outcomes.push(outcome),
    });
    const end = new AbortController();
    const running = run(end.signal, end.signal);
    const settle = async () => {
      do await new Promise((resolve) => setImmediate(resolve));
      while (!idle());
    };

    enqueue(KEY);
    await settle();
    const wanted = [...asked.keys()];
    expect(wanted).to.have.length(IMAGES);
    for (const image of wanted) {
      answered.add(image);
      for (const { key, inMs } of pod.lookupEnded(image)) enqueueAfter(key, inMs);
      await settle();
    }
    expect(outcomes).to.deep.equal(['waiting', 'written']);
    expect([...asked.values()].every((times) => times === 2)).to.equal(true);
    end.abort();
    await running;
  });
});
