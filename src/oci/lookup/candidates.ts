import { createLru } from '../../kit/lru.ts';
import { type EndpointTarget, labelOf, repositoryUrl } from '../endpoints/endpoint.ts';
import { ImageError } from '../errors.ts';
import type { Credential } from '../http/transport.ts';

/** A credential to try, or undefined for an anonymous try. */
export type Candidate = Credential | undefined;

/**
 * The results of earlier tries: which credential worked for a repository, which was refused there, and for which the
 * endpoint asked for a pause. It changes the order of tries and skips some, but never tries a credential that the
 * caller did not supply.
 */
export type Candidates = {
  /** Returns the candidates, beginning with the one that last worked for this repository. */
  order(target: EndpointTarget, candidates: readonly Candidate[]): readonly Candidate[];
  /** Returns why a candidate must not be tried now; undefined if it may be tried. */
  refusal(target: EndpointTarget, candidate: Candidate): ImageError | undefined;
  worked(target: EndpointTarget, candidate: Candidate): void;
  /** Records a failed try. `since`: the {@link Candidates.generation} in which it began. */
  failed(target: EndpointTarget, candidate: Candidate, error: ImageError, since: number): void;
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

const MAX_ENTRIES = 10_000;
/** Milliseconds to pause if an endpoint answers 429 without a time. */
const DEFAULT_PAUSE = 10_000;
const ANONYMOUS = '';

export function createCandidates({ refusedMs, now }: CandidatesOptions): Candidates {
  const winners = createLru<string>(MAX_ENTRIES);
  const refused = createLru<{ error: ImageError; until: number }>(MAX_ENTRIES);
  const paused = createLru<number>(MAX_ENTRIES);
  let generation = 0;

  const nameOf = (candidate: Candidate): string => candidate?.fingerprint ?? ANONYMOUS;
  // URLs and fingerprints contain no space.
  const tryOf = (target: EndpointTarget, candidate: Candidate): string =>
    `${repositoryUrl(target)} ${nameOf(candidate)}`;
  // Registries limit requests by account or by address, over all repositories of a host.
  const accountOf = ({ endpoint }: EndpointTarget, candidate: Candidate): string =>
    `${endpoint.host} ${nameOf(candidate)}`;

  return {
    order(target, candidates) {
      const winner = winners.get(repositoryUrl(target));
      const first = candidates.filter((candidate) => nameOf(candidate) === winner);
      return first.length === 0 ? candidates : [...first, ...candidates.filter((each) => !first.includes(each))];
    },
    refusal(target, candidate) {
      const wait = (paused.get(accountOf(target, candidate)) ?? 0) - now();
      if (wait > 0) return pause(target, wait);
      const before = refused.get(tryOf(target, candidate));
      return before !== undefined && before.until > now() ? before.error : undefined;
    },
    worked: (target, candidate) => void winners.set(repositoryUrl(target), nameOf(candidate)),
    failed(target, candidate, error, since) {
      if (error.code === 'denied' && since === generation)
        refused.set(tryOf(target, candidate), { error, until: now() + refusedMs });
      if (error.code === 'rate-limited') {
        paused.set(accountOf(target, candidate), now() + (error.retryAfterMs ?? DEFAULT_PAUSE));
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

function pause(target: EndpointTarget, wait: number): ImageError {
  const label = labelOf(target);
  return new ImageError(`${label} has reached its limit of requests, so it is asked again later`, {
    code: 'rate-limited',
    temporary: true,
    retryAfterMs: wait,
    endpoint: label,
  });
}
