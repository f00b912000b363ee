import { expect } from 'chai';
import { stubOfDaemonSet } from '../../../src/placement/objects/large.ts';
import { arrangeDaemonSets, shown } from './world.ts';

const OTHER = 'shop/other';

/** The DaemonSets `agent` and `other`, of which only stubs are kept. */
function arrangeLarge() {
  const all = arrangeDaemonSets();
  for (const name of ['agent', 'other']) {
    all.put({ name });
    all.daemonSets.put(`shop/${name}`, stubOfDaemonSet(all.now(name)));
  }
  return all;
}

describe('a DaemonSet that is too large to keep', () => {
  it('is read when its turn comes, and its template gets its tolerations', async () => {
    const { run, now, writes } = arrangeLarge();
    expect(await run()).to.include({ outcome: 'written' });
    expect(writes).to.deep.equal(['tolerate DaemonSet shop/agent']);
    expect(shown(now())).to.equal('arm64');
  });

  it('waits while another one is read, and is due again after that', async () => {
    const { run, turns, clock } = arrangeLarge();
    const first = run();
    expect(await run(OTHER)).to.deep.equal({ outcome: 'waiting', isPostponed: true });
    await first;
    await clock.advance(1_000);
    expect(turns).to.deep.equal([OTHER]);
  });

  it('lets the others go on if it is not large any more when its turn comes', async () => {
    const { run, turns, clock, daemonSets, now, put } = arrangeLarge();
    put({ name: 'third' });
    daemonSets.put('shop/third', stubOfDaemonSet(now('third')));
    const first = run();
    await run(OTHER);
    await run('shop/third');
    await first;
    await clock.advance(1_000);
    put({ name: 'other' });
    await run(OTHER);
    expect(turns).to.deep.equal([OTHER, 'shop/third']);
  });
});
