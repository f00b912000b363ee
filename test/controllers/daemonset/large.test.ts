import { expect } from 'chai';
import { keptDaemonSet } from '../../../src/placement/objects/too-large.ts';
import { arrangeDaemonSets, shown } from './world.ts';

const LABELS = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`key-${at}`, 'v']));

describe('a DaemonSet that is too large', () => {
  function arrangeLarge(...given: Parameters<typeof arrangeDaemonSets>) {
    const all = arrangeDaemonSets(...given);
    all.put({ labels: LABELS });
    all.daemonSets.put('shop/agent', keptDaemonSet(all.now()));
    return all;
  }

  it('is named and not written, and neither the bootstrap nor a taint waits for it', async () => {
    const { run, writes, events, decided, controller, now } = arrangeLarge();
    expect(await run()).to.include({ outcome: 'unchanged' });
    expect([writes, decided, shown(now())]).to.deep.equal([[], ['shop/agent'], '']);
    expect(events).to.have.length(1);
    expect(events[0]).to.match(/^TooLarge: too large to be served: \d{5} bytes, at most 16 KiB/);
    expect(controller.holdsTaints('shop/agent')).to.equal(false);
  });

  it('does not hold up the next one', async () => {
    const { run, put, writes } = arrangeLarge();
    await run();
    put({ name: 'other' });
    await run('shop/other');
    expect(writes).to.deep.equal(['tolerate DaemonSet shop/other']);
  });
});
