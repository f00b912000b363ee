import { expect } from 'chai';
import type { ImageAnswer } from '../../src/placement/images.ts';
import { failed, known, pending } from '../placement/objects.ts';

/** A controller with one object, whose image is `app`. */
type Waiting = {
  put(): void;
  run(): Promise<object>;
  /** The values of the object's tolerations. */
  tolerated(): string;
  readonly controller: { lookupEnded(canonical: string): unknown };
  readonly namespaces: { delete(name: string): unknown };
  readonly world: { readonly answers: Record<string, ImageAnswer> };
  readonly asked: readonly string[];
  readonly decided: readonly string[];
  readonly events: readonly string[];
};

/** What every controller does while it cannot decide. */
export function describeWaits(key: string, arrange: () => Waiting): void {
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
}
