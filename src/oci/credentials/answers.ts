import type { Askers } from '../../kit/fairness/askers.ts';
import type { Turns } from '../../kit/fairness/turns.ts';
import { createFlights } from '../../kit/flights.ts';
import { createLru } from '../../kit/lru.ts';
import type { Login } from './docker.ts';
import { PROGRAM, ProgramError } from './process.ts';

/** What a program is asked. */
export type Question = {
  /** Under which an answer may be remembered that is for it, the narrowest first. */
  readonly keys: readonly [string, ...string[]];
  readonly registry: string;
};

type Answer = { readonly until: number; readonly logins: readonly Login[]; readonly isRefused?: true };

/** What a run of the program answered, and under which of the keys, for how many milliseconds, that is remembered. */
type Run = (signal: AbortSignal) => Promise<{
  readonly logins: readonly Login[];
  readonly key: string;
  readonly ttlMs: number;
}>;

const FAILURE_TTL = 10_000;
/** Milliseconds between the calls of a program for a registry that refuses its answers: it may be wrong for good. */
const PAUSE = 30_000;
const MAX_ENTRIES = 10_000;

/**
 * Remembers what the operator's programs answered, and their failures for ten seconds. There is at most one run at a time for a
 * question.
 */
export function createAnswers(now: () => number, turns: Turns) {
  const answers = createLru<Answer>(MAX_ENTRIES);
  const failures = createLru<{ readonly until: number; readonly error: ProgramError }>(MAX_ENTRIES);
  const runs = createFlights<readonly Login[]>();
  /** When a program may be called next for a registry because of a refusal. */
  const next = createLru<number>(MAX_ENTRIES);
  const after = (registry: string, time: number): number => Math.max(next.get(registry) ?? 0, time);

  function remembered(keys: readonly string[]): readonly Login[] | undefined {
    return keys.map((key) => answers.get(key)).find((answer) => answer !== undefined && answer.until > now())?.logins;
  }

  async function call({ keys: [own], registry }: Question, signal: AbortSignal, run: Run): Promise<readonly Login[]> {
    next.set(registry, after(registry, now() + PAUSE));
    try {
      const { logins, key, ttlMs } = await run(signal);
      if (ttlMs > 0) answers.set(key, { until: now() + ttlMs, logins });
      return logins;
    } catch (error) {
      if (error instanceof ProgramError) failures.set(own, { until: now() + FAILURE_TTL, error });
      throw error;
    }
  }

  return {
    /** @throws ProgramError, or the signal's reason */
    async ask(question: Question, signal: AbortSignal, askers: Askers, run: Run): Promise<readonly Login[]> {
      const [own] = question.keys;
      const known = remembered(question.keys);
      if (known !== undefined) return known;
      const failure = failures.get(own);
      if (failure !== undefined && failure.until > now()) throw failure.error;
      // Checked again when the turn has come: the answer to another question may have been one to this, too.
      const work = async (shared: AbortSignal) => remembered(question.keys) ?? call(question, shared, run);
      return runs.join(own, signal, (shared, all) => turns.run(all, PROGRAM, shared, () => work(shared)), askers);
    },
    /** Forgets the answers with a login that the registry refused, so that the program is asked again. */
    refused({ keys, registry }: Question, login: Login): void {
      for (const key of keys) {
        const held = answers.get(key);
        if (held?.logins.includes(login) !== true || held.isRefused === true) continue;
        const end = after(registry, now());
        next.set(registry, end + PAUSE);
        answers.set(key, { ...held, isRefused: true, until: Math.min(held.until, end) });
      }
    },
  };
}
