/**
 * Time that passes only while this process gets on. A deadline of the program must not end an exchange between it and a server of the
 * test, both in this process, because other processes had the machine meanwhile: the time between two turns of the event loop counts as
 * at most {@link TURN_MS}, so a deadline of a second means a hundred turns at least. On a quiet machine it is the time of the machine.
 */

import { onAbort } from '../../src/kit/abort.ts';
import { type Clock, systemClock } from '../../src/kit/clock.ts';

const TURN_MS = 10;

/** When the event loop last came by, on the clock of the machine and on this one. */
const last = { real: performance.now(), patient: performance.now() };

function now(): number {
  return last.patient + Math.min(performance.now() - last.real, TURN_MS);
}

function turn(): void {
  last.patient = now();
  last.real = performance.now();
}
setInterval(turn, TURN_MS / 2).unref();

function after(ms: number, action: () => void): () => void {
  const due = now() + ms;
  let cancel = systemClock.after(ms, look);
  function look(): void {
    const left = due - now();
    // A timer may be early by a fraction of a millisecond.
    if (left < 1) action();
    else cancel = systemClock.after(left, look);
  }
  return () => cancel();
}

function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      forget();
      resolve();
    };
    const cancel = after(ms, end);
    let forget = (): void => {};
    forget = onAbort(signal, end);
  });
}

/** On a clock with a `factor` of 5 everything takes a fifth of the time. */
export function patientClock(factor = 1): Clock {
  const [startedAt, startedOn] = [now(), Date.now()];
  const passed = () => (now() - startedAt) * factor;
  return {
    monotonic: () => startedAt + passed(),
    wall: () => startedOn + passed(),
    steady: () => startedOn + passed(),
    delay: (ms, signal) => delay(ms / factor, signal),
    after: (ms, action) => after(ms / factor, action),
    random: systemClock.random,
  };
}
