import { expect } from 'chai';
import type { WriteResult } from '../../src/kube/writer.ts';
import type { ImageAnswer } from '../../src/placement/images.ts';
import { failed, known, pending } from '../placement/objects.ts';
import type { HandClock } from './hand-clock.ts';

/** A controller with one object, whose image is `app` if `put` is given nothing. */
type Placing = {
  put(given?: { readonly uid?: string; readonly spec?: object }): void;
  run(): Promise<object>;
  /** Shows the result of the last write in the watch. */
  show(): void;
  /** Takes the object out of the watch. */
  remove(): void;
  /** The values of the object's tolerations. */
  tolerated(): string;
  readonly controller: {
    readonly states: ReadonlyMap<string, { readonly decision?: unknown }>;
    lookupEnded(canonical: string): unknown;
  };
  readonly namespaces: { delete(name: string): unknown };
  readonly clock: HandClock;
  readonly world: {
    readonly answers: Record<string, ImageAnswer>;
    refusal: Exclude<WriteResult, { kind: 'written' }> | Error | undefined;
    secrets: { name: string; reason: string }[];
  };
  readonly asked: readonly string[];
  readonly decided: readonly string[];
  readonly events: readonly string[];
};

const MINUTE = 60_000;
const DIFFERENT = { spec: { containers: [{ image: 'app' }, { image: 'other' }] } };

/** What every controller does that places objects by their images. */
export function describePlacing(key: string, arrange: () => Placing): void {
  it('waits for a namespace that the watch does not show yet', async () => {
    const { put, run, namespaces, decided, asked } = arrange();
    namespaces.delete('shop');
    put();
    expect(await run()).to.deep.equal({ outcome: 'waiting' });
    expect([decided, asked]).to.deep.equal([[], []]);
  });

  it('waits for a lookup, and is due again when it ends', async () => {
    const { put, run, controller, world, decided, tolerated } = arrange();
    world.answers.app = pending;
    put();
    expect(await run()).to.deep.equal({ outcome: 'waiting', againInMs: undefined });
    expect(decided).to.deep.equal([]);
    expect(controller.lookupEnded('canonical/other')).to.deep.equal([]);
    expect(controller.lookupEnded('canonical/app')).to.deep.equal([{ key, inMs: 0 }]);
    world.answers.app = known('linux/amd64');
    expect(await run()).to.include({ outcome: 'written' });
    expect(tolerated()).to.equal('amd64');
    expect(controller.lookupEnded('canonical/app')).to.deep.equal([]);
  });

  it('counts as decided when a lookup has failed, and waits for the retry', async () => {
    const { put, run, world, decided, events } = arrange();
    world.answers.app = failed(5);
    put();
    expect(await run()).to.deep.equal({ outcome: 'waiting', againInMs: 10_000 });
    expect(decided).to.deep.equal([key]);
    expect(events.map((event) => event.split(':')[0])).to.deep.equal(['ImageUnresolvable']);
  });

  it('allows every architecture after two minutes of failures, and decides again each minute', async () => {
    const { put, run, world, show, tolerated, controller, events } = arrange();
    world.answers.app = failed(120);
    put();
    expect(await run()).to.include({ outcome: 'written' });
    expect(tolerated()).to.equal('amd64,arm64');
    expect(events.map((event) => event.split(':')[0])).to.deep.equal(['ImageUnresolvable', 'OpenPlacement']);
    show();
    expect(await run()).to.deep.equal({ outcome: 'unchanged', againInMs: MINUTE });
    expect(controller.lookupEnded('canonical/app')).to.deep.equal([{ key, inMs: 0 }]);
  });

  it('holds what has images without an architecture in common, and decides again after ten minutes', async () => {
    const { put, run, world, asked, clock, decided } = arrange();
    put(DIFFERENT);
    await clock.advance(MINUTE);
    expect(await run()).to.deep.equal({ outcome: 'held', againInMs: 10 * MINUTE });
    expect(decided).to.deep.equal([key]);
    await clock.advance(10 * MINUTE - 1);
    expect(await run()).to.include({ outcome: 'held' });
    expect(asked).to.have.length(2);
    world.answers.other = known('linux/arm64');
    await clock.advance(10 * MINUTE);
    expect(await run()).to.include({ outcome: 'written' });
    expect(asked).to.have.length(4);
  });

  const rows: [kind: 'conflict' | 'gone' | 'recorded', outcome: string, isDecided: boolean, isRemembered: boolean][] = [
    ['conflict', 'conflict', false, false],
    ['gone', 'unchanged', true, false],
    ['recorded', 'written', true, true],
  ];
  for (const [kind, outcome, isDecided, isRemembered] of rows) {
    it(`has the outcome ${outcome} if the write ends with ${kind}`, async () => {
      const { put, run, world, decided, controller } = arrange();
      world.refusal = { kind };
      put();
      expect(await run()).to.include({ outcome });
      expect(decided.length > 0).to.equal(isDecided);
      expect(controller.states.get(key)?.decision !== undefined).to.equal(isRemembered);
    });
  }

  it('reports pull secrets that cannot be used once, and again for another object of the same name', async () => {
    const { put, run, world, events } = arrange();
    world.secrets = [{ name: 's', reason: 'it does not exist' }];
    for (const uid of ['u1', 'u1', 'u2']) {
      put({ uid });
      await run();
    }
    const note = 'PullSecretUnusable: pull secret s cannot be used: it does not exist';
    expect(events).to.deep.equal([note, note]);
  });

  it('forgets what is gone', async () => {
    const { put, run, remove, controller, decided } = arrange();
    put();
    await run();
    const count = decided.length;
    remove();
    expect(await run()).to.deep.equal({ outcome: 'unchanged' });
    expect([controller.states.size, decided.slice(count)]).to.deep.equal([0, [key]]);
  });
}
