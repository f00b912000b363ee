import { expect } from 'chai';
import { createUnmanagedTaints } from '../../../src/controllers/node/unmanaged-taints.ts';
import { createStore } from '../../../src/kube/watch/store.ts';
import type { Node } from '../../../src/placement/nodes/node.ts';
import { node, settings, taint } from '../../placement/objects.ts';
import { createHandClock } from '../hand-clock.ts';

const TAINT = 'supported-arch=arm64:NoSchedule';

describe('the watch for taints that nobody manages', () => {
  function arrange(count: number) {
    const clock = createHandClock();
    const nodes = createStore<Node>();
    const notes: string[] = [];
    const found: string[][] = [];
    const put = (name: string, tainted = true) =>
      nodes.put(
        name,
        {
          ...node({ taints: tainted ? [taint(TAINT)] : [], managed: [TAINT] }),
          name,
        },
        true,
      );
    for (let index = 1; index <= count; index += 1) put(`n${index}`);
    const watch = createUnmanagedTaints({
      nodes,
      settings: () => settings(),
      managesNodes: false,
      events: { emit: ({ reason, regarding, note }) => notes.push(`${reason} ${regarding.name}: ${note}`) > 0 },
      clock,
      onChange: (all) => found.push(all.map((each) => each.node.name)),
    });
    return { clock, watch, notes, found, put };
  }

  it('reports nothing if there are none', async () => {
    const { watch, notes, found } = arrange(0);
    watch.look();
    expect([notes, found]).to.deep.equal([[], []]);
  });

  it('writes an Event for three nodes, which says how many more there are', () => {
    const { watch, notes, found } = arrange(5);
    watch.look();
    expect(found).to.deep.equal([['n1', 'n2', 'n3', 'n4', 'n5']]);
    expect(notes.map((text) => text.split(':')[0])).to.deep.equal(
      ['n1', 'n2', 'n3'].map((name) => `UnmanagedTaint ${name}`),
    );
    for (const text of notes) expect(text).to.match(/; 2 more node\(s\) have such taints$/);
  });

  it('writes the Events for the first nodes by name, in whatever order they are known', () => {
    const { watch, notes, put } = arrange(0);
    for (const name of ['n4', 'n2', 'n5', 'n1', 'n3']) put(name);
    watch.look();
    expect(notes.map((text) => text.split(':')[0])).to.deep.equal(
      ['n1', 'n2', 'n3'].map((name) => `UnmanagedTaint ${name}`),
    );
  });

  it('reports again when they change, once for many changes, and when there are none any more', async () => {
    const { clock, watch, found, put } = arrange(1);
    watch.look();
    for (const name of ['n2', 'n3']) {
      put(name);
      watch.changed();
    }
    await clock.advance(4_999);
    expect(found).to.have.length(1);
    await clock.advance(1);
    expect(found.at(-1)).to.deep.equal(['n1', 'n2', 'n3']);
    watch.changed();
    await clock.advance(5_000);
    expect(found).to.have.length(2);
    for (const name of ['n1', 'n2', 'n3']) put(name, false);
    watch.changed();
    await clock.advance(5_000);
    expect(found.at(-1)).to.deep.equal([]);
  });

  it('checks nothing after its end', async () => {
    const { clock, watch, found, put } = arrange(0);
    put('n1');
    watch.changed();
    watch.end();
    await clock.advance(60_000);
    expect(found).to.deep.equal([]);
  });
});
