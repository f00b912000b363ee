import { getEventListeners } from 'node:events';
import { expect } from 'chai';
import { onAbort, untilAborted } from '../../src/kit/abort.ts';

describe('waiting for a signal', () => {
  const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length;

  it('adds one listener for all who wait, and removes it after the last one', () => {
    const { signal } = new AbortController();
    const cancels = Array.from({ length: 2_000 }, () => onAbort(signal, () => {}));
    expect(listeners(signal)).to.equal(1);
    for (const cancel of cancels) cancel();
    expect(listeners(signal)).to.equal(0);
    onAbort(signal, () => {});
    expect(listeners(signal)).to.equal(1);
  });

  it('calls each action once, in order, except those that were cancelled', () => {
    const controller = new AbortController();
    const called: string[] = [];
    const same = () => void called.push('same');
    onAbort(controller.signal, () => void called.push('a'));
    const cancel = onAbort(controller.signal, same);
    onAbort(controller.signal, same);
    cancel();
    cancel();
    controller.abort();
    onAbort(controller.signal, () => void called.push('late'));
    expect(called).to.deep.equal(['a', 'same', 'late']);
  });

  it('ends with the reason, the value or the error, and leaves no listener', async () => {
    const controller = new AbortController();
    const never = untilAborted(new Promise(() => {}), controller.signal).catch((error: unknown) => error);
    expect(await untilAborted(Promise.resolve(1), controller.signal)).to.equal(1);
    const failed = untilAborted(Promise.reject(new Error('no')), controller.signal);
    expect(String(await failed.catch((error: unknown) => error))).to.equal('Error: no');
    expect(listeners(controller.signal)).to.equal(1);
    controller.abort('enough');
    expect(await never).to.equal('enough');
    expect(listeners(controller.signal)).to.equal(0);
  });
});
