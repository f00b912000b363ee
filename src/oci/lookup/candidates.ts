import { createLru } from '../../kit/lru.ts';
import { ImageError } from '../errors.ts';
import type { Credential } from '../http/transport.ts';
import type { Paces } from './pace.ts';
import type { Target } from './place.ts';

/** A credential to try, or undefined for an anonymous try. */
export type Candidate = Credential | undefined;

/**
 * The results of earlier tries: which credential worked for a repository, which was refused there, and for which the
 * registry asked for a pause. It changes the order of tries and skips some, but never tries a credential that the
 * caller did not supply.
 *
 * A login that a registry, or its token service, refused (401) for two repositories is left alone at that host for five minutes,
 * unless it has worked there: else one wrong password is sent for every image, and the account may be locked. Where it has
 * worked, the answer is about the repository. Authors of pods name repositories, and none may take a login from others: so it is
 * tried once more after 30 s in another project, and for namespaces that met no refusal until four tries were refused.
 */
export type Candidates = {
  /**
   * Returns the candidates, beginning with the one that last worked for this repository, or else for its project, or its host: so a
   * credential that is wrong for a registry is not sent once for each of its repositories.
   */
  order(target: Target, candidates: readonly Candidate[]): readonly Candidate[];
  /** Returns why a candidate must not be tried now for these namespaces; undefined if it may be tried. */
  refusal(target: Target, candidate: Candidate, namespaces: readonly string[]): ImageError | undefined;
  worked(target: Target, candidate: Candidate): void;
  /** Records a failed try for these namespaces. `since`: the {@link Candidates.generation} in which it began. */
  failed(target: Target, candidate: Candidate, error: ImageError, since: number, namespaces: readonly string[]): void;
  /** Forgets which credentials were refused and which worked, because credentials have changed. */
  forgive(): void;
  /** The number of calls of `forgive`. */
  generation(): number;
};

export type CandidatesOptions = {
  /** Milliseconds for which a refused credential is not tried again. */
  readonly refusedMs: number;
  readonly now: () => number;
  readonly paces: Pick<Paces, 'isProven'>;
};

/** Authors of pods choose the names. What is forgotten is tried again. */
const MAX_BYTES = 8 * 1024 * 1024;
/** The bytes of an entry without its names. */
const ENTRY_BYTES = 300;
/** Milliseconds for which a refused try with a login counts at its host. */
const LOGIN_REFUSED_MS = 300_000;
/** The number of repositories that must refuse a login before its host counts as refusing it. */
const REPOSITORIES = 2;
/** The most refused tries in that time where the namespaces have met one, and altogether; and the time before the last of the first. */
const MOST_AGAIN = 3;
const MOST_TRIES = 4;
const AGAIN_MS = 30_000;
/** The most namespaces of one try that are remembered. */
const MOST_NAMESPACES = 10;
const ANONYMOUS = '';

/** A try with a login that was refused. */
type Tried = {
  readonly at: number;
  readonly repository: string;
  readonly project: string;
  readonly namespaces: readonly string[];
};

export function createCandidates({ refusedMs, now, paces }: CandidatesOptions): Candidates {
  const winners = createLru<string>(MAX_BYTES, (name, key) => ENTRY_BYTES + 2 * (name.length + key.length));
  const refused = createLru<{ readonly refusal: ImageError; readonly until: number }>(
    MAX_BYTES,
    ({ refusal: { message } }, key) => ENTRY_BYTES + 2 * (message.length + key.length),
  );
  /** By host and login: the last tries that were refused. */
  const logins = createLru<{ readonly refusal: ImageError; readonly tried: readonly Tried[] }>(
    MAX_BYTES,
    ({ refusal: { message }, tried }, key) =>
      ENTRY_BYTES + 2 * (message.length + key.length + JSON.stringify(tried).length),
  );
  let generation = 0;

  const nameOf = (candidate: Candidate): string => candidate?.fingerprint ?? ANONYMOUS;
  // Neither keys nor fingerprints end with a space.
  const tryOf = (target: Target, candidate: Candidate): string => `${target.place.repository.key} ${nameOf(candidate)}`;

  const loginOf = ({ place }: Target, candidate: Candidate): string => `${place.host.key} ${nameOf(candidate)}`;

  /** The tries with a login that were refused lately. */
  function triedOf(key: string): readonly Tried[] {
    return (logins.get(key)?.tried ?? []).filter(({ at }) => now() - at < LOGIN_REFUSED_MS);
  }

  function isLeftAlone({ place }: Target, key: string, namespaces: readonly string[]): boolean {
    const tried = triedOf(key);
    if (new Set(tried.map(({ repository }) => repository)).size < REPOSITORIES) return false;
    const areNew = namespaces.some((name) => !tried.some((each) => each.namespaces.includes(name)));
    if (areNew) return tried.length >= MOST_TRIES;
    const isLate = tried.every(({ at, project }) => now() - at >= AGAIN_MS && project !== place.project.key);
    return tried.length >= MOST_AGAIN || !isLate;
  }

  return {
    order(target, candidates) {
      const winner = keysOf(target)
        .map((key) => winners.get(key))
        .find((name) => candidates.some((each) => nameOf(each) === name));
      const first = candidates.filter((candidate) => nameOf(candidate) === winner);
      return first.length === 0 ? candidates : [...first, ...candidates.filter((each) => !first.includes(each))];
    },
    refusal(target, candidate, namespaces) {
      const key = loginOf(target, candidate);
      const login = logins.get(key)?.refusal;
      const isUnproven = login !== undefined && candidate !== undefined && !paces.isProven(target, candidate);
      if (isUnproven && isLeftAlone(target, key, namespaces)) return login;
      const before = refused.get(tryOf(target, candidate));
      return before !== undefined && before.until > now() ? before.refusal : undefined;
    },
    worked(target, candidate) {
      const [repository, ...wider] = keysOf(target);
      winners.set(repository, nameOf(candidate));
      // That something may be read without a login says nothing of what else there is.
      if (candidate !== undefined) for (const key of wider) winners.set(key, nameOf(candidate));
      logins.delete(loginOf(target, candidate));
    },
    failed(target, candidate, error, since, namespaces) {
      if (error.code !== 'denied' || since !== generation) return;
      // Without its cause, which holds what the try had in memory.
      const refusal = new ImageError(error.message, { ...error });
      refused.set(tryOf(target, candidate), { refusal, until: now() + refusedMs });
      if (!error.refusesLogin || candidate === undefined) return;
      const key = loginOf(target, candidate);
      const { repository, project } = target.place;
      const named = namespaces.slice(0, MOST_NAMESPACES);
      const latest = { at: now(), repository: repository.key, project: project.key, namespaces: named };
      logins.set(key, { refusal, tried: [...triedOf(key), latest].slice(-MOST_TRIES) });
    },
    forgive() {
      generation += 1;
      refused.clear();
      logins.clear();
      winners.clear();
    },
    generation: () => generation,
  };
}

/** Returns the keys of a target's place, from narrow to wide. */
function keysOf({ place: { repository, project, host } }: Target) {
  return [repository.key, project.key, host.key] as const;
}
