import type { Askers } from '../../kit/fairness/askers.ts';
import type { Turns } from '../../kit/fairness/turns.ts';
import { createFlights } from '../../kit/flights.ts';
import { createLru } from '../../kit/lru.ts';
import type { LoginSource } from '../errors.ts';
import type { Login } from './docker.ts';
import { PROGRAM, ProgramError } from './process.ts';

/** A program of the operator that gives logins, with what it answered lately. */
export type CredentialProgram = Pick<LoginSource, 'kind' | 'name'> & ReturnType<typeof createAnswers>;

export type ProgramOptions = {
  /** The limit for one run of a program. */
  readonly timeoutMs: number;
  readonly now: () => number;
  readonly turns: Turns;
};

type Answer = { readonly until: number; readonly logins: readonly Login[]; readonly isRefused?: true };

/** Runs the program; returns what it answered, and for which of the keys, and how many milliseconds, that is remembered. */
type Run = (
  target: string,
  signal: AbortSignal,
) => Promise<{ readonly logins: readonly Login[]; readonly key: string; readonly ttlMs: number }>;

/** The key of an answer for everything. It equals no image and no registry, because neither contains a space. */
export const GLOBAL = ' ';

const FAILURE_TTL = 10_000;
/** Milliseconds between the calls of a program for a registry that refuses its answers: it may be wrong for good. */
const PAUSE = 30_000;
const MAX_ENTRIES = 10_000;

/**
 * Remembers what a program answered for as long as it says, and its failures for ten seconds. There is at most one run at a time for
 * a target: the name of an image, or a host[:port].
 */
export function createAnswers({ now, turns }: ProgramOptions, run: Run) {
  const answers = createLru<Answer>(MAX_ENTRIES);
  const failures = createLru<{ readonly until: number; readonly error: ProgramError }>(MAX_ENTRIES);
  const runs = createFlights<readonly Login[]>();
  /** When the program may be called next for a registry because of a refusal. */
  const next = createLru<number>(MAX_ENTRIES);
  const after = (registry: string, time: number): number => Math.max(next.get(registry) ?? 0, time);
  const keysOf = (target: string): readonly string[] => [target, registryOf(target), GLOBAL];

  function remembered(target: string): readonly Login[] | undefined {
    const held = keysOf(target).map((key) => answers.get(key));
    return held.find((answer) => answer !== undefined && answer.until > now())?.logins;
  }

  async function call(target: string, signal: AbortSignal): Promise<readonly Login[]> {
    const registry = registryOf(target);
    next.set(registry, after(registry, now() + PAUSE));
    try {
      const { logins, key, ttlMs } = await run(target, signal);
      if (ttlMs > 0) answers.set(key, { until: now() + ttlMs, logins });
      return logins;
    } catch (error) {
      if (error instanceof ProgramError) failures.set(target, { until: now() + FAILURE_TTL, error });
      throw error;
    }
  }

  return {
    /** @throws ProgramError, or the signal's reason */
    async ask(target: string, signal: AbortSignal, askers: Askers): Promise<readonly Login[]> {
      const known = remembered(target);
      if (known !== undefined) return known;
      const failure = failures.get(target);
      if (failure !== undefined && failure.until > now()) throw failure.error;
      // Checked again when the turn has come: the answer for another target may have been one for this, too.
      const work = async (shared: AbortSignal) => remembered(target) ?? call(target, shared);
      return runs.join(target, signal, (shared, all) => turns.run(all, PROGRAM, shared, () => work(shared)), askers);
    },
    /** Forgets the answers with a login that the registry refused, so that the program is asked again. */
    refused(target: string, login: Login): void {
      const registry = registryOf(target);
      for (const key of keysOf(target)) {
        const held = answers.get(key);
        if (held?.logins.includes(login) !== true || held.isRefused === true) continue;
        const end = after(registry, now());
        next.set(registry, end + PAUSE);
        answers.set(key, { ...held, isRefused: true, until: Math.min(held.until, end) });
      }
    },
  };
}

export function registryOf(image: string): string {
  return image.split('/', 1)[0] ?? image;
}
