import { createLru } from '../../kit/lru.ts';
import type { ImageError } from '../errors.ts';
import type { Credential } from '../http/transport.ts';
import type { Target } from './place.ts';

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
/** Authors of pods choose names and logins. What is forgotten is learned again. */
const MAX_BYTES = 8 * 1024 * 1024;
/** The bytes of an entry without its names. */
const ENTRY_BYTES = 300;

/** A try with a login that was refused. */
type Tried = {
  readonly at: number;
  readonly repository: string;
  readonly project: string;
  readonly namespaces: readonly string[];
};

export type Logins = ReturnType<typeof createLogins>;

/**
 * Knows which logins have worked at which hosts. One that has not may be wrong, and must not be sent for every image: the account
 * might be locked. So it has one try at a time there (pace.ts). Once the registry, or its token service, refused it (401) for two
 * repositories it is left alone at that host for five minutes.
 *
 * Where it has worked, a refusal is about the repository. Authors of pods name repositories, and none may take a login from others:
 * so a refused one is tried once more after 30 s in another project, and for namespaces that met no refusal until four tries were
 * refused.
 */
export function createLogins(now: () => number) {
  const proven = createLru<true>(MAX_BYTES, (_value, key) => ENTRY_BYTES + 2 * key.length);
  const refused = createLru<{ readonly refusal: ImageError; readonly tried: readonly Tried[] }>(
    MAX_BYTES,
    ({ refusal: { message }, tried }, key) =>
      ENTRY_BYTES + 2 * (message.length + key.length + JSON.stringify(tried).length),
  );
  const keyOf = ({ place }: Target, { fingerprint }: Credential): string => `${place.host.key} ${fingerprint}`;

  /** The tries that were refused lately. */
  function triedOf(key: string): readonly Tried[] {
    return (refused.get(key)?.tried ?? []).filter(({ at }) => now() - at < REFUSED_MS);
  }

  function isLeftAlone({ place }: Target, tried: readonly Tried[], namespaces: readonly string[]): boolean {
    if (new Set(tried.map(({ repository }) => repository)).size < REPOSITORIES) return false;
    const areNew = namespaces.some((name) => !tried.some((each) => each.namespaces.includes(name)));
    if (areNew) return tried.length >= MOST_TRIES;
    const isLate = tried.every(({ at, project }) => now() - at >= AGAIN_MS && project !== place.project.key);
    return tried.length >= MOST_AGAIN || !isLate;
  }

  return {
    /** Whether the login has worked at the host. */
    isProven: (target: Target, login: Credential): boolean => proven.has(keyOf(target, login)),
    /** Call when the registry, or its token service, asked for the login and accepted it. */
    worked(target: Target, login: Credential): void {
      proven.set(keyOf(target, login), true);
      refused.delete(keyOf(target, login));
    },
    /** Call when it was refused for these namespaces. */
    refused(target: Target, login: Credential, refusal: ImageError, namespaces: readonly string[]): void {
      const key = keyOf(target, login);
      const { repository, project } = target.place;
      const named = namespaces.slice(0, MOST_NAMESPACES);
      const latest = { at: now(), repository: repository.key, project: project.key, namespaces: named };
      refused.set(key, { refusal, tried: [...triedOf(key), latest].slice(-MOST_TRIES) });
    },
    /** Returns why the login must not be sent now for these namespaces; undefined if it may be. */
    refusal(target: Target, login: Credential, namespaces: readonly string[]): ImageError | undefined {
      const key = keyOf(target, login);
      const isLeft = !proven.get(key) && isLeftAlone(target, triedOf(key), namespaces);
      return isLeft ? refused.get(key)?.refusal : undefined;
    },
    /** Forgets the refusals, because credentials have changed. */
    forgive: (): void => refused.clear(),
  };
}
