import { expect } from 'chai';
import type { PlacementState } from '../../src/controllers/placement-state.ts';
import { createWrongNodeController } from '../../src/controllers/wrong-node.ts';
import type { Eviction } from '../../src/kube/eviction.ts';
import { createStore } from '../../src/kube/store.ts';
import type { Decision } from '../../src/placement/decide.ts';
import { type Namespace, readNamespace } from '../../src/placement/eligibility.ts';
import type { ImageAnswer } from '../../src/placement/images.ts';
import type { JsonObject } from '../../src/placement/json.ts';
import { type Node, readNode } from '../../src/placement/node.ts';
import { type Pod, readPod } from '../../src/placement/pod.ts';
import type { Settings } from '../../src/placement/settings.ts';
import { known, pending, settings, taint } from '../placement/objects.ts';
import { createHandClock } from './hand-clock.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const NEVER = new AbortController().signal;
const PLACED: Decision = {
  kind: 'place',
  architectures: ['amd64'],
  basis: 'images',
  followsCluster: false,
  os: undefined,
  failed: [],
  unknown: [],
  images: [],
};

/** A cluster of one node of each architecture, an image for amd64, and pods that are bound to arm64. */
function arrange(given: Partial<Settings> = { onWrongNode: 'evict' }) {
  const clock = createHandClock();
  const [pods, nodes, namespaces] = [createStore<Pod>(), createStore<Node>(), createStore<Namespace>()];
  const podStates = new Map<string, PlacementState>();
  const daemonSetStates = new Map<string, PlacementState>();
  const world = {
    settings: settings(given),
    answer: known('linux/amd64'),
    stale: false,
    /** What the API server answers an eviction. */
    eviction: { kind: 'evicted' } as Eviction,
    managedFields: [] as JsonObject[],
  };
  const evicted: string[] = [];
  const told: string[] = [];
  const counted: string[] = [];
  namespaces.put('shop', readNamespace({ metadata: { name: 'shop' } }));
  for (const architecture of ['amd64', 'arm64']) {
    nodes.put(
      architecture,
      readNode({
        metadata: { name: architecture },
        spec: { taints: [taint(`supported-arch=${architecture}:NoSchedule`)] },
        status: { nodeInfo: { architecture } },
      }),
    );
  }
  const state = (decision: PlacementState['decision']): PlacementState => ({
    uid: '',
    read: '',
    final: true,
    at: 0,
    settings: world.settings,
    decision,
  });
  const controller = createWrongNodeController({
    pods,
    nodes,
    namespaces,
    podStates,
    daemonSetStates,
    clock,
    settings: () => world.settings,
    clusterArchitectures: () => ['amd64', 'arm64'],
    images: {
      answer: (): ImageAnswer => world.answer,
      isStale: () => world.stale,
      namesOf: () => [],
      canonicalOf: (image) => `canonical/${image}`,
    },
    evictor: {
      fetch: async ({ name }) => ({ metadata: { name, managedFields: world.managedFields } }),
      async evict({ name }) {
        if (world.eviction.kind === 'evicted') evicted.push(name);
        return world.eviction;
      },
    },
    events: { emit: ({ reason, note }) => told.push(`${reason}: ${note}`) > 0 },
    onWrongNode: (reason, action) => counted.push(`${reason} ${action}`),
  });
  /** Adds a bound pod and what was decided for it; gives its key. */
  function pod(name: string, { owner = 'web', kind = 'ReplicaSet', metadata = {}, status = {} } = {}): string {
    const ownerReferences = [{ kind, name: owner, uid: owner, controller: true }];
    const object = {
      metadata: { namespace: 'shop', name, uid: name, ownerReferences, ...metadata },
      spec: { nodeName: 'arm64', containers: [{ image: 'app' }] },
      status,
    };
    pods.put(`shop/${name}`, readPod(object));
    if (kind !== 'DaemonSet') podStates.set(`shop/${name}`, state(PLACED));
    return `shop/${name}`;
  }
  return {
    ...{ clock, world, controller, pods, podStates, daemonSetStates, evicted, told, counted, pod },
    decidedForDaemonSet: (key: string, decision: PlacementState['decision'] = PLACED) =>
      daemonSetStates.set(key, state(decision)),
    run: (key: string) => controller.reconcile(key, NEVER),
  };
}

describe('a pod that is found on a wrong node', () => {
  it('is told of and counted once while it stays, and told again after half an hour', async () => {
    const { pod, run, clock, told, counted } = arrange({ onWrongNode: 'warn' });
    const key = pod('a');
    expect(await run(key)).to.deep.equal({ outcome: 'held', againInMs: 10 * MINUTE });
    await run(key);
    expect(told).to.have.lengthOf(1);
    expect(told[0]).to.equal(
      'WrongNode: bound to node arm64 (arm64), which does not run all of its images; not evicted: pods.onWrongNode is warn; app (linux/amd64)',
    );
    await clock.advance(30 * MINUTE);
    await run(key);
    expect(told).to.have.lengthOf(2);
    expect(counted).to.deep.equal(['platforms warned']);
  });

  it('is told of and counted anew when a container has died of it', async () => {
    const { pod, run, counted, told } = arrange({ onWrongNode: 'warn' });
    await run(pod('a'));
    const message = 'exec /app: exec format error';
    const died = { name: 'main', state: { terminated: { message } } };
    await run(pod('a', { status: { containerStatuses: [died] } }));
    expect(told[1]).to.match(/container main died with an exec format error/);
    expect(counted).to.deep.equal(['platforms warned', 'exec-format-error warned']);
  });

  it('is evicted, and the next one ten seconds later', async () => {
    const { pod, run, clock, evicted, told, counted } = arrange();
    const [a, b] = [pod('a'), pod('b', { owner: 'api' })];
    expect(await run(a)).to.deep.equal({ outcome: 'written' });
    expect(await run(b)).to.deep.equal({ outcome: 'waiting', againInMs: 10 * SECOND });
    expect(evicted).to.deep.equal(['a']);
    await clock.advance(10 * SECOND);
    await run(b);
    expect(evicted).to.deep.equal(['a', 'b']);
    expect(told.map((text) => text.split('; ')[1])).to.deep.equal(['evicted', 'evicted']);
    expect(counted).to.deep.equal(['platforms evicted', 'platforms evicted']);
  });

  it('stays where three of its owner were evicted, until that is ten minutes ago', async () => {
    const { pod, run, clock, evicted, told, counted } = arrange();
    for (const name of ['a', 'b', 'c']) {
      await run(pod(name));
      await clock.advance(10 * SECOND);
    }
    const key = pod('d');
    expect(await run(key)).to.deep.equal({ outcome: 'held', againInMs: 10 * MINUTE - 30 * SECOND });
    expect(told.at(-1)).to.match(/not evicted: 3 pods of its ReplicaSet were evicted within 10 minutes/);
    expect(counted.at(-1)).to.equal('platforms warned');
    await clock.advance(10 * MINUTE - 30 * SECOND);
    await run(key);
    expect(evicted).to.deep.equal(['a', 'b', 'c', 'd']);
  });

  it('is tried again later each time while a budget keeps it, and holds up nobody else', async () => {
    const { pod, run, world, told, counted, evicted } = arrange();
    const key = pod('a');
    world.eviction = { kind: 'blocked', reason: 'a budget' };
    const waits = [];
    for (let attempt = 0; attempt < 7; attempt++) waits.push((await run(key)).againInMs);
    expect(waits).to.deep.equal([10, 20, 40, 80, 160, 300, 300].map((seconds) => seconds * SECOND));
    expect(told).to.have.lengthOf(1);
    expect(told[0]).to.match(/its eviction is blocked and will be tried again: a budget; /);
    world.eviction = { kind: 'evicted' };
    await run(pod('b', { owner: 'api' }));
    expect(evicted).to.deep.equal(['b']);
    expect(counted).to.deep.equal(['platforms blocked', 'platforms evicted']);
  });

  it('is left to itself where it is gone by then', async () => {
    const { pod, run, world, told } = arrange();
    world.eviction = { kind: 'gone' };
    expect(await run(pod('a'))).to.deep.equal({ outcome: 'unchanged' });
    expect(told).to.deep.equal([]);
  });

  it('stays where the whole pod shows that it would come back', async () => {
    const { pod, run, world, evicted, told } = arrange();
    world.managedFields = [{ manager: 'kube-controller-manager', fieldsV1: { 'f:spec': { 'f:nodeName': {} } } }];
    await run(pod('a'));
    expect(evicted).to.deep.equal([]);
    expect(told[0]).to.match(/its template names the node/);
  });

  it('waits for an image that is asked for, and goes by what had to be guessed in no case', async () => {
    const { pod, run, world, controller, evicted, told } = arrange();
    const key = pod('a');
    world.answer = pending;
    expect(await run(key)).to.deep.equal({ outcome: 'unchanged' });
    expect(controller.waitingFor('canonical/app')).to.deep.equal([key]);
    [world.answer, world.stale] = [known('linux/amd64'), true];
    await run(key);
    expect(told).to.deep.equal([]);
    world.stale = false;
    await run(key);
    expect(evicted).to.deep.equal(['a']);
    expect(controller.waitingFor('canonical/app')).to.deep.equal([]);
  });

  it('is told of as one that died only when what its images run on has been asked', async () => {
    const { pod, run, world, told } = arrange();
    const state = { terminated: { message: 'exec format error' } };
    const key = pod('a', { status: { containerStatuses: [{ name: 'main', state }] } });
    world.answer = pending;
    await run(key);
    expect(told).to.deep.equal([]);
    [world.answer, world.stale] = [known('linux/amd64'), true];
    await run(key);
    expect(told[0]).to.match(/main died .*; not evicted: it is not known for certain .*; not known: app$/);
  });

  const alone: [given: string, what: Parameters<ReturnType<typeof arrange>['pod']>[1]][] = [
    ['is ignored', { metadata: { labels: { 'archaware.dev/ignore': 'true' } } }],
    ['is a mirror pod', { metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' } } }],
    ['is being deleted', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }],
    ['has ended', { status: { phase: 'Failed' } }],
  ];
  for (const [given, what] of alone) {
    it(`is left alone where it ${given}`, async () => {
      const { pod, run, told, evicted } = arrange();
      expect(await run(pod('a', what))).to.deep.equal({ outcome: 'unchanged' });
      expect([told, evicted]).to.deep.equal([[], []]);
    });
  }
});

describe('which pods are looked at', () => {
  it('are those whose decision does not go with their node', () => {
    const { pod, controller, podStates } = arrange();
    const key = pod('a');
    expect(controller.suspects(key)).to.equal(true);
    podStates.delete(key);
    expect(controller.suspects(key)).to.equal(false);
    expect(controller.suspects('shop/nobody')).to.equal(false);
  });

  it('are those of a DaemonSet once for each of its decisions, and none is evicted', async () => {
    const { pod, run, controller, decidedForDaemonSet, told, evicted } = arrange();
    const key = pod('agent-1', { owner: 'agent', kind: 'DaemonSet' });
    pod('web-1');
    expect(controller.suspects(key)).to.equal(false);
    decidedForDaemonSet('shop/agent');
    expect(controller.podsOf('shop/agent')).to.deep.equal([key]);
    expect(controller.podsOf('shop/agent')).to.deep.equal([]);
    expect(controller.suspects(key)).to.equal(true);
    await run(key);
    expect([evicted, told[0]?.includes('its DaemonSet would make another one here')]).to.deep.equal([[], true]);
  });

  it('are none of a DaemonSet that is left alone', async () => {
    const { pod, run, controller, decidedForDaemonSet, told } = arrange();
    const message = 'exec format error';
    const status = { containerStatuses: [{ name: 'c', state: { waiting: { message } } }] };
    const key = pod('agent-1', { owner: 'agent', kind: 'DaemonSet', status });
    decidedForDaemonSet('shop/agent', { kind: 'skip', reason: 'ignored' });
    if (controller.suspects(key)) await run(key);
    expect(told).to.deep.equal([]);
  });

  it('are remembered until they are gone or in the right place', async () => {
    const { pod, run, world, pods, controller } = arrange({ onWrongNode: 'warn' });
    const [a, b] = [pod('a'), pod('b')];
    await run(a);
    await run(b);
    expect([controller.found(), controller.found('amd64')]).to.deep.equal([[a, b], []]);
    pods.delete(a);
    controller.suspects(a);
    world.answer = known('linux/arm64');
    await run(b);
    expect(controller.found('arm64')).to.deep.equal([]);
  });
});
