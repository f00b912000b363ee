import { createLru } from '../../kit/lru.ts';
import { ImageError } from '../errors.ts';
import type { Credential } from '../http/transport.ts';
import type { Logins } from './logins.ts';
import type { Target } from './place.ts';

/** A credential to try, or undefined for an anonymous try. */
export type Candidate = Credential | undefined;

export type CandidatesOptions = {
  /** Milliseconds for which a refused credential is not tried again. */
  readonly refusedMs: number;
  readonly now: () => number;
  readonly logins: Logins;
};

/** Authors of pods choose the names. What is forgotten is tried again. */
const MAX_BYTES = 8 * 1024 * 1024;
/** The bytes of an entry without its names. */
const ENTRY_BYTES = 300;
const ANONYMOUS = '';

/**
 * The results of earlier tries: which credential worked for a repository, which was refused there, and for which the
 * registry asked for a pause. It changes the order of tries and skips some, but never tries a credential that the
 * caller did not supply.
 */
export function createCandidates({ refusedMs, now, logins }: CandidatesOptions) {
  const winners = createLru<string>(MAX_BYTES, (name, key) => ENTRY_BYTES + 2 * (name.length + key.length));
  const refused = createLru<{ readonly refusal: ImageError; readonly until: number }>(
    MAX_BYTES,
    ({ refusal: { message } }, key) => ENTRY_BYTES + 2 * (message.length + key.length),
  );
  let generation = 0;

  const nameOf = (candidate: Candidate): string => candidate?.fingerprint ?? ANONYMOUS;
  // Neither keys nor fingerprints end with a space.
  const tryOf = (target: Target, candidate: Candidate): string => `${target.place.repository.key} ${nameOf(candidate)}`;

  return {
    /**
     * Returns the candidates, beginning with the one that last worked for this repository, or else for its project, or its host: so a
     * credential that is wrong for a registry is not sent once for each of its repositories.
     */
    order(target: Target, candidates: readonly Candidate[]): readonly Candidate[] {
      const winner = keysOf(target)
        .map((key) => winners.get(key))
        .find((name) => candidates.some((each) => nameOf(each) === name));
      const first = candidates.filter((candidate) => nameOf(candidate) === winner);
      return first.length === 0 ? candidates : [...first, ...candidates.filter((each) => !first.includes(each))];
    },
    /** Returns why a candidate must not be tried now for these namespaces; undefined if it may be tried. */
    refusal(target: Target, candidate: Candidate, namespaces: readonly string[]): ImageError | undefined {
      const login = candidate && logins.refusal(target, candidate, namespaces);
      if (login !== undefined) return login;
      const before = refused.get(tryOf(target, candidate));
      return before !== undefined && before.until > now() ? before.refusal : undefined;
    },
    worked(target: Target, candidate: Candidate): void {
      const [repository, ...wider] = keysOf(target);
      winners.set(repository, nameOf(candidate));
      // That something may be read without a login says nothing of what else there is.
      if (candidate !== undefined) for (const key of wider) winners.set(key, nameOf(candidate));
    },
    /** Records a failed try for these namespaces. `since`: the {@link Candidates.generation} in which it began. */
    failed(
      target: Target,
      candidate: Candidate,
      error: ImageError,
      since: number,
      namespaces: readonly string[],
    ): void {
      if (error.code !== 'denied' || since !== generation) return;
      // Without its cause, which holds what the try had in memory.
      const refusal = new ImageError(error.message, { ...error });
      refused.set(tryOf(target, candidate), { refusal, until: now() + refusedMs });
      if (error.refusesLogin && candidate !== undefined) logins.refused(target, candidate, refusal, namespaces);
    },
    /** Forgets which credentials were refused and which worked, because credentials have changed. */
    forgive(): void {
      generation += 1;
      refused.clear();
      logins.forgive();
      winners.clear();
    },
    /** The number of calls of `forgive`. */
    generation: (): number => generation,
  };
}

/** Returns the keys of a target's place, from narrow to wide. */
function keysOf({ place: { repository, project, host } }: Target) {
  return [repository.key, project.key, host.key] as const;
}
