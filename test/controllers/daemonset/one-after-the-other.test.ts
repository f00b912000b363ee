import { expect } from 'chai';
import { ApiError } from '../../../src/kube/errors.ts';
import type { WriteResult } from '../../../src/kube/writer.ts';
import { arrangeDaemonSets, KEY } from './world.ts';

const SECOND = 1_000;
const FORBIDDEN = new ApiError(403, { reason: 'Forbidden', message: 'cannot patch' }, 'patch');

describe('DaemonSets that must roll', () => {
  it('are written one after the other, the next when the rollout is over', async () => {
    const { put, run, show, controller, decided, writes } = arrangeDaemonSets();
    put({ name: 'agent' });
    put({ name: 'second' });
    expect(await run()).to.include({ outcome: 'written' });
    show('agent', false);
    expect(await run('shop/second')).to.deep.equal({ outcome: 'waiting', againInMs: 15 * SECOND });
    expect(controller.waitingToRoll()).to.deep.equal(['shop/second']);
    expect([decided, writes.length]).to.deep.equal([[KEY], 1]);
    show('agent');
    expect(await run('shop/second')).to.include({ outcome: 'written' });
    expect(controller.waitingToRoll()).to.deep.equal([]);
  });

  const unwritten: [what: string, refusal: Exclude<WriteResult, { kind: 'written' }> | Error][] = [
    ['conflicts', { kind: 'conflict' }],
    ['finds nothing', { kind: 'gone' }],
    ['is refused', FORBIDDEN],
  ];
  for (const [what, refusal] of unwritten) {
    it(`do not wait for one whose write ${what}`, async () => {
      const { put, run, world } = arrangeDaemonSets();
      put({ name: 'agent' });
      put({ name: 'second' });
      world.refusal = refusal;
      await run().catch(() => undefined);
      world.refusal = undefined;
      expect(await run('shop/second')).to.include({ outcome: 'written' });
    });
  }

  it('are not counted as waiting when they are gone', async () => {
    const { put, run, show, controller, daemonSets } = arrangeDaemonSets();
    put({ name: 'agent' });
    put({ name: 'second' });
    await run();
    show('agent', false);
    await run('shop/second');
    daemonSets.delete('shop/second');
    await run('shop/second');
    expect(controller.waitingToRoll()).to.deep.equal([]);
  });

  it('report a refusal that lasts', async () => {
    const { put, run, world, clock, events } = arrangeDaemonSets();
    put();
    world.refusal = FORBIDDEN;
    for (let time = 0; time < 10; time++) {
      await run().catch(() => undefined);
      await clock.advance(10 * SECOND);
    }
    expect(events.length).to.be.greaterThan(0);
    expect(events[0]).to.include('cannot patch');
  });
});
