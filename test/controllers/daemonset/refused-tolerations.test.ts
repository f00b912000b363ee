import { expect } from 'chai';
import { readRecord } from '../../../src/placement/objects/daemonset.ts';
import { known } from '../../placement/objects.ts';
import { arrangeDaemonSets, shown } from './world.ts';

const SECOND = 1_000;

describe('a DaemonSet, if the API server refuses one of its tolerations,', () => {
  function arrange() {
    const given = arrangeDaemonSets();
    given.world.answers.app = known('linux/amd64,linux/arm64,linux/s390x');
    given.world.denies = '"s390x"';
    const run = () => given.run().catch((error: unknown) => String(error).includes('denied') && 'denied');
    return { ...given, run };
  }

  it('gets the others in one write, and a record by which it is decided again', async () => {
    const { put, run, now, writes } = arrange();
    put();
    expect(await run()).to.equal('denied');
    expect(shown(now())).to.equal('amd64,arm64');
    const write = 'tolerate DaemonSet shop/agent';
    expect(writes).to.deep.equal([write, ...Array.from({ length: 3 }, () => `check: ${write}`), write]);
    expect(readRecord(now().recorded).basis?.images).to.deep.equal([]);
  });

  it('is not written again before the pause is over, and then gets the last one', async () => {
    const { put, run, now, show, writes, clock, world } = arrange();
    put();
    await run();
    show();
    const count = writes.length;
    expect(await run()).to.deep.equal({ outcome: 'waiting', againInMs: 10 * SECOND });
    expect(writes).to.have.length(count);
    await clock.advance(10 * SECOND);
    world.denies = undefined;
    expect(await run()).to.include({ outcome: 'written' });
    expect(shown(now())).to.equal('amd64,arm64,s390x');
    expect(readRecord(now().recorded).basis?.images).to.deep.equal(['app']);
  });

  it('costs the next DaemonSet of the namespace one write', async () => {
    const { put, run, now, show, writes, controller } = arrange();
    put();
    await run();
    show();
    put({ name: 'second' });
    const count = writes.length;
    await controller.reconcile('shop/second', new AbortController().signal).catch(() => undefined);
    expect(writes.slice(count)).to.deep.equal(['tolerate DaemonSet shop/second']);
    expect(shown(now('second'))).to.equal('amd64,arm64');
  });

  it('keeps what it had', async () => {
    const { put, run, now } = arrange();
    const old = [{ key: 'supported-arch', operator: 'Equal', value: 'riscv64', effect: 'NoSchedule' }];
    const annotations = { 'archaware.dev/tolerations': JSON.stringify(old) };
    put({ metadata: { annotations }, spec: { tolerations: old } });
    await run();
    await run();
    expect(shown(now())).to.match(/^riscv64/);
  });
});

describe('a DaemonSet of whose tolerations one is refused, while another writer removes the others', () => {
  it('is left alone after three writes, with an Event', async () => {
    const { put, run, events, controller, writes, clock, world } = arrangeDaemonSets();
    world.answers.app = known('linux/amd64,linux/arm64,linux/s390x');
    world.denies = '"s390x"';
    put();
    await run().catch(() => undefined);
    const count = writes.length;
    for (let time = 0; time < 60; time++) {
      put();
      await run().catch(() => undefined);
      await clock.advance(5 * SECOND);
    }
    expect(writes.slice(count).filter((each) => !each.startsWith('check'))).to.have.length.below(12);
    expect(events.filter((event) => event.startsWith('WriteContested'))).to.have.length(1);
    expect(controller.contested()).to.equal(1);
  });
});
