import { expect } from 'chai';
import {
  foundOn,
  podsOf,
  podsOn,
  reconcile,
  suspects,
  wrongNodeParts,
} from '../../../src/controllers/wrong-node/controller.ts';
import { type JsonObject, objectAt } from '../../../src/kit/json.ts';
import { createStore } from '../../../src/kube/watch/collection.ts';
import type { Eviction } from '../../../src/kube/writer.ts';
import type { ImageAnswer } from '../../../src/placement/images.ts';
import { type Node, readNode } from '../../../src/placement/nodes/node.ts';
import { type DaemonSet, readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import { type Namespace, readNamespace } from '../../../src/placement/objects/namespace.ts';
import { type Pod, readPod } from '../../../src/placement/objects/pod.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { digest, failed, known, pending, policyOf, settings, taint, toleration } from '../../placement/objects.ts';
import { createHandClock } from '../hand-clock.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const NEVER = new AbortController().signal;
const DIGEST = `app@${digest('app')}`;
/** The status of a container that crashes, with the digest of the pulled image. */
const statusOf = (more: JsonObject = {}): JsonObject => ({
  containerStatuses: [
    {
      ...{ name: 'main', imageID: `docker.io/library/${DIGEST}` },
      state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s restarting failed container' } },
      ...{ lastState: { terminated: { exitCode: 1 } }, ...more },
    },
  ],
});
/** The same, with the log in the status. */
const DIED = statusOf({ lastState: { terminated: { exitCode: 1, message: 'exec format error' } } });
const RUNNING = statusOf({ state: { running: {} } });

/** A cluster of one node of each architecture, an image for amd64, and pods that crash on arm64. */
function arrange(given: Partial<Settings> = { onWrongNode: 'evict' }) {
  const clock = createHandClock();
  const [pods, nodes, namespaces] = [createStore<Pod>(), createStore<Node>(), createStore<Namespace>()];
  const daemonSets = createStore<DaemonSet>();
  /** The pods as the API server has them. */
  const objects = new Map<string, JsonObject | undefined>();
  const world = {
    settings: settings(given),
    /** The platforms of a tag, and of a digest. */
    answer: known('linux/amd64'),
    pulled: known('linux/amd64'),
    stale: false,
    /** The API server's answer to an eviction. */
    eviction: { kind: 'evicted' } as Eviction,
    managedFields: [] as JsonObject[],
  };
  const evicted: string[] = [];
  const reported: string[] = [];
  const counted: string[] = [];
  const asked: string[] = [];
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
  const parts = wrongNodeParts({
    pods,
    nodes,
    namespaces,
    daemonSets,
    clock,
    settings: () => world.settings,
    clusterArchitectures: () => ['amd64', 'arm64'],
    images: {
      answer({ image }): ImageAnswer {
        asked.push(image);
        if (image.includes('@')) return world.pulled;
        return world.stale && world.answer.kind === 'known' ? { ...world.answer, isStale: true } : world.answer;
      },
      namesOf: () => [],
      canonicalOf: (image) => `canonical/${image}`,
    },
    evictor: {
      async fetch({ name }) {
        const object = objects.get(name);
        return (
          object && { ...object, metadata: { ...objectAt(object, 'metadata'), managedFields: world.managedFields } }
        );
      },
      async evict({ name }) {
        if (world.eviction.kind === 'evicted') evicted.push(name);
        return world.eviction;
      },
    },
    events: { emit: ({ reason, note }) => reported.push(`${reason}: ${note}`) > 0 },
    onWrongNode: (reason, action) => counted.push(`${reason} ${action}`),
  });
  /** Adds a bound pod and returns its key. */
  function pod(
    name: string,
    { owner = 'web', kind = 'ReplicaSet', metadata = {}, status = statusOf(), spec = {} } = {},
  ): string {
    const ownerReferences = [{ kind, name: owner, uid: owner, controller: true }];
    const object = {
      metadata: { namespace: 'shop', name, uid: name, ownerReferences, ...metadata },
      spec: { nodeName: 'arm64', containers: [{ name: 'main', image: 'app' }], ...spec },
      status,
    };
    pods.put(`shop/${name}`, readPod(object, pods.get(`shop/${name}`)));
    objects.set(name, object);
    return `shop/${name}`;
  }
  return {
    ...{ clock, world, parts, pods, nodes, evicted, reported, counted, asked, objects, pod },
    daemonSet: (name: string, tolerations: readonly JsonObject[], labels: JsonObject = {}) =>
      daemonSets.put(
        `shop/${name}`,
        readDaemonSet({
          metadata: { namespace: 'shop', name, uid: name, labels },
          spec: { template: { spec: { tolerations } } },
        }),
      ),
    run: (key: string) => reconcile(parts, key, NEVER),
  };
}

describe('a pod that is found on a wrong node', () => {
  it('has one Event and counts once while it stays, and another Event after half an hour', async () => {
    const { pod, run, clock, reported, counted } = arrange({ onWrongNode: 'warn' });
    const key = pod('a');
    expect(await run(key)).to.include({ outcome: 'held', againInMs: 10 * MINUTE });
    await run(key);
    expect(reported).to.have.lengthOf(1);
    expect(reported[0]).to.equal(
      `WrongNode: container main fails on node arm64 (arm64), for which its image has no platform; not evicted: pods.onWrongNode is warn (delete the pod: its ReplicaSet creates another; if its template has spec.nodeName, remove that first); pulled ${DIGEST} (linux/amd64); app (linux/amd64)`,
    );
    await clock.advance(30 * MINUTE);
    await run(key);
    expect(reported).to.have.lengthOf(2);
    expect(counted).to.deep.equal(['platforms warned']);
  });

  it('has another Event and counts once more after an exec format error', async () => {
    const { pod, run, counted, reported } = arrange({ onWrongNode: 'warn' });
    await run(pod('a'));
    await run(pod('a', { status: DIED }));
    expect(reported[1]).to.match(/container main died with an exec format error/);
    expect(counted).to.deep.equal(['platforms warned', 'exec-format-error warned']);
  });

  it('is evicted, and the next one ten seconds later', async () => {
    const { pod, run, clock, evicted, reported, counted } = arrange();
    const [a, b] = [pod('a'), pod('b', { owner: 'api' })];
    expect(await run(a)).to.include({ outcome: 'written' });
    expect(await run(b)).to.include({ outcome: 'waiting', againInMs: 10 * SECOND });
    expect(evicted).to.deep.equal(['a']);
    await clock.advance(10 * SECOND);
    await run(b);
    expect(evicted).to.deep.equal(['a', 'b']);
    expect(reported.map((text) => text.split('; ')[1])).to.deep.equal(['evicted', 'evicted']);
    expect(counted).to.deep.equal(['platforms evicted', 'platforms evicted']);
  });

  it('stays where three of its owner were evicted, until that is ten minutes ago', async () => {
    const { pod, run, clock, evicted, reported, counted } = arrange();
    for (const name of ['a', 'b', 'c']) {
      await run(pod(name));
      await clock.advance(10 * SECOND);
    }
    const key = pod('d');
    expect(await run(key)).to.include({ outcome: 'held', againInMs: 10 * MINUTE - 30 * SECOND });
    expect(reported.at(-1)).to.match(/not evicted: 3 pods of its ReplicaSet were evicted within 10 minutes/);
    expect(counted.at(-1)).to.equal('platforms warned');
    await run(pod('e', { owner: 'api' }));
    expect(evicted, 'and one of another owner').to.deep.equal(['a', 'b', 'c', 'e']);
    await clock.advance(10 * MINUTE - 30 * SECOND);
    await run(key);
    expect(evicted).to.deep.equal(['a', 'b', 'c', 'e', 'd']);
  });

  it('is retried at growing intervals while a disruption budget blocks it, and delays no other pod', async () => {
    const { pod, run, world, reported, counted, evicted } = arrange();
    const key = pod('a');
    world.eviction = { kind: 'blocked', reason: 'a budget' };
    const waits = [];
    for (let attempt = 0; attempt < 7; attempt++) waits.push((await run(key)).againInMs);
    expect(waits).to.deep.equal([10, 20, 40, 80, 160, 300, 300].map((seconds) => seconds * SECOND));
    expect(reported).to.have.lengthOf(1);
    expect(reported[0]).to.match(/its eviction is blocked and will be tried again: a budget; /);
    world.eviction = { kind: 'evicted' };
    await run(pod('b', { owner: 'api' }));
    expect(evicted).to.deep.equal(['b']);
    expect(counted).to.deep.equal(['platforms blocked', 'platforms evicted']);
  });

  it('has no Event if it is gone by then', async () => {
    const { pod, run, world, reported } = arrange();
    world.eviction = { kind: 'gone' };
    expect(await run(pod('a'))).to.include({ outcome: 'unchanged' });
    expect(reported).to.deep.equal([]);
  });

  it('stays if the whole pod shows that it would come back', async () => {
    const { pod, run, world, evicted, reported } = arrange();
    world.managedFields = [{ manager: 'kube-controller-manager', fieldsV1: { 'f:spec': { 'f:nodeName': {} } } }];
    await run(pod('a'));
    expect(evicted).to.deep.equal([]);
    expect(reported[0]).to.match(/its template names the node .*: remove that, then delete the pod/);
  });

  const meanwhile: [what: string, become: (object: JsonObject) => JsonObject | undefined][] = [
    ['runs', (object) => ({ ...object, status: RUNNING })],
    ['is another one', (object) => ({ ...object, metadata: { ...objectAt(object, 'metadata'), uid: 'another' } })],
    ['is gone', () => undefined],
  ];
  for (const [what, become] of meanwhile) {
    it(`stays if it ${what} by the time the whole pod is read`, async () => {
      const { pod, run, objects, evicted, reported } = arrange();
      const key = pod('a');
      objects.set('a', become(objects.get('a') ?? {}));
      expect(await run(key)).to.deep.equal({ outcome: 'unchanged' });
      expect([evicted, reported]).to.deep.equal([[], []]);
    });
  }

  it('is treated as its policy says', async () => {
    const policy = policyOf('p', { onWrongNode: 'evict' }, { namespaces: ['shop'] });
    const { pod, run, evicted } = arrange({ onWrongNode: 'warn', policies: [policy] });
    await run(pod('a'));
    expect(evicted).to.deep.equal(['a']);
  });

  it('waits for no lookup any more when it runs', async () => {
    const { pod, run, world, parts } = arrange();
    world.pulled = pending;
    await run(pod('a'));
    expect(parts.waiting.lookupEnded(`canonical/${DIGEST}`)).to.have.lengthOf(1);
    await run(pod('a', { status: RUNNING }));
    expect(parts.waiting.lookupEnded(`canonical/${DIGEST}`)).to.deep.equal([]);
  });

  it('waits for the lookup of the digest, then of its tags, and is never evicted on a guess', async () => {
    const { pod, run, world, parts, evicted, reported } = arrange();
    const key = pod('a');
    [world.pulled, world.answer] = [pending, pending];
    expect(await run(key)).to.include({ outcome: 'unchanged' });
    expect(parts.waiting.lookupEnded(`canonical/${DIGEST}`)).to.deep.equal([{ key, inMs: 0 }]);
    world.pulled = known('linux/amd64');
    await run(key);
    expect(parts.waiting.lookupEnded('canonical/app')).to.deep.equal([{ key, inMs: 0 }]);
    [world.answer, world.stale] = [known('linux/amd64'), true];
    await run(key);
    expect(reported[0]).to.match(/not evicted: the platforms of its images are not known for certain/);
    world.stale = false;
    await run(key);
    expect(evicted).to.deep.equal(['a']);
    expect(parts.waiting.lookupEnded('canonical/app')).to.deep.equal([]);
  });

  it('counts as found while an image is looked up again', async () => {
    const { pod, run, world, parts, reported } = arrange({ onWrongNode: 'warn' });
    const key = pod('a');
    await run(key);
    world.answer = pending;
    await run(key);
    expect([parts.found.size, [...parts.found.keys()]]).to.deep.equal([1, [key]]);
    world.answer = known('linux/amd64');
    await run(key);
    expect(reported).to.have.lengthOf(1);
  });

  it('is looked up again a minute after a failed lookup', async () => {
    const { pod, run, world, reported } = arrange();
    [world.answer, world.pulled] = [failed(1), failed(1)];
    expect(await run(pod('a'))).to.include({ outcome: 'unchanged', againInMs: MINUTE });
    expect(reported).to.deep.equal([]);
  });

  const alone: [given: string, what: Parameters<ReturnType<typeof arrange>['pod']>[1]][] = [
    ['is ignored', { metadata: { labels: { 'archaware.dev/ignore': 'true' } } }],
    ['runs, whatever its tag says by now', { status: RUNNING }],
  ];
  for (const [given, what] of alone) {
    it(`is left alone if it ${given}`, async () => {
      const { pod, run, reported, evicted } = arrange();
      expect(await run(pod('a', what))).to.include({ outcome: 'unchanged' });
      expect([reported, evicted]).to.deep.equal([[], []]);
    });
  }

  it('is left alone, without a lookup of its tags, if the pulled image has the platform of its node', async () => {
    const { pod, run, world, asked, reported } = arrange();
    world.pulled = known('linux/amd64,linux/arm64');
    expect(await run(pod('a'))).to.include({ outcome: 'unchanged', againInMs: undefined });
    expect([reported, asked]).to.deep.equal([[], [DIGEST]]);
  });
});

describe('a daemon pod on a wrong node', () => {
  const daemon = { owner: 'agent', kind: 'DaemonSet' };

  it('is evicted if its template no longer tolerates the node, even if no node would take another one', async () => {
    const { pod, run, daemonSet, evicted, world } = arrange();
    world.answer = failed(1);
    daemonSet('agent', [toleration('supported-arch=amd64:NoSchedule')]);
    expect(await run(pod('agent-1', daemon))).to.include({ outcome: 'written' });
    expect(evicted).to.deep.equal(['agent-1']);
  });

  it('stays if its DaemonSet is another one of the same name', async () => {
    const { pod, run, daemonSet, evicted } = arrange();
    daemonSet('agent', []);
    const ownerReferences = [{ kind: 'DaemonSet', name: 'agent', uid: 'gone', controller: true }];
    await run(pod('agent-1', { ...daemon, metadata: { ownerReferences } }));
    expect(evicted).to.deep.equal([]);
  });

  it('is left alone if its DaemonSet is ignored', async () => {
    const { pod, run, daemonSet, evicted, reported } = arrange();
    daemonSet('agent', [], { 'archaware.dev/ignore': 'true' });
    await run(pod('agent-1', daemon));
    expect([evicted, reported]).to.deep.equal([[], []]);
  });
});

describe('the pods that are examined', () => {
  it('are those that are bound and have a broken container, found without any request', () => {
    const { pod, parts, asked } = arrange();
    expect(suspects(parts, pod('a'))).to.equal(true);
    expect(suspects(parts, pod('b', { status: RUNNING }))).to.equal(false);
    expect(suspects(parts, pod('c', { spec: { nodeName: '' } }))).to.equal(false);
    expect(suspects(parts, pod('d', { spec: { nodeName: 'gone' } }))).to.equal(false);
    expect(suspects(parts, 'shop/nobody')).to.equal(false);
    expect(asked).to.deep.equal([]);
  });

  it('are found by node and DaemonSet, without a scan of all pods', () => {
    const { pod, parts, pods } = arrange();
    const [a, b] = [pod('a'), pod('agent-1', { owner: 'agent', kind: 'DaemonSet' })];
    const healthy = pod('h', { status: RUNNING });
    const bare = pod('bare', { metadata: { ownerReferences: [] }, spec: { nodeName: 'amd64' } });
    for (const key of [a, b, healthy, bare]) suspects(parts, key);
    const all = { keys: pods.keys, values: pods.values };
    Object.assign(pods, { keys: () => expect.fail('all pods'), values: () => expect.fail('all pods') });
    expect(podsOn(parts, 'arm64')).to.deep.equal([a, b]);
    expect(podsOn(parts, 'amd64')).to.deep.equal([bare]);
    expect(podsOf(parts, 'shop/agent')).to.deep.equal([b]);
    Object.assign(pods, all);
    pods.delete(a);
    pod('agent-1', { owner: 'agent', kind: 'DaemonSet', status: RUNNING });
    for (const key of [a, b]) suspects(parts, key);
    expect(podsOn(parts, 'arm64')).to.deep.equal([]);
  });

  it('are remembered until they are gone, run, or are on a right node', async () => {
    const { pod, run, world, pods, parts } = arrange({ onWrongNode: 'warn' });
    const [a, b, c] = [pod('a'), pod('b'), pod('c')];
    for (const key of [a, b, c]) if (suspects(parts, key)) await run(key);
    expect([[...parts.found.keys()], foundOn(parts, 'amd64'), parts.found.size]).to.deep.equal([[a, b, c], [], 3]);
    pods.delete(a);
    pod('c', { status: RUNNING });
    for (const key of [a, c]) suspects(parts, key);
    expect([foundOn(parts, 'arm64'), parts.found.size]).to.deep.equal([[b], 1]);
    world.pulled = known('linux/arm64');
    await run(b);
    expect([foundOn(parts, 'arm64'), parts.found.size]).to.deep.equal([[], 0]);
  });
});
