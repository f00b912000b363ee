import type { LRUCache } from 'lru-cache';
import { doubled } from '../../kit/clock.ts';
import { createLru } from '../../kit/lru.ts';
import { type Endpoint, type EndpointTarget, labelOf, repositoryUrl } from '../endpoints/endpoint.ts';
import { ImageError } from '../errors.ts';
import type { Reference } from '../reference.ts';
import { unaskedText } from '../sentences.ts';

/** A repository, a project or a host: `key` equals that of no other one, and `name` is for messages. */
type Part = { readonly key: string; readonly name: string };

/**
 * Where an image is requested, from narrow to wide. Many registries are behind one host (projects and proxy caches of
 * Harbor, Artifactory or GitLab), so what one repository answers says little about the others.
 */
export type Place = {
  readonly repository: Part;
  /** The first component of the repository's path: `library` of `library/nginx`, `hub` behind a mirror's path `/hub`. */
  readonly project: Part;
  readonly host: Part;
};

/** An image at one of its endpoints, and its place there. */
export type Target = EndpointTarget & { readonly place: Place };

/** @throws ImageError if the image must not be requested there */
export function targetOf(endpoint: Endpoint, reference: Reference): Target {
  const target = { endpoint, reference };
  if (endpoint.refusal !== undefined) {
    throw new ImageError(endpoint.refusal, { code: 'forbidden-address', endpoint: labelOf(target) });
  }
  const { base, host, query, repository } = endpoint;
  const project = repository.split('/', 1)[0] ?? repository;
  const place = {
    // The query names to a mirror the registry that it stands for. Each of these may fail alone.
    repository: { key: `repository ${repositoryUrl(endpoint)}${query}`, name: repository },
    project: { key: `project ${base} ${project}${query}`, name: project },
    host: { key: hostKey(host), name: labelOf(target) },
  };
  return { ...target, place };
}

function hostKey(host: string): string {
  return `host ${host}`;
}

/**
 * What answers say about other images, in a tree of hosts, projects and repositories. Authors of pods choose the paths, so a part is
 * not the whole: a bad answer (5xx, a failed token service, a HEAD without a digest) concerns its repository, and its project once
 * two of its repositories gave it. Silence concerns the host too, if two projects of a host that answered nobody lately were silent,
 * and a connection that cannot be made concerns the host at once.
 *
 * What fails is asked by one lookup at a time, after pauses that double and end with the first answer. A namespace that has not tried
 * there need not wait for the pause, and the others try in turn: who asks for what fails delays nobody else by more than a try.
 * A project or host that fails because its parts did holds back only parts that failed themselves.
 */
export type Health = ReturnType<typeof createHealth>;

/**
 * `proven`: the project has answered. `new`: it was not asked, and its host answers. `unknown`: neither is known to answer. `failing`: two
 * of its repositories failed since it last answered, or no connection to its host can be made.
 */
export type Standing = 'proven' | 'new' | 'unknown' | 'failing';

/** Milliseconds: the pauses, and for how long the failure of a part makes it wait for the whole. */
const [FIRST, LONGEST] = [1000, 30_000];
/** Milliseconds: a host that answered so lately is not silent. */
const LATELY = 30_000;
/** Milliseconds for which a try without an end keeps the others from trying. */
const TRY = 5000;
/** Milliseconds by which those who tried later wait longer than those who tried before them, and the most of it. */
const [TURN, TURNS] = [1000, 5000];
const HEADLESS = 6 * 3_600_000;
/** Milliseconds: a project that answered so lately may have reached a limit, where a repository answers 503 at most so often in a row. */
const [BUSY, DOUBTS] = [10_000, 3];
/** The parts that must fail before the whole counts as failing. */
const PARTS = 2;
/** The namespaces that are known to have tried. With so many, those that have not wait, too. */
const NAMESPACES = 16;
/** Authors of pods choose the names. What is forgotten is asked. */
const MAX_BYTES = 8 * 1024 * 1024;
const ENTRY_BYTES = 800;

const LEVELS = ['repository', 'project', 'host'] as const;
type Level = (typeof LEVELS)[number];
const WIDEST_FIRST = LEVELS.toReversed();

/** What is known of a repository, project or host; times in milliseconds. `failures`: in a row. `tried`: namespaces, the last at the end. */
type Kept = Readonly<Record<'failures' | 'failedAt' | 'answeredAt' | 'pausesUntil' | 'triesUntil', number>> & {
  /** Whether a try is under way whose failure prolongs the pause: it began after the last one. */
  readonly isProbed: boolean;
  /** How often a repository answered 503 in a row. */
  readonly doubts: number;
  readonly parts: readonly string[];
  readonly tried: readonly string[];
  readonly last: ImageError | undefined;
  /** The repositories in which HEAD does not work, and until when that counts. */
  readonly headless: ReadonlyMap<string, number>;
};

/** A level that holds back what is below it, for so many milliseconds. */
type Held = { readonly level: Level; readonly kept: Kept; readonly wait: number };

const NEVER = { failures: 0, failedAt: 0, pausesUntil: 0, triesUntil: 0 };
const WELL = { ...NEVER, isProbed: false, doubts: 0, parts: [], tried: [], last: undefined };
const UNKNOWN: Kept = { ...WELL, answeredAt: Number.NEGATIVE_INFINITY, headless: new Map() };

/** What answers have said, and who hears of recoveries. */
type HealthState = Readonly<{ tree: LRUCache<string, Kept>; now: () => number; recovered: (key: string) => void }>;

/** `recovered` is called with the key of each place that failed and has answered now. */
export function createHealth(now: () => number, recovered: (key: string) => void = () => {}) {
  const tree = createLru<Kept>(MAX_BYTES, ({ last, parts, tried, headless }, key) => {
    const names = [key, last?.message, ...parts, ...tried, ...headless.keys()];
    return ENTRY_BYTES + 2 * names.join('').length;
  });
  const state: HealthState = { tree, now, recovered };
  return {
    /** Returns why the place must not be asked now for these namespaces, in an error with `isUnasked`. */
    refusal: (place: Place, namespaces: readonly string[]): ImageError | undefined =>
      refusalOf(holding(state, place, namespaces)),
    /** The same, just before the place is asked. If it returns undefined, ask now, and report what came of it. */
    start(place: Place, namespaces: readonly string[]): ImageError | undefined {
      const held = holding(state, place, namespaces);
      const refused = refusalOf(held);
      for (const { level, kept } of refused === undefined ? held : []) {
        const { failures, pausesUntil, tried } = kept;
        const probe =
          now() >= pausesUntil ? { isProbed: true, pausesUntil: now() + doubled(failures - 1, FIRST, LONGEST) } : {};
        change(state, place, level, { ...probe, triesUntil: now() + TRY, tried: withLast(tried, namespaces) });
      }
      return refused;
    },
    answered(place: Place): void {
      for (const level of LEVELS) recover(state, place, level);
    },
    /** Records that a place did not answer; returns the failure with the time after which the place may be asked again. */
    failed: (place: Place, namespaces: readonly string[], error: ImageError): ImageError =>
      failed(state, place, namespaces, error),
    /**
     * Records a 503 without a time, and returns whether it is likely to be a limit (the default answer of nginx's `limit_req`): the
     * project answered lately. A repository that goes on with it has failed by itself.
     */
    mayBeLimit(place: Place): boolean {
      const { doubts } = known(state, place, 'repository');
      if (now() - known(state, place, 'project').answeredAt >= BUSY || doubts >= DOUBTS) return false;
      change(state, place, 'repository', { doubts: doubts + 1 });
      return true;
    },
    /** What is known of a project: how many lookups may be there at a time depends on it. */
    standing(place: Place): Standing {
      const [project, host] = [known(state, place, 'project'), known(state, place, 'host')];
      if (host.last?.unreachable !== undefined || project.parts.length >= PARTS) return 'failing';
      if (project.answeredAt > Number.NEGATIVE_INFINITY) return 'proven';
      return host.answeredAt > Number.NEGATIVE_INFINITY && host.failures === 0 ? 'new' : 'unknown';
    },
    /** Whether HEAD of a manifest does not work in the repository, or in two of its project. */
    isHeadless: (place: Place): boolean =>
      headlessIn(known(state, place, 'repository'), now()) > 0 ||
      headlessIn(known(state, place, 'project'), now()) >= PARTS,
    /** `doubtful`: HEAD failed, and GET did not. As somebody may push and delete a tag meanwhile, that never counts for the project. */
    sawHead(place: Place, head: 'works' | 'broken' | 'doubtful'): void {
      for (const level of LEVELS.slice(0, head === 'doubtful' ? 1 : 2)) {
        const { headless } = known(state, place, level);
        const others = [...headless].filter(([key]) => key !== place.repository.key);
        const own = [place.repository.key, now() + HEADLESS] as const;
        if (head !== 'works') change(state, place, level, { headless: new Map([...others.slice(1 - PARTS), own]) });
        else if (headless.size > 0) change(state, place, level, { headless: new Map() });
      }
    },
  };
}

function isFailing(state: HealthState, place: Place, level: Level, { parts, last }: Kept): boolean {
  if (level === 'repository' || last?.unreachable !== undefined) return true;
  const part = known(state, place, level === 'host' ? 'project' : 'repository');
  return parts.length >= PARTS && part.failures > 0 && state.now() - part.failedAt < LONGEST;
}

function waitOf(now: number, { pausesUntil, triesUntil, tried }: Kept, namespaces: readonly string[]): number {
  const turns = namespaces.map((name) => tried.indexOf(name));
  const isNew = turns.includes(-1) && tried.length < NAMESPACES;
  const turn = Math.min(TURN * Math.max(Math.min(...turns), 0), TURNS);
  return Math.max(triesUntil - now, isNew ? 0 : pausesUntil + turn - now, 0);
}

/** Returns the failing levels of a place, the one with the longest wait first; of equal ones the widest. */
function holding(state: HealthState, place: Place, namespaces: readonly string[]): readonly Held[] {
  const held: Held[] = [];
  for (const level of WIDEST_FIRST) {
    const kept = known(state, place, level);
    if (kept.failures > 0 && isFailing(state, place, level, kept))
      held.push({ level, kept, wait: waitOf(state.now(), kept, namespaces) });
  }
  return held.sort((one, other) => other.wait - one.wait);
}

function recover(state: HealthState, place: Place, level: Level): void {
  const { tree, now, recovered } = state;
  const before = known(state, place, level);
  if (level === 'repository' && before.headless.size === 0) tree.delete(place[level].key);
  else change(state, place, level, { ...WELL, answeredAt: now() });
  if (before.failures > 0) recovered(place[level].key);
}

function failed(state: HealthState, place: Place, namespaces: readonly string[], error: ImageError): ImageError {
  const now = state.now();
  const { code, byCredential, endpoint, unreachable } = error;
  const isConnection = unreachable !== undefined && hostKey(unreachable) === place.host.key;
  // A token service fails for a login, and the registry has answered with a challenge.
  const isAnswer = error.status !== undefined || byCredential;
  if (isAnswer && !isConnection) recover(state, place, 'host');
  const isSilent = !isAnswer && now - known(state, place, 'host').answeredAt >= LATELY;
  const levels: readonly Level[] = isConnection ? ['host'] : LEVELS.slice(0, isSilent ? 3 : 2);
  for (const level of levels) {
    const { failures, pausesUntil, isProbed, parts, tried } = known(state, place, level);
    const counts = failures === 0 || isProbed || now >= pausesUntil;
    const { name, key } = place[level];
    const details = { code, byCredential, endpoint, temporary: true, isUnasked: true, waitsFor: key };
    const text = unaskedText(error, place.host.name, level === 'host' ? '' : `${level} ${name}`);
    const part = level === 'repository' ? key : place[level === 'host' ? 'project' : 'repository'].key;
    change(state, place, level, {
      ...(counts ? { failures: failures + 1, pausesUntil: now + doubled(failures, FIRST, LONGEST) } : {}),
      ...{ triesUntil: 0, isProbed: false, failedAt: now, tried: withLast(tried, namespaces) },
      parts: [...new Set([...parts, part])].slice(0, PARTS),
      last: new ImageError(text, isConnection ? { ...details, unreachable } : details),
    });
  }
  const [held] = holding(state, place, namespaces);
  const again = held && { retryAfterMs: held.wait, waitsFor: place[held.level].key };
  return new ImageError(error.message, { ...error, ...again, cause: error });
}

function headlessIn({ headless }: Kept, now: number): number {
  return [...headless.values()].filter((until) => until > now).length;
}

function known({ tree }: HealthState, place: Place, level: Level): Kept {
  return tree.get(place[level].key) ?? UNKNOWN;
}

function change(state: HealthState, place: Place, level: Level, changes: Partial<Kept>): void {
  state.tree.set(place[level].key, { ...known(state, place, level), ...changes });
}

function refusalOf([held]: readonly Held[]): ImageError | undefined {
  if (held === undefined || held.wait === 0 || held.kept.last === undefined) return undefined;
  return new ImageError(held.kept.last.message, { ...held.kept.last, retryAfterMs: held.wait });
}

function withLast(tried: readonly string[], namespaces: readonly string[]): readonly string[] {
  return [...tried.filter((name) => !namespaces.includes(name)), ...namespaces].slice(-NAMESPACES);
}
