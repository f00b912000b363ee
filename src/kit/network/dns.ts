import type { LookupFunction } from 'node:net';
import { onAbort } from '../abort.ts';
import { createLru } from '../lru.ts';

export type DnsOptions = {
  /** The lookup of the system. It holds one of libuv's threads until it answers. */
  readonly lookup: LookupFunction;
  /** The number of libuv's threads. */
  readonly threads: number;
  readonly now: () => number;
  /** Runs a function after this many milliseconds; returns a function that cancels it. */
  readonly later: (milliseconds: number, run: () => void) => () => void;
  /** Ends all waiting. */
  readonly signal: AbortSignal;
};

type Callback = Parameters<LookupFunction>[2];

/**
 * A name that is being looked up, or that waits for its turn. It stays for as long as it holds a thread, even if no caller waits any more.
 */
type DnsQuestion = {
  readonly key: string;
  readonly ask: () => void;
  callbacks: Callback[];
  isAsked: boolean;
  stopWaiting: () => void;
};

/** Milliseconds, including the wait for a turn. */
const DEADLINE = 5000;
/** Milliseconds for which a failed name is not looked up again, by the code of its failure. */
const REMEMBERED: Readonly<Record<string, number>> = { ENOTFOUND: 30_000, EAI_AGAIN: 5000, ETIMEOUT: 5000 };
const MAX_NAMES = 10_000;

/**
 * Looks up names that strangers choose. Each name is looked up once at a time, and failures are remembered for a while.
 * Names that have not resolved before never hold all of libuv's threads, so that a name whose DNS server is silent
 * cannot block the others. A lookup that exceeds the deadline fails with the code `ETIMEOUT`.
 */
export function createDns(options: DnsOptions): LookupFunction {
  const { now } = options;
  // libuv gives DNS lookups ("slow" work) half of its threads. Half of those stay free for names that are known to resolve.
  const slots = Math.max(1, Math.floor(Math.floor((options.threads + 1) / 2) / 2));
  const questions = new Map<string, DnsQuestion>();
  /** Those that take one of the few slots for names that may never answer. */
  const doubtful = new Set<DnsQuestion>();
  const resolved = createLru<true>(MAX_NAMES);
  const failures = createLru<{ readonly error: Error; readonly until: number }>(MAX_NAMES);
  onAbort(options.signal, () => {
    for (const question of questions.values()) deliver(question, [new Error('stopped'), []]);
  });

  return (hostname, lookupOptions, callback) => {
    const key = `${hostname} ${lookupOptions.family ?? 0} ${lookupOptions.hints ?? 0}`;
    if (options.signal.aborted) return process.nextTick(callback, new Error('stopped'), []);
    const failure = failures.get(key);
    if (failure !== undefined && failure.until > now()) return process.nextTick(callback, failure.error, []);
    const question = questions.get(key) ?? {
      key,
      ask: () => options.lookup(hostname, lookupOptions, (...answer) => finish(question, answer)),
      callbacks: [],
      isAsked: false,
      stopWaiting: () => undefined,
    };
    question.callbacks.push(callback);
    if (question.callbacks.length === 1) question.stopWaiting = options.later(DEADLINE, () => expire(question));
    if (questions.has(key)) return;
    questions.set(key, question);
    advance();
  };

  /** Starts every lookup for which there is a slot, in order. */
  function advance(): void {
    for (const question of questions.values()) {
      const isKnown = resolved.has(question.key);
      if (question.isAsked || (!isKnown && doubtful.size >= slots)) continue;
      question.isAsked = true;
      if (!isKnown) doubtful.add(question);
      question.ask();
    }
  }

  function finish(question: DnsQuestion, answer: Parameters<Callback>): void {
    questions.delete(question.key);
    doubtful.delete(question);
    const [error] = answer;
    if (error === null) {
      failures.delete(question.key);
      resolved.set(question.key, true);
    } else remember(question, error);
    deliver(question, answer);
    advance();
  }

  /** The thread is busy until the system answers. Until then the name takes a slot, even if it was known before. */
  function expire(question: DnsQuestion): void {
    const error = Object.assign(new Error('the DNS does not answer'), { code: 'ETIMEOUT' });
    if (question.isAsked) {
      doubtful.add(question);
      remember(question, error);
      // Else it was never looked up, so nothing is known about it.
    } else questions.delete(question.key);
    deliver(question, [error, []]);
  }

  function remember({ key }: DnsQuestion, error: NodeJS.ErrnoException): void {
    resolved.delete(key);
    const milliseconds = REMEMBERED[error.code ?? ''];
    if (milliseconds !== undefined) failures.set(key, { error, until: now() + milliseconds });
  }

  function deliver(question: DnsQuestion, answer: Parameters<Callback>): void {
    question.stopWaiting();
    for (const callback of question.callbacks.splice(0)) callback(...answer);
  }
}

/** Returns the number of threads that libuv creates for a value of `UV_THREADPOOL_SIZE`. */
export function libuvThreads(size: string | undefined): number {
  if (size === undefined) return 4;
  return Math.min(Math.max(Number.parseInt(size, 10) || 1, 1), 1024);
}
