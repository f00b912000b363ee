import { expect } from 'chai';
import { createPoolNodes } from '../../../src/controllers/node/pool-nodes.ts';
import type { Node } from '../../../src/placement/nodes/node.ts';
import { node, settings, taint } from '../../placement/objects.ts';
import { createHandClock } from '../hand-clock.ts';

const OURS = 'supported-arch=arm64:NoSchedule';
const POOL = { 'karpenter.sh/nodepool': 'a' };
const REGISTERED = { ...POOL, 'karpenter.sh/registered': 'true' };

describe('the watch for how nodes of pools join', () => {
  function arrange({ managesNodes = true, given = settings() } = {}) {
    const clock = createHandClock();
    const notes: string[] = [];
    const pools: string[] = [];
    const watch = createPoolNodes({
      settings: () => given,
      managesNodes,
      events: { emit: ({ reason, regarding, note }) => notes.push(`${reason} ${regarding.uid}: ${note}`) > 0 },
      clock,
      onJoinedUntainted: (pool) => pools.push(pool),
    });
    const reasons = () => notes.map((text) => text.split(':')[0]);
    return { clock, watch, pools, notes, reasons };
  }
  const named = (uid: string, labels: Record<string, string> = POOL, taints: readonly string[] = []): Node => ({
    ...node({ labels, taints: taints.map((text) => taint(text)) }),
    uid,
  });

  it('reports a node that joins without the taint, once, when it first appears, and the next one of its name', () => {
    const { watch, pools, reasons } = arrange();
    watch.changed({ now: named('1'), before: undefined });
    watch.changed({ now: named('1', POOL, ['other=x:NoSchedule']), before: named('1') });
    expect([pools, reasons()]).to.deep.equal([['a'], ['JoinedUntainted 1']]);
    watch.changed({ now: named('2'), before: named('1', POOL, [OURS]) });
    expect([pools.slice(1), reasons().slice(1)]).to.deep.equal([['a'], ['JoinedUntainted 2']]);
  });

  const quiet: [what: string, setUp: Parameters<typeof arrange>[0], node: Node][] = [
    ['with the taint', {}, named('1', POOL, [OURS])],
    ['where the loop for nodes does not run', { managesNodes: false }, named('1')],
    ['in the mode affinity', { given: settings({ mode: 'affinity' }) }, named('1')],
  ];
  for (const [what, setUp, joining] of quiet) {
    it(`reports nothing about a node ${what}`, () => {
      const { watch, pools, reasons } = arrange(setUp);
      watch.changed({ now: joining, before: undefined });
      expect([pools, reasons()]).to.deep.equal([[], []]);
    });
  }

  it('reports no nodes that existed at the beginning, and no deleted ones', () => {
    const { watch, reasons } = arrange();
    watch.begin([named('1')]);
    watch.changed({ now: named('1'), before: named('1') });
    watch.changed({ now: undefined, before: named('1') });
    expect(reasons()).to.deep.equal([]);
  });

  const stuck = named('1', REGISTERED, [OURS]);

  it('reports a node that is not initialized for five minutes, also one that was there before', async () => {
    for (const first of ['begin', 'changed'] as const) {
      const { clock, watch, reasons } = arrange();
      if (first === 'begin') watch.begin([stuck]);
      else watch.changed({ now: stuck, before: undefined });
      await clock.advance(299_999);
      expect(reasons()).to.deep.equal([]);
      await clock.advance(1);
      expect(reasons()).to.deep.equal(['NodeNotInitialized 1']);
    }
  });

  for (const [what, changes] of [
    ['while it changes', true],
    ['although nothing of the node changes', false],
  ] as const) {
    it(`reports it again ${what}, after half an hour`, async () => {
      const { clock, watch, reasons } = arrange();
      watch.begin([stuck]);
      await clock.advance(300_000);
      for (let minutes = 0; minutes < 30; minutes += 5) {
        if (changes) watch.changed({ now: stuck, before: stuck });
        await clock.advance(300_000);
      }
      expect(reasons()).to.deep.equal(['NodeNotInitialized 1', 'NodeNotInitialized 1']);
    });
  }

  it('counts from the moment when no other taint is left', async () => {
    const { clock, watch, reasons } = arrange();
    const unready = named('1', REGISTERED, [OURS, 'node.kubernetes.io/not-ready:NoSchedule']);
    watch.begin([unready]);
    await clock.advance(600_000);
    watch.changed({ now: stuck, before: unready });
    await clock.advance(299_999);
    expect(reasons()).to.deep.equal([]);
    await clock.advance(1);
    expect(reasons()).to.deep.equal(['NodeNotInitialized 1']);
  });

  const ends: [what: string, now: Node | undefined][] = [
    ['is initialized', named('1', { ...REGISTERED, 'karpenter.sh/initialized': 'true' }, [OURS])],
    ['goes', undefined],
    ['is replaced under its name', named('2', POOL, [OURS])],
  ];
  for (const [what, now] of ends) {
    it(`forgets a node that ${what}, before and after its time is over`, async () => {
      for (const afterMs of [100_000, 400_000]) {
        const { clock, watch, reasons } = arrange();
        watch.begin([stuck]);
        await clock.advance(afterMs);
        const before = reasons().length;
        watch.changed({ now, before: stuck });
        await clock.advance(3_600_000);
        expect(reasons().length).to.equal(before);
      }
    });
  }

  it('checks nothing after its end', async () => {
    const { clock, watch, reasons } = arrange();
    watch.begin([stuck]);
    watch.end();
    await clock.advance(3_600_000);
    expect(reasons()).to.deep.equal([]);
  });

  it('reports another architecture of a node: each change once within half an hour', () => {
    const { watch, notes } = arrange({ managesNodes: false });
    const [amd, arm] = [node({ architecture: 'amd64' }), node({ architecture: 'arm64' })];
    watch.changed({ now: amd, before: undefined });
    for (let round = 0; round < 5; round++) {
      watch.changed({ now: arm, before: amd });
      watch.changed({ now: amd, before: arm });
    }
    expect(notes).to.have.length(2);
    expect(notes[0]).to.match(/^NodeArchitectureChanged u1: .*amd64 before and reports arm64 now/);
  });
});
