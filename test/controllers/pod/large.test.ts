import { expect } from 'chai';
import { arrangePod } from './world.ts';

const GATE = { name: 'archaware.dev/architecture' };
const LABELS = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`key-${at}`, 'v']));

describe('a pod that is too large', () => {
  it('is not looked up and not written, and an Event says so once', async () => {
    const { put, run, writes, events, decided, clock } = arrangePod();
    put({ metadata: { labels: LABELS } });
    expect(await run()).to.include({ outcome: 'unchanged' });
    put({ metadata: { labels: { ...LABELS, more: 'x' } } });
    await clock.advance(60_000);
    expect(await run()).to.include({ outcome: 'unchanged' });
    expect([writes, decided]).to.deep.equal([[], ['shop/web']]);
    expect(events).to.have.length(1);
    expect(events[0]).to.match(
      /^TooLarge: too large to be served: \d{5} bytes, at most 16 KiB \(its names of images, /,
    );
  });

  it('is released without anything if it has the gate', async () => {
    const { put, run, writes, now } = arrangePod();
    put({ metadata: { labels: LABELS }, spec: { schedulingGates: [{ name: 'other' }, GATE] } });
    expect(await run()).to.include({ outcome: 'written' });
    expect(writes).to.deep.equal(['release shop/web']);
    expect([now().gated, now().tolerations]).to.deep.equal([undefined, undefined]);
  });

  it('keeps what it has, and is served again when it is not too large any more', async () => {
    const { put, run, writes, show, now } = arrangePod();
    put();
    await run();
    const { tolerations } = now();
    show();
    put({ metadata: { labels: LABELS }, spec: { tolerations } });
    expect(await run()).to.include({ outcome: 'unchanged' });
    expect(now().tolerations).to.deep.equal(tolerations);
    put();
    expect(await run()).to.include({ outcome: 'written' });
    expect(writes).to.deep.equal(['tolerate shop/web', 'tolerate shop/web']);
  });
});
