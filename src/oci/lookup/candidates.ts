import { createLru } from '../../kit/lru.ts';
import { labelOf } from '../endpoints/endpoint.ts';
import { ImageError } from '../errors.ts';
import type { Credential } from '../http/transport.ts';
import type { Target } from './place.ts';
import { createSpread } from './spread-starts.ts';

/** A credential to try, or undefined for an anonymous try. */
export type Candidate = Credential | undefined;

/**
 * The results of earlier tries: which credential worked for a repository, which was refused there, and for which the
 * registry asked for a pause. It changes the order of tries and skips some, but never tries a credential that the
 * caller did not supply.
 *
 * A limit of requests (429) pauses an account at the repository that answered it, at its project once two of its
 * repositories did, and at the projects that met it once two of them did. A registry may pass on the limit of another
 * one for one project, so a project that has not met it may still be asked.
 */
export type Candidates = {
  /**
   * Returns the candidates, beginning with the one that last worked for this repository, or else for its project, or its host: so a
   * credential that is wrong for a registry is not sent once for each of its repositories.
   */
  order(target: Target, candidates: readonly Candidate[]): readonly Candidate[];
  /** Returns why a candidate must not be tried now; undefined if it may be tried. */
  refusal(target: Target, candidate: Candidate): ImageError | undefined;
  worked(target: Target, candidate: Candidate): void;
  /** Records a failed try. `since`: the {@link Candidates.generation} in which it began. */
  failed(target: Target, candidate: Candidate, error: ImageError, since: number): void;
  /** Forgets which credentials were refused and which worked, because credentials have changed. */
  forgive(): void;
  /** The number of calls of `forgive`. */
  generation(): number;
};

export type CandidatesOptions = {
  /** Milliseconds for which a refused credential is not tried again. */
  readonly refusedMs: number;
  readonly now: () => number;
};

/** Authors of pods choose the names. What is forgotten is tried again. */
const MAX_BYTES = 8 * 1024 * 1024;
/** The bytes of an entry without its names. */
const ENTRY_BYTES = 300;
/** Milliseconds to pause if an endpoint answers 429 without a time. */
const DEFAULT_PAUSE = 10_000;
const ANONYMOUS = '';

/** A refusal, without what the error of the try holds in memory. */
type Refusal = Pick<ImageError, 'message' | 'byCredential' | 'status' | 'registryCode' | 'host'> & {
  readonly until: number;
};

export function createCandidates({ refusedMs, now }: CandidatesOptions): Candidates {
  const winners = createLru<string>(MAX_BYTES, (name, key) => ENTRY_BYTES + 2 * (name.length + key.length));
  const refused = createLru<Refusal>(MAX_BYTES, ({ message }, key) => ENTRY_BYTES + 2 * (message.length + key.length));
  const pauses = createSpread(now);
  let generation = 0;

  const nameOf = (candidate: Candidate): string => candidate?.fingerprint ?? ANONYMOUS;
  // Neither keys nor fingerprints end with a space.
  const tryOf = (target: Target, candidate: Candidate): string => `${target.place.repository.key} ${nameOf(candidate)}`;

  /** Registries limit requests by account or by address: returns the keys of that account, from narrow to wide. */
  function accountAt({ place: { repository, project, host } }: Target, candidate: Candidate) {
    const keyOf = (key: string): string => `${key} ${nameOf(candidate)}`;
    return [keyOf(repository.key), keyOf(project.key), keyOf(host.key)] as const;
  }

  /** Returns the pause of an account that ends last, and what it is for. */
  function pauseOf(target: Target, candidate: Candidate): ImageError | undefined {
    const [repository, project, host] = accountAt(target, candidate);
    const { place } = target;
    const all = [
      { until: pauses.first(repository), of: `its repository ${place.repository.name}` },
      { until: pauses.whole(project), of: `its project ${place.project.name}` },
      { until: pauses.first(project) > 0 ? pauses.whole(host) : 0, of: 'several of its projects' },
    ];
    const longest = all.reduce((one, other) => (other.until > one.until ? other : one));
    return longest.until > now() ? paused(target, longest.of, longest.until - now()) : undefined;
  }

  return {
    order(target, candidates) {
      const winner = keysOf(target)
        .map((key) => winners.get(key))
        .find((name) => candidates.some((each) => nameOf(each) === name));
      const first = candidates.filter((candidate) => nameOf(candidate) === winner);
      return first.length === 0 ? candidates : [...first, ...candidates.filter((each) => !first.includes(each))];
    },
    refusal(target, candidate) {
      const pause = pauseOf(target, candidate);
      if (pause !== undefined) return pause;
      const before = refused.get(tryOf(target, candidate));
      return before !== undefined && before.until > now() ? refusalOf(target, before) : undefined;
    },
    worked(target, candidate) {
      const [repository, ...wider] = keysOf(target);
      winners.set(repository, nameOf(candidate));
      // That something may be read without a login says nothing of what else there is.
      if (candidate !== undefined) for (const key of wider) winners.set(key, nameOf(candidate));
      pauses.remove(accountAt(target, candidate));
    },
    failed(target, candidate, error, since) {
      if (error.code === 'denied' && since === generation) {
        const { message, byCredential, status, registryCode, host } = error;
        const until = now() + refusedMs;
        refused.set(tryOf(target, candidate), { message, byCredential, status, registryCode, host, until });
      }
      if (error.code === 'rate-limited') {
        pauses.add(accountAt(target, candidate), now() + (error.retryAfterMs ?? DEFAULT_PAUSE));
      }
    },
    forgive() {
      generation += 1;
      refused.clear();
      winners.clear();
    },
    generation: () => generation,
  };
}

/** Returns the keys of a target's place, from narrow to wide. */
function keysOf({ place: { repository, project, host } }: Target) {
  return [repository.key, project.key, host.key] as const;
}

function refusalOf(target: Target, { message, until: _until, ...before }: Refusal): ImageError {
  return new ImageError(message, { ...before, code: 'denied', temporary: false, endpoint: labelOf(target) });
}

function paused(target: Target, of: string, wait: number): ImageError {
  const label = labelOf(target);
  return new ImageError(`${label} has reached its limit of requests for ${of}`, {
    code: 'rate-limited',
    temporary: true,
    retryAfterMs: wait,
    endpoint: label,
    isUnasked: true,
  });
}
