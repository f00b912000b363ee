import { expect } from 'chai';
import { createLoops } from '../../../src/controllers/loops/loops.ts';
import { createWitnesses } from '../../../src/controllers/node/witnesses.ts';
import type { Listeners } from '../../../src/controllers/watches.ts';
import type { JsonObject } from '../../../src/kit/json.ts';
import { createStore, type Store, type StoreChange, type Stored } from '../../../src/kube/watch/collection.ts';
import { NO_RULES } from '../../../src/placement/nodes/label-rules.ts';
import { type Node, readNode } from '../../../src/placement/nodes/node.ts';
import { type DaemonSet, readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import { type Namespace, readNamespace } from '../../../src/placement/objects/namespace.ts';
import { type Pod, readPod } from '../../../src/placement/objects/pod.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { known, pending, settings } from '../../placement/objects.ts';
import { createHandClock } from '../hand-clock.ts';

const ALL = { 'archaware.dev/architectures': 'all' };
const READY = { conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '1970-01-01T00:00:00Z' }] };

/** Puts an object into its store, as a watch does. */
function show<T extends Stored>(store: Store<T>, key: string, now: T, listener?: (change: StoreChange<T>) => void) {
  const before = store.get(key);
  store.put(key, now);
  listener?.({ key, now, before });
}

/** The loops of one term over stores that the test fills. Writes are recorded, and not shown in the stores. */
function arrange(given: Partial<Settings> = {}) {
  const clock = createHandClock();
  const [pods, nodes] = [createStore<Pod>(), createStore<Node>()];
  const [namespaces, daemonSets] = [createStore<Namespace>(), createStore<DaemonSet>()];
  const listeners: Listeners = {};
  const witnesses = createWitnesses(clock);
  let hasBegun = false;
  const image = { answer: known('linux/amd64') };
  const writes: string[] = [];
  let version = 0;
  const loops = createLoops({
    watches: {
      listeners,
      witnesses,
      fetchDaemonSet: async (known) => known,
      fetchNode: async (name) => nodes.get(name),
      pods: { store: pods },
      nodes: { store: nodes },
      namespaces: { store: namespaces },
      daemonSets: { store: daemonSets },
    },
    settings: () => settings(given),
    labelRules: () => NO_RULES,
    loops: ['nodes', 'pods', 'daemonsets'],
    workers: 2,
    bootstrapMs: 120_000,
    images: {
      answer: () => image.answer,
      namesOf: (image) => [image],
      canonicalOf: (image) => image,
      unusableSecrets: () => [],
    },
    serviceAccountSecrets: async () => [],
    async write({ kind, name }, patch) {
      const values = JSON.stringify(patch).match(/"value":"(amd64|arm64)"/g) ?? [];
      writes.push(`${kind} ${name}: ${values.map((text) => text.slice(9, -1)).join()}`);
      return { kind: 'recorded' };
    },
    events: { emit: () => true },
    clock,
    telemetry: {},
  });
  const metadata = (more: JsonObject) => {
    version += 1;
    return { uid: String(more.name), generation: 1, resourceVersion: String(version), ...more };
  };
  const end = new AbortController();
  let running: Promise<void> = Promise.resolve();
  return {
    ...{ writes, clock, listeners, image },
    node(architecture: string, isReady = true) {
      const name = `${architecture}-1`;
      const now = readNode({
        metadata: metadata({ name, creationTimestamp: '1970-01-01T00:00:00Z' }),
        status: { nodeInfo: { architecture }, ...(isReady ? READY : {}) },
      });
      show(nodes, name, now, (change) => {
        witnesses.seen(change, !hasBegun);
        listeners.node?.(change);
      });
    },
    namespace(name: string, labels: JsonObject = {}) {
      show(namespaces, name, readNamespace({ metadata: metadata({ name, labels }) }), listeners.namespace);
    },
    pod(name: string, annotations: JsonObject) {
      const now = readPod({
        metadata: metadata({ namespace: 'shop', name, annotations }),
        spec: { containers: [{ name: 'c', image: 'app' }] },
        status: { phase: 'Pending' },
      });
      show(pods, `shop/${name}`, now, listeners.pod);
    },
    daemonSet(name: string, annotations: JsonObject, tolerations: readonly JsonObject[] = []) {
      const now = readDaemonSet({
        metadata: metadata({ namespace: 'shop', name }),
        spec: {
          template: { metadata: { annotations }, spec: { containers: [{ name: 'c', image: 'app' }], tolerations } },
        },
        status: { observedGeneration: 1 },
      });
      show(daemonSets, `shop/${name}`, now, listeners.daemonSet);
    },
    begin() {
      hasBegun = true;
      running = loops.run(end.signal, end.signal);
    },
    /** Resolves when all has been written; fails with what was. An architecture may have to last for a while before it counts. */
    async until(...expected: readonly string[]) {
      for (let turn = 0; turn < 2_000 && !expected.every((line) => writes.includes(line)); turn++) {
        await new Promise(setImmediate);
        if (turn % 100 === 99) await clock.advance(10_000);
      }
      expect(writes).to.include.members([...expected]);
    },
    async untilTainted() {
      while (!writes.some((line) => line.startsWith('Node'))) await new Promise(setImmediate);
    },
    async idle() {
      for (let turns = 0; turns < 20; turns++) await new Promise(setImmediate);
    },
    async stop() {
      end.abort();
      await running;
    },
  };
}

describe('the loops of a term', () => {
  let world: ReturnType<typeof arrange>;
  afterEach(() => world.stop());

  for (const [what, tolerations, isTainted] of [
    ['at once if the DaemonSets that follow the cluster start there only when it is ready', [], true],
    ['only once ready if one starts before', [{ key: 'node.kubernetes.io/not-ready', operator: 'Exists' }], false],
  ] as const) {
    it(`taint a new kind of node ${what}`, async () => {
      world = arrange();
      world.namespace('shop');
      world.node('amd64');
      world.daemonSet('agent', ALL, tolerations);
      world.begin();
      await world.until('Node amd64-1: amd64,amd64');
      world.node('arm64', false);
      await world.idle();
      expect(world.writes.includes('Node arm64-1: arm64,arm64')).to.equal(isTainted);
      world.node('arm64');
      await world.until('Node arm64-1: arm64,arm64');
    });
  }

  it('taint a node that joins only when the DaemonSets that want a pod there were decided', async () => {
    world = arrange();
    world.image.answer = pending;
    world.namespace('shop');
    world.node('amd64');
    world.daemonSet('agent', {});
    world.begin();
    await world.idle();
    world.node('arm64');
    await world.idle();
    expect(world.writes).to.deep.equal([]);
    world.image.answer = known('linux/amd64');
    world.daemonSet('agent', {});
    await world.until('DaemonSet agent: amd64', 'Node arm64-1: arm64,arm64');
  });

  it('decide pods and DaemonSets again that follow the cluster, when an architecture joins', async () => {
    world = arrange();
    world.node('amd64');
    world.namespace('shop');
    world.pod('everywhere', ALL);
    world.pod('known', {});
    world.daemonSet('agent', ALL);
    world.begin();
    await world.until('Pod everywhere: amd64', 'Pod known: amd64', 'DaemonSet agent: amd64');
    const count = world.writes.filter((line) => line.startsWith('Pod known')).length;
    world.node('arm64');
    await world.until('Pod everywhere: amd64,arm64', 'DaemonSet agent: amd64,arm64');
    expect(world.writes.filter((line) => line.startsWith('Pod known')).length, 'a pod of known images').to.equal(count);
  });

  it('decide the pods and DaemonSets of a namespace again when its labels change', async () => {
    world = arrange({ namespaceSelector: [{ key: 'team', operator: 'in', values: ['a'] }] });
    world.node('amd64');
    world.namespace('shop');
    world.pod('web', {});
    world.daemonSet('agent', {});
    world.begin();
    await world.untilTainted();
    expect(world.writes.filter((line) => !line.startsWith('Node'))).to.deep.equal([]);
    world.namespace('shop', { team: 'a' });
    await world.until('Pod web: amd64', 'DaemonSet agent: amd64');
  });
});
