import { expect } from 'chai';
import fc from 'fast-check';
import { createReadiness } from '../../src/controllers/readiness.ts';
import { createTurns } from '../../src/kit/fairness/event-loop.ts';
import type { JsonObject } from '../../src/kit/json.ts';
import { createStore, type Store } from '../../src/kube/watch/collection.ts';
import type { ReadinessSamples } from '../../src/observability/metrics.ts';
import { decide } from '../../src/placement/decide.ts';
import { type DaemonSet, readDaemonSet } from '../../src/placement/objects/daemonset.ts';
import { type Namespace, readNamespace } from '../../src/placement/objects/namespace.ts';
import { type Pod, readPod } from '../../src/placement/objects/pod.ts';
import { readPodSubject } from '../../src/placement/subject.ts';
import { answer, container, node, object, owned, report } from '../analysis/readiness/world.ts';
import { requires } from '../placement/affinities.ts';
import { settings } from '../placement/objects.ts';

type Workload = {
  readonly image: string;
  readonly kind: string;
  readonly replicas: number;
  readonly cpu: string;
  readonly more: JsonObject;
  readonly ignored: boolean;
  readonly on: readonly (string | undefined)[];
};

const NODES = [node('amd64', { labels: { disk: 'ssd' } }), node('arm64')];

function counter(
  daemonSets: Store<DaemonSet>,
  pods: Store<Pod>,
  targets: readonly string[],
  clock = { monotonic: () => 0 },
  now = () => settings(),
) {
  const nodes = createStore<(typeof NODES)[number]>();
  for (const each of NODES) nodes.put(each.name, each);
  const namespaces = createStore<Namespace>();
  for (const name of ['shop', 'bank']) namespaces.put(name, readNamespace({ metadata: { name } }));
  return createReadiness({
    ...{ pods, nodes, namespaces, daemonSets, targets, settings: now },
    images: {
      namesOf: (image) => [`docker.io/library/${image}`],
      canonicalOf: (image) => image,
      unusableSecrets: () => [],
      answer: ({ image }) => answer(image),
    },
    clock,
  });
}

/** The objects of a workload and of its pods, as the API server has them once all of them exist. */
function objectsOf({ image, kind, cpu, more, ignored, on }: Workload, name: string, namespace: string): JsonObject[] {
  const pod = { containers: [container(image, cpu)], ...more };
  const uid = `${namespace}-${name}`;
  const labels = ignored ? { 'archaware.dev/ignore': 'true' } : { app: name };
  const top = { kind, namespace, name, pod, labels, metadata: { uid } };
  const own =
    kind === 'DaemonSet'
      ? object({ ...top, status: { desiredNumberScheduled: on.length } })
      : object({ ...top, spec: { replicas: on.length } });
  return [
    own,
    ...on.map((nodeName, index) => {
      const metadata = { uid: `${uid}-${index}`, ...owned(kind, name, uid) };
      const affinity = requires({ matchFields: [{ key: 'metadata.name', operator: 'In', values: [nodeName] }] });
      const placed = {
        ...pod,
        ...(nodeName === undefined ? {} : { nodeName }),
        ...(kind === 'DaemonSet' ? { affinity } : {}),
      };
      return object({ kind: 'Pod', namespace, name: `${name}-${index}`, labels, metadata, pod: placed });
    }),
  ];
}

const workloads: fc.Arbitrary<Workload> = fc
  .record({
    image: fc.constantFrom('web', 'a-amd64', 'b-arm64', 'gone', 'c-s390x'),
    kind: fc.constantFrom('StatefulSet', 'DaemonSet'),
    replicas: fc.integer({ min: 0, max: 3 }),
    cpu: fc.constantFrom('100m', '2'),
    more: fc.constantFrom(
      {},
      ...[{ disk: 'ssd' }, { 'kubernetes.io/arch': 'amd64' }].map((nodeSelector) => ({ nodeSelector })),
    ),
    ignored: fc.boolean(),
    nodes: fc.array(fc.constantFrom('amd64-1', 'arm64-1', undefined), { minLength: 3, maxLength: 3 }),
  })
  .map(({ nodes, ...workload }) => ({ ...workload, on: nodes.slice(0, workload.replicas) }));

const sumOf = (counts: ReadinessSamples['pods'], target: string, namespace: string, state: string) => {
  const found = counts.filter((each) => each.target === target && each.namespace === namespace && each.state === state);
  return [
    found.reduce((sum, each) => sum + each.pods, 0),
    Math.round(found.reduce((sum, each) => sum + each.cpu, 0) * 1e6) / 1e6,
  ];
};

describe('the metrics of readiness', () => {
  it('agree with report and plan at every moment of random histories', async () => {
    const change = fc.record({
      name: fc.constantFrom('a', 'b', 'c'),
      namespace: fc.constantFrom('shop', 'bank'),
      workload: fc.option(workloads),
    });
    const targets = ['amd64', 'arm64', 's390x'];
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 8 }), async (history) => {
        const now = new Map<string, JsonObject[]>();
        for (const { name, namespace, workload } of history) {
          if (workload === null) now.delete(`${namespace}/${name}`);
          else now.set(`${namespace}/${name}`, objectsOf(workload, name, namespace));
          const objects = [...now.values()].flat();
          const [pods, daemonSets] = [createStore<Pod>(), createStore<DaemonSet>()];
          for (const each of objects) {
            const pod = each.kind === 'Pod' ? readPod(each) : undefined;
            if (pod !== undefined) pods.put(`${pod.namespace}/${pod.name}`, pod);
            const set = each.kind === 'DaemonSet' ? readDaemonSet(each) : undefined;
            if (set !== undefined) daemonSets.put(`${set.namespace}/${set.name}`, set);
          }
          const { pods: counts } = await counter(daemonSets, pods, targets)(createTurns({ monotonic: () => 0 }));
          const made = report({ objects, nodes: NODES, targets });
          // What `plan` says where the images run.
          for (const pod of pods.values()) {
            const name = pod.owner?.name;
            const found = made.workloads.find((each) => each.namespace === pod.namespace && each.name === name);
            const subject = readPodSubject(pod, { name: pod.namespace, labels: {}, preferred: undefined }, settings());
            if (subject.skipped !== undefined) continue;
            const answerOf = ({ image }: { readonly image: string }) => answer(image);
            const knowledge = { clusterArchitectures: targets, namesOf: () => [], answerOf, waitedMs: 0 };
            const decision = decide(subject, knowledge);
            for (const target of targets) {
              const runs = decision.kind === 'place' && decision.architectures.includes(target);
              const state = found?.verdicts[target]?.state;
              if (state === 'ready') expect([name, target, runs]).to.deep.equal([name, target, true]);
              if (state === 'blocked') expect([name, target, runs]).to.deep.equal([name, target, false]);
            }
          }
          for (const target of targets) {
            for (const of of ['shop', 'bank']) {
              const own = made.workloads.filter((each) => each.namespace === of);
              for (const state of ['ready', 'pinned', 'blocked', 'unknown'] as const) {
                const reported = own.filter(({ verdicts }) => {
                  const found = verdicts[target]?.state;
                  return found === state || (state === 'blocked' && found === 'missing');
                });
                const sum = (field: 'replicas' | 'cpu') => reported.reduce((total, each) => total + each[field], 0);
                expect([target, of, state, ...sumOf(counts, target, of, state)]).to.deep.equal([
                  ...[target, of, state, sum('replicas'), Math.round(sum('cpu') * 1e6) / 1e6],
                ]);
              }
            }
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  it('say what pods run on, which image blocks, and are bounded', async () => {
    const pods = createStore<ReturnType<typeof readPod>>();
    const put = (each: JsonObject) => {
      const pod = readPod(each);
      pods.put(`${pod.namespace}/${pod.name}`, pod);
    };
    const pod = (name: string, image: string, more: JsonObject = {}) =>
      object({ kind: 'Pod', name, metadata: { uid: name }, pod: { containers: [container(image, '2')], ...more } });
    put(pod('one', 'a-amd64', { nodeName: 'amd64-1' }));
    put(pod('two', 'a-amd64'));
    put({ ...pod('done', 'a-amd64'), status: { phase: 'Succeeded' } });
    for (let index = 0; index < 30; index++) put(pod(`many-${index}`, `x${index}-amd64`, { nodeName: 'amd64-1' }));
    const { pods: counts, images } = await counter(createStore<DaemonSet>(), pods, ['arm64'])(
      createTurns({ monotonic: () => 0 }),
    );
    const GiB = 1024 ** 3;
    const blocked = { target: 'arm64', namespace: 'shop', state: 'blocked' };
    expect(counts).to.deep.equal([
      { ...blocked, architecture: 'amd64', pods: 31, cpu: 62, memory: 31 * GiB },
      { ...blocked, architecture: 'none', pods: 1, cpu: 2, memory: GiB },
    ]);
    expect(images[0]).to.deep.equal({ target: 'arm64', image: 'a-amd64', cpu: 4 });
    expect(images).to.have.lengthOf(20);
  });

  it('are counted again the later the longer it took, with names that are cut', async () => {
    const pods = createStore<ReturnType<typeof readPod>>();
    const long = `${'y'.repeat(600)}-amd64`;
    pods.put('shop/one', readPod(object({ kind: 'Pod', name: 'one', pod: { containers: [container(long)] } })));
    let now = 0;
    const slow = () => {
      now += 200;
      return settings();
    };
    const count = counter(createStore<DaemonSet>(), pods, ['arm64'], { monotonic: () => now }, slow);
    const turns = createTurns({ monotonic: () => 0 });
    const first = count(turns);
    expect((await first).images.map(({ image }) => image.length)).to.deep.equal([500]);
    const took = now;
    now = 50 * took - 1;
    expect(count(turns)).to.equal(first);
    now += 1;
    expect(count(turns)).not.to.equal(first);
  });
});
