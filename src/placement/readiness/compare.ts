import type { ImageAnswer, Narrowing } from '../images.ts';
import { intersect } from '../images.ts';
import type { PodImage } from '../objects/image.ts';
import { assess, type Circumstances } from './assess.ts';
import { type Candidate, usersOf } from './candidate.ts';

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

/** The name of a workload in the output. */
export type WorkloadNamed = { readonly kind: string; readonly namespace?: string; readonly name: string };

/** An image that could not be looked up, so nothing can be said of it. */
type UnknownImage = WorkloadNamed & {
  readonly when: 'before' | 'after';
  readonly containers: readonly string[];
  readonly image: string;
  readonly code: string;
  readonly text: string;
};

/** The output of `check --compare`. */
export type Comparison = {
  /** The workloads that are in both. Images whose architectures are the same are not listed. */
  readonly workloads: readonly (WorkloadNamed & { readonly images: readonly ImageChange[] })[];
  readonly unknown: readonly UnknownImage[];
  /** The workloads that are only in the new manifests, or only in the old ones. Nothing is dropped by them. */
  readonly added: readonly WorkloadNamed[];
  readonly removed: readonly WorkloadNamed[];
};

/** Both states of what is compared. */
export type Compared = { readonly [when in 'before' | 'after']: readonly Candidate[] };

type AnswerOf = (image: PodImage, candidate: Candidate) => ImageAnswer;

/**
 * Compares workloads of the same kind, namespace and name, container by container. `on`: only these architectures count; undefined:
 * all. An image that is not known counts as unknown, never as dropped, and what an annotation of the template states is its author's word,
 * not an image's.
 */
export function compareWorkloads(
  { before, after }: Compared,
  on: readonly string[] | undefined,
  circumstances: Circumstances,
  answerOf: AnswerOf,
): Comparison {
  const counts = (architecture: string) => on === undefined || on.includes(architecture);
  // As with `kubectl apply`, the last one of a name stays.
  const old = new Map(before.map((candidate) => [keyOf(candidate), candidate]));
  const now = new Map(after.map((candidate) => [keyOf(candidate), candidate]));
  const unknown: UnknownImage[] = [];
  const workloads = [...now].flatMap(([key, candidate]) => {
    const previous = old.get(key);
    if (previous === undefined) return [];
    const [was, is] = [previous, candidate].map((each) => narrowedUsers(each, circumstances, answerOf));
    if (was === undefined || is === undefined) return [];
    unknown.push(...unknownIn(candidate, 'before', was), ...unknownIn(candidate, 'after', is));
    return [{ ...nameOf(candidate), images: changesOf(was, is, counts) }];
  });
  const missingIn = (others: ReadonlyMap<string, Candidate>, all: ReadonlyMap<string, Candidate>) =>
    [...all].flatMap(([key, candidate]) => (others.has(key) ? [] : [nameOf(candidate)]));
  return { workloads, unknown, added: missingIn(old, now), removed: missingIn(now, old) };
}

function keyOf({ kind, namespace, name }: Candidate): string {
  return `${kind} ${namespace || 'default'}/${name}`;
}

function nameOf({ kind, namespace, name }: Candidate): WorkloadNamed {
  return { kind, ...(namespace === '' ? {} : { namespace }), name };
}

type User = { readonly container: string; readonly image: string; readonly said: Narrowing };

/** Returns the containers and image volumes, each with how its image narrows; none if an annotation answers for the images. */
function narrowedUsers(candidate: Candidate, circumstances: Circumstances, answerOf: AnswerOf): User[] {
  const { narrowed } = assess(candidate, circumstances, (image) => answerOf(image, candidate));
  return narrowed.flatMap(({ image, said }) =>
    usersOf(candidate, image).map((container) => ({ container, image: image.image, said })),
  );
}

function unknownIn(candidate: Candidate, when: UnknownImage['when'], users: readonly User[]): UnknownImage[] {
  const found = new Map<string, UnknownImage>();
  for (const { container, image, said } of users) {
    if (said.kind !== 'failed' && said.kind !== 'pending') continue;
    const [code, why] = said.kind === 'failed' ? [said.code, said.message] : ['pending', 'its lookup has not ended'];
    const known = found.get(image);
    const containers = [...(known?.containers ?? []), container];
    const text = `${image} could not be looked up (${code}): ${why}`;
    found.set(image, { ...nameOf(candidate), when, containers, image, code, text });
  }
  return [...found.values()];
}

function changesOf(
  was: readonly User[],
  is: readonly User[],
  counts: (architecture: string) => boolean,
): ImageChange[] {
  const changes = new Map<string, ImageChange>();
  const common = commonOf(was);
  for (const { container, image, said } of is) {
    if (said.kind !== 'set') continue;
    const previous = was.find((user) => user.container === container);
    const before = previous?.said.kind === 'set' ? previous.said.architectures : undefined;
    // A new container may rule out what the workload ran on. What replaced an image of which nothing is known says nothing.
    const compared = previous === undefined ? common : before;
    if (compared === undefined) continue;
    const dropped = compared.filter((name) => counts(name) && !said.architectures.includes(name));
    const gained =
      previous === undefined ? [] : said.architectures.filter((name) => counts(name) && !compared.includes(name));
    if (dropped.length === 0 && gained.length === 0) continue;
    const key = JSON.stringify([previous?.image, image, dropped, gained]);
    const containers = [...(changes.get(key)?.containers ?? []), container];
    changes.set(key, {
      containers,
      ...(previous === undefined
        ? { within: compared }
        : { before: { image: previous.image, architectures: compared } }),
      after: { image, architectures: said.architectures },
      dropped,
      gained,
    });
  }
  return [...changes.values()];
}

/** Returns the architectures that all images ran on; undefined if an image is not known, or if none narrows them. */
function commonOf(users: readonly User[]): readonly string[] | undefined {
  if (users.some(({ said }) => said.kind === 'failed' || said.kind === 'pending')) return undefined;
  return intersect(users.flatMap(({ said }) => (said.kind === 'set' ? [said.architectures] : [])));
}
