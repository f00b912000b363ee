import { createLru } from '../../kit/lru.ts';
import { ImageError } from '../errors.ts';
import type { Credential } from '../http/transport.ts';
import type { Target } from './health.ts';

/** A credential to try, or undefined for an anonymous try. */
export type LoginTry = Credential | undefined;

/** A try with a login that was refused. */
type Tried = {
  readonly at: number;
  readonly repository: string;
  readonly project: string;
  readonly namespaces: readonly string[];
};

/** Milliseconds for which a refused try with a login counts at its host. */
const REFUSED_MS = 300_000;
/** The number of repositories that must refuse a login before its host counts as refusing it. */
const REPOSITORIES = 2;
/** The most refused tries in that time where the namespaces have met one, and altogether; and the time before the last of the first. */
const MOST_AGAIN = 3;
const MOST_TRIES = 4;
const AGAIN_MS = 30_000;
/** The most namespaces of one try that are remembered. */
const MOST_NAMESPACES = 10;
/** Authors of pods choose names and logins. What is forgotten is tried again. */
const MAX_BYTES = 8 * 1024 * 1024;
/** The bytes of an entry without its names. */
const ENTRY_BYTES = 300;
const ANONYMOUS = '';

export type Logins = ReturnType<typeof createLogins>;

/**
 * The results of earlier tries: which credential worked for a repository, and which was refused there. It changes the order of tries and
 * skips some, but never tries a credential that the caller did not supply.
 *
 * It knows, too, which logins have worked at which hosts. One that has not may be wrong, and must not be sent for every image: the account
 * might be locked. So it has one try at a time there (pace.ts). Once the registry, or its token service, refused it (401) for two
 * repositories it is left alone at that host for five minutes.
 *
 * Where it has worked, a refusal is about the repository. Authors of pods name repositories, and none may take a login from others: so a
 * refused one is tried once more after 30 s in another project, and for namespaces that met no refusal until four tries were refused.
 *
 * @param refusedMs milliseconds for which a refused credential is not tried again for the repository
 */
export function createLogins({ refusedMs, now }: { readonly refusedMs: number; readonly now: () => number }) {
  const memory = <T extends object | string | boolean>(textOf: (value: T) => string) =>
    createLru<T>(MAX_BYTES, (value, key) => ENTRY_BYTES + 2 * (textOf(value).length + key.length));
  const winners = memory<string>((name) => name);
  /** By repository and credential. */
  const refused = memory<{ readonly refusal: ImageError; readonly until: number }>(({ refusal }) => refusal.message);
  /** By host and login. */
  const proven = memory<true>(String);
  const tries = memory<{ readonly refusal: ImageError; readonly tried: readonly Tried[] }>(
    ({ refusal, tried }) => refusal.message + JSON.stringify(tried),
  );
  let generation = 0;

  const nameOf = (candidate: LoginTry): string => candidate?.fingerprint ?? ANONYMOUS;
  // Neither keys nor fingerprints end with a space.
  const tryOf = ({ place }: Target, candidate: LoginTry): string => `${place.repository.key} ${nameOf(candidate)}`;
  const keyOf = ({ place }: Target, { fingerprint }: Credential): string => `${place.host.key} ${fingerprint}`;

  /** The tries that were refused lately. */
  function triedOf(key: string): readonly Tried[] {
    return (tries.get(key)?.tried ?? []).filter(({ at }) => now() - at < REFUSED_MS);
  }

  function isLeftAlone({ place }: Target, tried: readonly Tried[], namespaces: readonly string[]): boolean {
    if (new Set(tried.map(({ repository }) => repository)).size < REPOSITORIES) return false;
    const areNew = namespaces.some((name) => !tried.some((each) => each.namespaces.includes(name)));
    if (areNew) return tried.length >= MOST_TRIES;
    const isLate = tried.every(({ at, project }) => now() - at >= AGAIN_MS && project !== place.project.key);
    return tried.length >= MOST_AGAIN || !isLate;
  }

  return {
    /**
     * Returns the candidates, beginning with the one that last worked for this repository, or else for its project, or its host: so a
     * credential that is wrong for a registry is not sent once for each of its repositories.
     */
    order(target: Target, candidates: readonly LoginTry[]): readonly LoginTry[] {
      if (candidates.length < 2) return candidates;
      const winner = keysOf(target)
        .map((key) => winners.get(key))
        .find((name) => candidates.some((each) => nameOf(each) === name));
      const first = candidates.filter((candidate) => nameOf(candidate) === winner);
      return first.length === 0 ? candidates : [...first, ...candidates.filter((each) => !first.includes(each))];
    },
    /** Returns why a candidate must not be tried now for these namespaces; undefined if it may be tried. */
    refusal(target: Target, candidate: LoginTry, namespaces: readonly string[]): ImageError | undefined {
      const key = candidate && keyOf(target, candidate);
      if (key !== undefined && proven.get(key) === undefined && isLeftAlone(target, triedOf(key), namespaces)) {
        return tries.get(key)?.refusal;
      }
      const before = refused.get(tryOf(target, candidate));
      return before !== undefined && before.until > now() ? before.refusal : undefined;
    },
    worked(target: Target, candidate: LoginTry): void {
      const [repository, ...wider] = keysOf(target);
      winners.set(repository, nameOf(candidate));
      // That something may be read without a login says nothing of what else there is.
      if (candidate !== undefined) for (const key of wider) winners.set(key, nameOf(candidate));
    },
    /** Whether the login has worked at the host. */
    isProven: (target: Target, login: Credential): boolean => proven.has(keyOf(target, login)),
    /** Call when the registry, or its token service, asked for the login and accepted it. */
    accepted(target: Target, login: Credential): void {
      proven.set(keyOf(target, login), true);
      tries.delete(keyOf(target, login));
    },
    /** Records a failed try for these namespaces. `since`: the {@link Logins.generation} in which it began. */
    failed(target: Target, candidate: LoginTry, error: ImageError, since: number, namespaces: readonly string[]): void {
      if (error.code !== 'denied' || since !== generation) return;
      // Without its cause, which holds what the try had in memory.
      const refusal = new ImageError(error.message, { ...error });
      refused.set(tryOf(target, candidate), { refusal, until: now() + refusedMs });
      if (!error.refusesLogin || candidate === undefined) return;
      const key = keyOf(target, candidate);
      const { repository, project } = target.place;
      const named = namespaces.slice(0, MOST_NAMESPACES);
      const latest = { at: now(), repository: repository.key, project: project.key, namespaces: named };
      tries.set(key, { refusal, tried: [...triedOf(key), latest].slice(-MOST_TRIES) });
    },
    /** Forgets which credentials were refused and which worked, because credentials have changed. */
    forgive(): void {
      generation += 1;
      for (const all of [refused, tries, winners]) all.clear();
    },
    /** The number of calls of `forgive`. */
    generation: (): number => generation,
  };
}

/** Returns the keys of a target's place, from narrow to wide. */
function keysOf({ place: { repository, project, host } }: Target) {
  return [repository.key, project.key, host.key] as const;
}
