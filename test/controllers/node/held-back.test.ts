import { expect } from 'chai';
import { createHeldBack } from '../../../src/controllers/node/held-back.ts';
import { createStore } from '../../../src/kube/watch/collection.ts';
import { type Node, readNode } from '../../../src/placement/nodes/node.ts';
import { createHandClock } from '../hand-clock.ts';

const CNI = { key: 'kube-system/cni', uid: 'u', why: 'a policy refuses it' };

function arrange() {
  const clock = createHandClock();
  const nodes = createStore<Node>();
  const [events, queued]: [string[], string[]] = [[], []];
  const world = { holders: [CNI], isSoon: false };
  const heldBack = createHeldBack({
    nodes,
    holders: () => world.holders,
    isCutOffSoon: () => world.isSoon,
    taint: () => 'supported-arch',
    enqueue: (name) => queued.push(name),
    events: {
      emit: ({ regarding, reason, note }) => events.push(`${reason} ${regarding.kind} ${regarding.name}: ${note}`) > 0,
    },
    clock,
  });
  const node = (name: string) => {
    const found = readNode({ metadata: { name, uid: name } });
    nodes.put(name, found);
    return found;
  };
  return { clock, world, events, queued, heldBack, node };
}

describe('nodes that a taint must not cut a DaemonSet off from', () => {
  it('are reported once, on the DaemonSet and on three of them', async () => {
    const { clock, events, heldBack, node } = arrange();
    for (const name of ['n4', 'n2', 'n3', 'n1']) expect(heldBack.allows(node(name))).to.equal(false);
    expect([heldBack.count(), events]).to.deep.equal([4, []]);
    await clock.advance(5_000);
    expect(events.map((event) => event.split(':')[0])).to.deep.equal([
      'TaintHeldBack DaemonSet cni',
      'TaintHeldBack Node n1',
      'TaintHeldBack Node n2',
      'TaintHeldBack Node n3',
    ]);
    expect(events[0]).to.include('4 nodes (n1, n2, n3').and.to.include('a policy refuses it');
    await clock.advance(120_000);
    expect(events).to.have.length(4);
    heldBack.end();
    expect(clock.waiting).to.equal(0);
  });

  it('are not reported if that is over within moments', async () => {
    const { clock, world, events, heldBack, node } = arrange();
    const subject = node('n1');
    heldBack.allows(subject);
    world.holders = [];
    expect([heldBack.allows(subject), heldBack.count()]).to.deep.equal([true, 0]);
    await clock.advance(5_000);
    expect(events).to.deep.equal([]);
  });

  it('wait without a word for DaemonSets that were not decided yet', async () => {
    const { clock, world, events, queued, heldBack, node } = arrange();
    world.holders = [];
    world.isSoon = true;
    expect([heldBack.allows(node('n1')), heldBack.count()]).to.deep.equal([false, 0]);
    await clock.advance(5_000);
    expect([events, queued]).to.deep.equal([[], ['n1']]);
  });

  it('are decided again when a DaemonSet is served, and forgotten when they need no taint', () => {
    const { queued, heldBack, node } = arrange();
    heldBack.allows(node('n1'));
    heldBack.allows(node('n2'));
    heldBack.forget('n2');
    heldBack.recheck();
    expect([queued, heldBack.count()]).to.deep.equal([['n1'], 1]);
    heldBack.end();
  });
});
