import { intersect, type Narrowing, narrowingOf } from '../../placement/images.ts';
import { type NamedObject, objectName } from '../../placement/objects/kinds.ts';
import { usersOf } from '../../placement/readiness/target-verdict.ts';
import { type AnswerOf, assess, type Candidate, type Circumstances } from './assess.ts';

/** An image of a workload, and the architectures of nodes that run it. */
type ComparedImage = { readonly image: string; readonly architectures: readonly string[] };

/** What became of the image of one or more containers. */
export type ImageChange = {
  readonly containers: readonly string[];
  /** The image before. Absent for a container that is new: the architectures of the whole workload are `within` then. */
  readonly before?: ComparedImage;
  /** For a new container: the architectures on which the workload ran before. */
  readonly within?: readonly string[];
  readonly after: ComparedImage;
  readonly dropped: readonly string[];
  readonly gained: readonly string[];
};

/** An image that could not be looked up, so nothing can be said of it. */
type UnknownImage = NamedObject & {
  readonly when: 'before' | 'after';
  readonly containers: readonly string[];
  readonly image: string;
  readonly code: string;
  readonly text: string;
};

/** The output of `check --compare`. */
export type Comparison = {
  /** The workloads that are in both. Images whose architectures are the same are not listed. */
  readonly workloads: readonly (NamedObject & { readonly images: readonly ImageChange[] })[];
  readonly unknown: readonly UnknownImage[];
  /** The workloads that are only in the new manifests, or only in the old ones. Nothing is dropped by them. */
  readonly added: readonly NamedObject[];
  readonly removed: readonly NamedObject[];
};

/** Both states of what is compared. */
export type Compared = { readonly [when in 'before' | 'after']: readonly Candidate[] };

/**
 * Compares workloads of the same kind, namespace and name, container by container. An image that the workload had before is not
 * compared. `on`: only these architectures count; undefined: all. An image that is not known counts as unknown, never as dropped, and
 * what an annotation of the template states is its author's word, not an image's.
 *
 * @param answerOf is called only for images that the result depends on. Answer `pending`, look these images up, and call this again until
 *   no answer is `pending`: what is asked for next depends on the answers
 */
export function compareWorkloads(
  { before, after }: Compared,
  on: readonly string[] | undefined,
  circumstances: Circumstances,
  answerOf: AnswerOf,
): Comparison {
  // As with `kubectl apply`, the last one of a name stays.
  const old = new Map(before.map((candidate) => [keyOf(candidate), candidate]));
  const now = new Map(after.map((candidate) => [keyOf(candidate), candidate]));
  const unknown: UnknownImage[] = [];
  const workloads = [...now].flatMap(([key, candidate]) => {
    const previous = old.get(key);
    if (previous === undefined) return [];
    const was = usersIn(previous, circumstances, answerOf);
    const compared = compareImages(was, usersIn(candidate, circumstances, answerOf), on);
    unknown.push(...compared.unknown.map((each) => ({ ...objectName(candidate), ...each })));
    return [{ ...objectName(candidate), images: compared.changes }];
  });
  const missingIn = (others: ReadonlyMap<string, Candidate>, all: ReadonlyMap<string, Candidate>) =>
    [...all].flatMap(([key, candidate]) => (others.has(key) ? [] : [objectName(candidate)]));
  return { workloads, unknown, added: missingIn(old, now), removed: missingIn(now, old) };
}

function keyOf({ kind, namespace, name }: Candidate): string {
  return `${kind} ${namespace || 'default'}/${name}`;
}

/** A container or an image volume with its image. */
type User = {
  readonly container: string;
  readonly image: string;
  /** The same for every way to write the same reference. */
  readonly reference: string;
  /** Asks for the image unless it can be answered without a registry. */
  readonly said: () => Narrowing;
};

/** Returns the containers and image volumes of a workload; none if an annotation answers for the images. */
function usersIn(candidate: Candidate, circumstances: Circumstances, answerOf: AnswerOf): User[] {
  const { subject, narrowed } = assess(candidate, circumstances, () => ({ kind: 'pending' }));
  return narrowed.flatMap(({ image }) => {
    const names = circumstances.namesOf(image.image);
    const reference = `${image.volume === undefined ? '' : 'volume '}${names.at(-1) ?? image.image}`;
    return usersOf(candidate, image).map((container) => ({
      ...{ container, image: image.image, reference },
      said: () => narrowingOf(image, subject, subject.settings, names, () => answerOf(image, candidate)),
    }));
  });
}

type ComparisonFailure = Omit<UnknownImage, keyof NamedObject>;

/** Compares the images that the workload did not have before: each with the image that it replaces, or with all if it replaces none. */
function compareImages(
  was: readonly User[],
  is: readonly User[],
  on: readonly string[] | undefined,
): { changes: ImageChange[]; unknown: ComparisonFailure[] } {
  const changes = new Map<string, ImageChange>();
  const unknown = new Map<string, ComparisonFailure>();
  const setOf = (user: User, when: ComparisonFailure['when']): readonly string[] | undefined => {
    const said = user.said();
    if (said.kind === 'set') return said.architectures;
    if (said.kind !== 'failed' && said.kind !== 'pending') return undefined;
    const { image, container } = user;
    const containers = [...new Set([...(unknown.get(image)?.containers ?? []), container])];
    const [code, why] = said.kind === 'failed' ? [said.code, said.message] : ['pending', 'its lookup has not ended'];
    unknown.set(image, { when, containers, image, code, text: `${image} could not be looked up (${code}): ${why}` });
    return undefined;
  };
  const add = (change: Omit<ImageChange, 'containers'>, container: string): void => {
    if (change.dropped.length === 0 && change.gained.length === 0) return;
    const key = JSON.stringify(change);
    changes.set(key, { containers: [...(changes.get(key)?.containers ?? []), container], ...change });
  };
  const counts = (architecture: string) => on === undefined || on.includes(architecture);
  for (const user of changedIn(was, is)) {
    const previous = was.find(({ container }) => container === user.container);
    const replaced = previous && setOf(previous, 'before');
    const set = setOf(user, 'after');
    if (set === undefined) continue;
    const after = { image: user.image, architectures: set };
    const lacks = (name: string) => counts(name) && !set.includes(name);
    if (previous === undefined) {
      // An image that runs on all of `on` rules nothing out.
      if (on?.some(lacks) === false) continue;
      const within = commonOf(was);
      if (within !== undefined) add({ within, after, dropped: within.filter(lacks), gained: [] }, user.container);
      else for (const each of was) setOf(each, 'before');
    } else if (replaced !== undefined) {
      // The other images may have ruled out what this one lacks. They are asked for only here.
      const dropped = replaced.some(lacks) ? (commonOf(was) ?? []).filter(lacks) : [];
      const gained = set.filter((name) => counts(name) && !replaced.includes(name));
      const before = { image: previous.image, architectures: replaced };
      add({ before, after, dropped, gained }, user.container);
    }
  }
  return { changes: [...changes.values()], unknown: [...unknown.values()] };
}

/** Returns what uses an image that the workload did not have before. Nothing where an annotation answered for the images before. */
function changedIn(was: readonly User[], is: readonly User[]): User[] {
  const kept = new Set(was.map(({ reference }) => reference));
  return was.length === 0 ? [] : is.filter(({ reference }) => !kept.has(reference));
}

/** Returns the architectures that all images ran on which are known; undefined if none narrows them. */
function commonOf(users: readonly User[]): readonly string[] | undefined {
  return intersect(
    users.flatMap(({ said }) => {
      const narrowing = said();
      return narrowing.kind === 'set' ? [narrowing.architectures] : [];
    }),
  );
}
