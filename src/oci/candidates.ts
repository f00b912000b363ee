import { LRUCache } from 'lru-cache';
import type { Endpoint } from './endpoint.ts';
import { ImageError } from './errors.ts';
import { labelOf } from './query.ts';
import type { Reference } from './reference.ts';
import type { Credential } from './transport.ts';

/** A credential to try, or undefined for an anonymous try. */
export type Candidate = Credential | undefined;

/**
 * What came of earlier tries: which credential worked for a repository, which was refused there, and which the endpoint
 * asked to leave it alone. It reorders and spares tries, and lets nobody use what is not among his own candidates.
 */
export type Candidates = {
  /** The candidates, with the one first that last worked for this repository. */
  order(place: Place, candidates: readonly Candidate[]): readonly Candidate[];
  /** Why a candidate is not to be tried now. */
  refusal(place: Place, candidate: Candidate): ImageError | undefined;
  worked(place: Place, candidate: Candidate): void;
  /** `since`: the {@link Candidates.generation} in which it was tried. */
  failed(place: Place, candidate: Candidate, error: ImageError, since: number): void;
  /** Forgets who was refused and what worked: credentials have changed. */
  forgive(): void;
  /** How often that was. */
  generation(): number;
};

/** Where a candidate is tried. */
export type Place = { readonly endpoint: Endpoint; readonly reference: Reference };

export type CandidatesOptions = {
  /** Milliseconds for which a refused credential is not tried again. */
  readonly refusedMs: number;
  readonly now: () => number;
};

const MAX_ENTRIES = 10_000;
/** Milliseconds to leave an endpoint alone that says 429 and not for how long. */
const DEFAULT_PAUSE = 10_000;
const ANONYMOUS = '';

export function createCandidates({ refusedMs, now }: CandidatesOptions): Candidates {
  const winners = new LRUCache<string, string>({ max: MAX_ENTRIES });
  const refused = new LRUCache<string, { error: ImageError; until: number }>({ max: MAX_ENTRIES });
  const paused = new LRUCache<string, number>({ max: MAX_ENTRIES });
  let generation = 0;

  const nameOf = (candidate: Candidate): string => candidate?.fingerprint ?? ANONYMOUS;
  // No part of a URL and no fingerprint holds a space.
  const repositoryOf = ({ endpoint, reference }: Place): string => `${endpoint.base}/${reference.repository}`;
  const tryOf = (place: Place, candidate: Candidate): string => `${repositoryOf(place)} ${nameOf(candidate)}`;
  // Limits of requests count by account, or by address, over all repositories of a host.
  const accountOf = ({ endpoint }: Place, candidate: Candidate): string => `${endpoint.host} ${nameOf(candidate)}`;

  return {
    order(place, candidates) {
      const winner = winners.get(repositoryOf(place));
      const first = candidates.filter((candidate) => nameOf(candidate) === winner);
      return first.length === 0 ? candidates : [...first, ...candidates.filter((each) => !first.includes(each))];
    },
    refusal(place, candidate) {
      const wait = (paused.get(accountOf(place, candidate)) ?? 0) - now();
      if (wait > 0) return pause(place, wait);
      const before = refused.get(tryOf(place, candidate));
      return before !== undefined && before.until > now() ? before.error : undefined;
    },
    worked: (place, candidate) => void winners.set(repositoryOf(place), nameOf(candidate)),
    failed(place, candidate, error, since) {
      if (error.code === 'denied' && since === generation)
        refused.set(tryOf(place, candidate), { error, until: now() + refusedMs });
      if (error.code === 'rate-limited') {
        paused.set(accountOf(place, candidate), now() + (error.retryAfterMs ?? DEFAULT_PAUSE));
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

function pause({ endpoint, reference }: Place, wait: number): ImageError {
  const label = labelOf(endpoint, reference);
  return new ImageError(`${label} has reached its limit of requests and is left alone for a while`, {
    code: 'rate-limited',
    temporary: true,
    retryAfterMs: wait,
    endpoint: label,
  });
}
