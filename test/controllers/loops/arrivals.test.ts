import { expect } from 'chai';
import { type Arrivals, changesPlacement, listen } from '../../../src/controllers/loops/arrivals.ts';
import { createStore } from '../../../src/kube/watch/collection.ts';
import { type Node, readNode } from '../../../src/placement/nodes/node.ts';
import type { DaemonSet } from '../../../src/placement/objects/daemonset.ts';
import { type Namespace, readNamespace } from '../../../src/placement/objects/namespace.ts';
import type { Pod } from '../../../src/placement/objects/pod.ts';

describe('a change of a namespace', () => {
  const namespace = (metadata: object = {}) =>
    readNamespace({ metadata: { name: 'shop', resourceVersion: '1', ...metadata } });
  const labelled = namespace({ labels: { team: 'a' } });
  const preferring = namespace({ annotations: { 'archaware.dev/preferred': 'arm64' } });
  const rows: [what: string, change: Parameters<typeof changesPlacement>[0], expected: boolean][] = [
    ['a new one', { key: 'shop', before: undefined, now: namespace() }, true],
    ['one that is gone', { key: 'shop', before: namespace(), now: undefined }, false],
    ['nothing that counts', { key: 'shop', before: namespace(), now: namespace({ resourceVersion: '2' }) }, false],
    ['its labels', { key: 'shop', before: namespace(), now: labelled }, true],
    ['its preference', { key: 'shop', before: namespace(), now: preferring }, true],
  ];
  for (const [what, change, expected] of rows)
    it(`${expected ? 'calls' : 'does not call'} for other decisions: ${what}`, () =>
      expect(changesPlacement(change)).to.equal(expected));
});

describe('a change of a node', () => {
  const node = (taints: object[], managed = 'supported-arch:NoSchedule') =>
    readNode({
      metadata: { name: 'n', uid: 'n', annotations: { 'archaware.dev/managed': managed } },
      spec: { taints },
      status: { nodeInfo: { architecture: 'arm64' } },
    });
  const ours = { key: 'supported-arch', value: 'arm64', effect: 'NoSchedule' };

  /** Whether pods on a wrong node are judged again: an eviction waits for the taint that keeps the next pod off. */
  function isJudged(before: Node, now: Node): boolean {
    let count = 0;
    const none = () => undefined;
    const empty = () => [];
    const queue = { enqueue: none, enqueueAfter: none, forget: none };
    const stores = {
      ...{ pods: { store: createStore<Pod>() }, nodes: { store: createStore<Node>() } },
      ...{ daemonSets: { store: createStore<DaemonSet>() }, namespaces: { store: createStore<Namespace>() } },
    };
    const arrivals: Arrivals = {
      watches: { listeners: {}, ...stores },
      pod: { isUpToDate: () => false, lookupEnded: empty, followers: empty, invalidate: none },
      daemonSet: { nextToRoll: none, lookupEnded: empty },
      ...{ queues: { pod: queue, node: queue, daemonSet: queue }, forEach: none },
      ...{ cluster: { changed: () => false }, onNode: undefined },
      wrongNodes: { podChanged: none, nodeChanged: () => count++, lookupEnded: none, settingsChanged: none },
    };
    listen(arrivals);
    arrivals.watches.listeners.node?.({ key: 'n', before, now });
    return count > 0;
  }

  it('leads to another judgement of its pods when its taints change, also under the same record', () => {
    expect(isJudged(node([]), node([ours]))).to.equal(true);
    expect(isJudged(node([ours]), node([]))).to.equal(true);
    expect(isJudged(node([ours]), node([ours]))).to.equal(false);
  });
});
