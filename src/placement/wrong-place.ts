import { type ImageSet, whatNames } from './decide.ts';
import { answerLocally, type ImageAnswer, intersect, narrowingOf, statementOf, withCompatible } from './images.ts';
import { MOST_IMAGES, type Pod, type PodImage } from './pod.ts';
import type { Settings } from './settings.ts';
import type { BrokenContainer } from './start-error.ts';

/** What shows that a pod is on a wrong node: what its images run on, or that a container died of it. */
export type WrongReason = 'platforms' | 'exec-format-error';

/**
 * What is known of a broken container on its node. `does-not-run`: what was pulled has no such platform. `says-it-runs`: it has,
 * and the container is refused all the same. `unproved`: nothing certain is known of what was pulled.
 */
export type Verdict = 'does-not-run' | 'says-it-runs' | 'unproved';

/** What an image runs on, and the architectures of nodes that run it. */
export type KnownImage = ImageSet & { readonly architectures: readonly string[] };

/** What is known of the images that a pod names, as far as nobody guessed: what its successor would run. */
export type Known = {
  readonly images: readonly KnownImage[];
  /** Those of nodes that run all of them; undefined where an image is not known, or none narrows them. */
  readonly architectures: readonly string[] | undefined;
  /** Images that were never looked up until now: their answer is on the way. */
  readonly pending: readonly string[];
  /** Images of which nothing is known, or nothing that still holds. */
  readonly unknown: readonly string[];
};

/** What is known of what was pulled for broken containers: what their status says, not what a tag says today. */
export type Pulled = {
  readonly images: ReadonlyMap<BrokenContainer, KnownImage>;
  /** Digests (`repository@digest`) whose answer is on the way. */
  readonly pending: readonly string[];
  /** Digests that could not be looked up. */
  readonly unknown: readonly string[];
};

/** A pod that is where it should not be. */
export type WrongPlace = {
  readonly reason: WrongReason;
  readonly verdict: Verdict;
  /** The container that shows it. */
  readonly container: BrokenContainer;
  /** What was pulled for it, where that is known. */
  readonly pulled: KnownImage | undefined;
  readonly known: Known;
};

type Subject = Pick<Pod, 'images' | 'os' | 'hasRuntimeClass' | 'statement' | 'broken'>;
type Rules = Pick<Settings, 'overrides' | 'compatible'>;

/**
 * What is known for certain of what a pod's images run on. Its author's own statement is no knowledge of images, and none
 * is asked then. `isStale`: what is known of an image could not be revalidated.
 */
export function whatIsKnown(
  pod: Omit<Subject, 'broken'>,
  settings: Rules,
  namesOf: (image: string) => readonly string[],
  answerOf: (image: PodImage) => ImageAnswer,
  isStale: (image: PodImage) => boolean,
): Known {
  const images: KnownImage[] = [];
  const pending: string[] = [];
  const unknown: string[] = [];
  if (statementOf(pod.statement) !== undefined) return { images, architectures: undefined, pending, unknown };
  for (const image of pod.images) {
    const said = narrowingOf(image, pod, settings, namesOf(image.image), answerOf);
    if (said.kind === 'pending') pending.push(image.image);
    else if (said.kind === 'failed') unknown.push(image.image);
    else if (said.kind === 'set' && said.by === 'registry' && isStale(image)) unknown.push(image.image);
    else if (said.kind === 'set') {
      images.push({ ...whatNames(image), platforms: said.platforms, architectures: said.architectures });
    }
  }
  const certain = pending.length === 0 && unknown.length === 0;
  const architectures = certain ? intersect(images.map((image) => image.architectures)) : undefined;
  return { images, architectures, pending, unknown };
}

/** What is known of what the runtime pulled for a pod's broken containers. `images.overrides` goes before the digest. */
export function whatWasPulled(
  pod: Subject,
  settings: Rules,
  namesOf: (image: string) => readonly string[],
  answerOf: (image: PodImage) => ImageAnswer,
): Pulled {
  const images = new Map<BrokenContainer, KnownImage>();
  const pending: string[] = [];
  const unknown: string[] = [];
  const broken = statementOf(pod.statement) === undefined ? (pod.broken ?? []) : [];
  for (const container of broken.slice(0, MOST_IMAGES)) {
    const { image, pulled } = container;
    const stated = answerLocally({ image, pullPolicy: '' }, namesOf(image), settings);
    if (stated !== undefined && stated !== 'not-asked') {
      const platforms = stated.map((name) => `${pod.os}/${name}`);
      images.set(container, { image, platforms, architectures: withCompatible(new Set(stated), settings.compatible) });
      continue;
    }
    if (pulled === undefined) continue;
    const said = narrowingOf(pulled, pod, settings, [], answerOf);
    if (said.kind === 'pending') pending.push(pulled.image);
    else if (said.kind === 'failed') unknown.push(pulled.image);
    else if (said.kind === 'set') {
      images.set(container, { image: pulled.image, platforms: said.platforms, architectures: said.architectures });
    }
  }
  return { images, pending, unknown };
}

/**
 * Whether every broken container was pulled for this architecture and says nothing against it: then it fails for a reason of
 * its own, and what its tags say today need not be asked.
 */
export function failsByItself({ broken }: Pick<Pod, 'broken'>, architecture: string, { images }: Pulled): boolean {
  return (broken ?? []).every(
    (container) =>
      container.trouble === 'failing' && images.get(container)?.architectures.includes(architecture) === true,
  );
}

/**
 * Whether a pod that is bound to a node of this architecture is in the wrong place, and what shows it. A pod whose containers
 * all run is in no wrong place, whatever its tags say by now. The container that proves most is the one that is named.
 */
export function wrongPlace(
  { broken }: Pick<Pod, 'broken'>,
  architecture: string,
  known: Known,
  pulled: Pulled,
): WrongPlace | undefined {
  let found: WrongPlace | undefined;
  for (const container of broken ?? []) {
    const image = pulled.images.get(container);
    const verdict = judge(container, architecture, known, image);
    if (verdict === undefined || (found !== undefined && RANK[verdict] >= RANK[found.verdict])) continue;
    const reason = container.trouble === 'exec-format-error' ? 'exec-format-error' : 'platforms';
    found = { reason, verdict, container, pulled: image, known };
  }
  return found;
}

const RANK: Readonly<Record<Verdict, number>> = { 'does-not-run': 0, 'says-it-runs': 1, unproved: 2 };

/** Undefined: nothing shows that the architecture is what it fails for. */
function judge(
  { image, trouble }: BrokenContainer,
  architecture: string,
  known: Known,
  pulled: KnownImage | undefined,
): Verdict | undefined {
  const runs = (set: KnownImage) => set.architectures.includes(architecture);
  // The kubelet says it on the container that mounts the volume; what was pulled for the container has no part in that.
  const isOfVolume = known.images.some((each) => each.volume !== undefined && !runs(each));
  if (trouble === 'no-match-for-platform' && isOfVolume) return 'does-not-run';
  if (pulled !== undefined) {
    if (!runs(pulled)) return 'does-not-run';
    return trouble === 'failing' ? undefined : 'says-it-runs';
  }
  const named = known.images.find((each) => each.image === image && each.volume === undefined);
  switch (trouble) {
    case 'no-match-for-platform':
      if (known.images.some((each) => !runs(each))) return 'does-not-run';
      return named !== undefined ? 'says-it-runs' : 'unproved';
    case 'exec-format-error':
      return named !== undefined && runs(named) ? 'says-it-runs' : 'unproved';
    case 'failing':
      return named !== undefined && !runs(named) ? 'unproved' : undefined;
    default:
      return trouble satisfies never;
  }
}
