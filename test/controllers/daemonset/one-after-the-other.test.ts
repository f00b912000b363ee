import { expect } from 'chai';
import { ApiError } from '../../../src/kube/errors.ts';
import type { WriteResult } from '../../../src/kube/writer.ts';
import { readNamespace } from '../../../src/placement/objects/namespace.ts';
import { failed } from '../../placement/objects.ts';
import { arrangeDaemonSets, KEY } from './world.ts';

const SECOND = 1_000;
const FORBIDDEN = new ApiError(403, { reason: 'Forbidden', message: 'cannot patch' }, 'patch');

/** The DaemonSet `agent` rolls, while these others wait for its turn to end. */
async function arrangeWaiting(...others: readonly string[]) {
  const arranged = arrangeDaemonSets();
  const { put, run, show } = arranged;
  for (const name of ['agent', ...others]) put({ name });
  await run();
  show('agent', false);
  for (const name of others) expect(await run(`shop/${name}`)).to.include({ outcome: 'waiting' });
  return arranged;
}

describe('DaemonSets that must roll', () => {
  it('are written one after the other, the next when the rollout is over', async () => {
    const { run, show, controller, decided, writes } = await arrangeWaiting('second');
    expect(await run('shop/second')).to.deep.equal({ outcome: 'waiting', againInMs: 15 * SECOND });
    expect([controller.holdsTaints('shop/second'), controller.nextToRoll()]).to.deep.equal([true, undefined]);
    expect([decided, writes.length]).to.deep.equal([[], 1]);
    show('agent');
    await run();
    expect(decided).to.deep.equal([KEY]);
    expect(controller.nextToRoll()).to.equal('shop/second');
    expect(await run('shop/second')).to.include({ outcome: 'written' });
    expect(controller.holdsTaints('shop/second'), 'before a pod of it shows that the change is let in').to.equal(true);
    show('second');
    expect(controller.holdsTaints('shop/second')).to.equal(false);
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

  it('wait for one that another leader rolls, which a conflict shows before the watch does', async () => {
    const leader = arrangeDaemonSets();
    leader.put();
    await leader.run();
    const { put, run, world } = arrangeDaemonSets();
    put();
    put({ name: 'second' });
    const rolling = leader.now();
    world.read = () => rolling;
    world.refusal = { kind: 'conflict' };
    expect(await run()).to.include({ outcome: 'conflict' });
    world.refusal = undefined;
    expect(await run('shop/second')).to.include({ outcome: 'waiting' });
  });

  for (const [what, refusal] of [
    ['without an answer', new Error('broken')],
    ['with an answer that may come too early', new ApiError(504, { message: 'request timed out' }, 'patch')],
  ] as const) {
    it(`wait for one that was written ${what}, until a read or a second try shows what became of it`, async () => {
      const { put, run, world } = arrangeDaemonSets();
      put({ name: 'agent' });
      put({ name: 'second' });
      world.refusal = refusal;
      world.read = () => {
        throw new Error('no answer either');
      };
      await run().catch(() => undefined);
      world.refusal = undefined;
      expect(await run('shop/second')).to.include({ outcome: 'waiting' });
      expect(await run()).to.include({ outcome: 'written' });
    });
  }

  it('are not counted as waiting when they are gone', async () => {
    const { run, show, controller, daemonSets } = await arrangeWaiting('second');
    daemonSets.delete('shop/second');
    await run('shop/second');
    show('agent');
    expect([controller.holdsTaints('shop/second'), controller.nextToRoll()]).to.deep.equal([false, undefined]);
  });

  it('do not wait for one in the line that cannot be decided any more', async () => {
    const { put, run, show, world, controller, namespaces } = await arrangeWaiting('second', 'third');
    namespaces.delete('shop');
    await run('shop/second');
    namespaces.put('shop', readNamespace({ metadata: { name: 'shop' } }));
    show('agent');
    expect(controller.nextToRoll()).to.equal('shop/third');
    world.answers.app = failed(1);
    put({ name: 'third', templateLabels: { changed: 'yes' } });
    await run('shop/third');
    expect(controller.nextToRoll()).to.equal(undefined);
  });

  it('hold the taints back only if they had rolled out', async () => {
    const { put, run, controller } = await arrangeWaiting('second');
    put({ name: 'third', status: { numberAvailable: 0 } });
    expect(await run('shop/third')).to.include({ outcome: 'waiting' });
    expect(['second', 'third'].map((name) => controller.holdsTaints(`shop/${name}`))).to.deep.equal([true, false]);
  });

  it('report a refusal that lasts, until a write succeeds', async () => {
    const { put, run, world, clock, controller, events } = arrangeDaemonSets();
    const isRefused = () => controller.states.get(KEY)?.notes?.refused !== undefined;
    put();
    world.refusal = FORBIDDEN;
    for (let time = 0; time < 10; time++) {
      await run().catch(() => undefined);
      await clock.advance(10 * SECOND);
    }
    expect(events.length).to.be.greaterThan(0);
    expect(events[0]).to.include('cannot patch');
    expect(isRefused()).to.equal(true);
    world.refusal = undefined;
    await run();
    expect(isRefused()).to.equal(false);
  });
});
