import type { Clock } from '../../src/kit/clock.ts';

/** Something under way between two parties, such as a request. It happens when the history says so. */
export type Pending = {
  /** The process that it belongs to. It is dropped when that process dies. */
  readonly owner: string;
  /** For the trace of a failure. */
  readonly what: string;
  /** Whether it is an event of a watch. */
  readonly isEvent?: true;
  /** Makes it happen. */
  run(): void | Promise<void>;
  /** Loses it, like a broken connection. */
  lose?(): void;
  /** Makes it happen and keeps it, so that it happens again. */
  repeat?(): void;
  /** Answers a request with this status instead of doing it. */
  refuse?(status: number): void;
};

type Timer = { readonly owner: string; readonly at: number; readonly order: number; fire(): void };

/** The world: the time, and everything that is under way. */
export type World = {
  /** Milliseconds since the simulation began. */
  now(): number;
  /** Adds something under way. */
  add(pending: Pending): void;
  /** Decides the fate of the pending action with this number (modulo the number of actions). */
  meet(number: number, fate: 'run' | 'lose' | 'repeat' | number): Promise<void>;
  /** Makes everything under way happen in order, and everything that follows from it. */
  calm(): Promise<void>;
  /** Whether everything under way to a process happens at once now, so that nobody could tell the order of its small steps. */
  isCalmFor(owner: string): boolean;
  /** Moves the time forward, timer by timer. With `calmly`, everything under way happens in between. */
  tick(ms: number, calmly?: boolean): Promise<void>;
  /** A clock for a process; its timers die with it. */
  clockFor(owner: string): Clock;
  /** Ends a process: nothing under way to it arrives any more, and its timers never fire. */
  kill(owner: string): void;
  isDead(owner: string): boolean;
  /** Stops a process for some milliseconds, as SIGSTOP does: time goes on, nothing arrives, and its timers fire too late. */
  pause(owner: string, ms: number): void;
  /** Holds the events of a process's watches back for some milliseconds, while its requests are answered. */
  holdEvents(owner: string, ms: number): void;
  /** The next random number, from 0 to 1, excluding 1. */
  random(): number;
  /** What happened, newest last. */
  readonly trace: readonly string[];
};

/** Marks what a process has sent: it arrives even if the process dies. */
export const SENT = ' sent';
/** The wall-clock time at which the simulation begins. */
export const BEGINNING = Date.UTC(2030, 0, 1);
/** More actions than these without time passing are an endless loop. */
const MOST_AT_ONCE = 20_000;

/** Creates a world in which nothing happens by itself. `seed` decides its random numbers; undefined: each is 0.5. */
export function createWorld(seed?: number): World {
  let now = 0;
  let order = 0;
  let pending: Pending[] = [];
  const timers = new Set<Timer>();
  const dead = new Set<string>();
  /** Until when each process is stopped. */
  const paused = new Map<string, number>();
  /** Until when the events of each process are held back. */
  const held = new Map<string, number>();
  const isReady = ({ owner, isEvent }: Pending) =>
    (paused.get(owner) ?? 0) <= now && (isEvent !== true || (held.get(owner) ?? 0) <= now);
  const random = seed === undefined ? () => 0.5 : randomNumbers(seed);
  const trace: string[] = [];

  const note = (text: string) => void trace.push(`${(now / 1000).toFixed(3)} ${text}`);
  // All promises that can go on do so before the next macrotask.
  const drained = () => new Promise<void>((resolve) => setImmediate(resolve));

  async function happen(action: Pending): Promise<void> {
    pending = pending.filter((other) => other !== action);
    note(action.what);
    await action.run();
    await drained();
  }

  async function calm(): Promise<void> {
    for (let count = 0; ; count++) {
      if (count > MOST_AT_ONCE) throw new Error(`does not come to rest: ${pending[0]?.what}`);
      const next = pending.find(isReady);
      if (next === undefined) return;
      await happen(next);
    }
  }

  let isCalm = false;

  const dueAt = ({ owner, at }: Timer) => Math.max(at, paused.get(owner) ?? 0);

  function plan(owner: string, ms: number, fire: () => void): () => void {
    const timer: Timer = { owner, at: now + Math.max(0, ms), order: order++, fire };
    if (!dead.has(owner)) timers.add(timer);
    return () => void timers.delete(timer);
  }

  return {
    now: () => now,
    random,
    trace,
    add(action) {
      if (!dead.has(action.owner.replace(SENT, ''))) pending.push(action);
    },
    async meet(number, fate) {
      const ready = pending.filter(isReady);
      const action = ready[number % Math.max(1, ready.length)];
      if (action === undefined) return;
      if (fate === 'run') return happen(action);
      const { lose, repeat, refuse } = action;
      const other = fate === 'lose' ? lose : fate === 'repeat' ? repeat : refuse && (() => refuse(fate as number));
      if (other === undefined) return happen(action);
      note(`${fate}: ${action.what}`);
      if (fate !== 'repeat') pending = pending.filter((one) => one !== action);
      other();
      await drained();
    },
    calm,
    isCalmFor: (owner) => isCalm && isReady({ owner, what: '', isEvent: true, run() {} }),
    async tick(ms, calmly = false) {
      const until = now + ms;
      isCalm = calmly;
      for (;;) {
        if (calmly) await calm();
        let next: Timer | undefined;
        for (const timer of timers) {
          const at = dueAt(timer);
          if (at > until) continue;
          if (next === undefined || at < dueAt(next) || (at === dueAt(next) && timer.order < next.order)) next = timer;
        }
        if (next === undefined) break;
        timers.delete(next);
        now = Math.max(now, dueAt(next));
        next.fire();
        await drained();
      }
      now = until;
      isCalm = false;
    },
    clockFor: (owner) => ({
      monotonic: () => now,
      wall: () => BEGINNING + now,
      steady: () => BEGINNING + now,
      random,
      after: (ms, action) => plan(owner, ms, action),
      delay: (ms, signal) =>
        new Promise((resolve) => {
          if (signal.aborted) return resolve();
          const cancel = plan(owner, ms, () => {
            signal.removeEventListener('abort', end);
            resolve();
          });
          const end = () => {
            cancel();
            resolve();
          };
          signal.addEventListener('abort', end, { once: true });
        }),
    }),
    isDead: (owner) => dead.has(owner),
    pause(owner, ms) {
      note(`${owner} is stopped for ${ms / 1000} s`);
      paused.set(owner, now + ms);
      plan('world', ms, () => {});
    },
    holdEvents(owner, ms) {
      note(`the events for ${owner} are held back for ${ms / 1000} s`);
      held.set(owner, now + ms);
      plan('world', ms, () => {});
    },
    kill(owner) {
      dead.add(owner);
      pending = pending.filter((action) => action.owner !== owner);
      for (const timer of timers) if (timer.owner === owner) timers.delete(timer);
    },
  };
}

/** Random numbers that are the same for the same seed (xorshift32). */
function randomNumbers(seed: number): () => number {
  // The state must not be 0. The factor spreads seeds that follow each other.
  let state = Math.imul(seed + 1, 0x9e3779b1) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state = (state ^ (state << 5)) >>> 0;
    return state / 2 ** 32;
  };
}
