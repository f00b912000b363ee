import { type ImageSet, whatNames } from '../decide.ts';
import { answerLocally, type ImageAnswer, intersect, narrowingOf, statementOf } from '../images.ts';
import type { BrokenContainer, PodImage } from '../objects/containers.ts';
import type { Pod } from '../objects/pod.ts';
import type { Settings } from '../settings.ts';

/** The evidence for a wrong node: the platforms of the pod's images, or an exec format error of a container. */
export type WrongReason = 'platforms' | 'exec-format-error';

/**
 * The verdict about a broken container on its node. `does-not-run`: the pulled image lacks the node's platform. `says-it-runs`:
 * the image has the platform, but the container is refused nevertheless. `unproved`: nothing certain is known of the pulled image.
 */
export type WrongNodeVerdict = 'does-not-run' | 'says-it-runs' | 'unproved';

/** An image with its platforms and the architectures of nodes that can run it. */
type KnownImage = ImageSet & {
  readonly architectures: readonly string[];
  /** Whether `images.overrides` states the architectures. */
  readonly isStated?: true;
};

/** The certain knowledge of the images in a pod's spec: a replacement of the pod would run these. */
export type KnownPod = {
  readonly images: readonly KnownImage[];
  /** The architectures of nodes that run all images; undefined if an image is not known, or if no image narrows them. */
  readonly architectures: readonly string[] | undefined;
  /** Images whose first lookup is under way. */
  readonly pending: readonly string[];
  /** Images of which nothing is known, or nothing that is still valid. */
  readonly unknown: readonly string[];
};

/** The knowledge of the images that were pulled for broken containers: by the digests in the status, not by what a tag means today. */
export type Pulled = {
  readonly images: ReadonlyMap<BrokenContainer, KnownImage>;
  /** Digests (`repository@digest`) whose lookup is under way. */
  readonly pending: readonly string[];
  /** Digests that could not be looked up. */
  readonly unknown: readonly string[];
};

/** The finding that a pod is on a wrong node. */
export type WrongNodeFinding = {
  readonly reason: WrongReason;
  readonly verdict: WrongNodeVerdict;
  readonly container: BrokenContainer;
  /** The image that was pulled for it, if known. */
  readonly pulled: KnownImage | undefined;
  readonly known: KnownPod;
};

type JudgedPod = Pick<Pod, 'images' | 'runtime' | 'statement' | 'broken'>;
type Rules = Pick<Settings, 'overrides' | 'compatible'>;

/**
 * Returns what is known for certain about a pod's images. If the author states the architectures in the annotation, no image is
 * looked up and nothing is known.
 */
export function whatIsKnown(
  pod: Omit<JudgedPod, 'broken'>,
  settings: Rules,
  namesOf: (image: string) => readonly string[],
  answerOf: (image: PodImage) => ImageAnswer,
): KnownPod {
  const images: KnownImage[] = [];
  const pending: string[] = [];
  const unknown: string[] = [];
  if (statementOf(pod.statement) !== undefined) return { images, architectures: undefined, pending, unknown };
  for (const image of pod.images) {
    let isStale = false;
    const said = narrowingOf(image, pod.runtime, settings, namesOf(image.image), (asked) => {
      const answer = answerOf(asked);
      isStale = answer.kind === 'known' && answer.isStale === true;
      return answer;
    });
    if (said.kind === 'pending') pending.push(image.image);
    else if (said.kind === 'failed' || (said.kind === 'set' && isStale)) unknown.push(image.image);
    else if (said.kind === 'set') {
      images.push({ ...whatNames(image), platforms: said.platforms, architectures: said.architectures });
    }
  }
  const certain = pending.length === 0 && unknown.length === 0;
  const architectures = certain ? intersect(images.map((image) => image.architectures)) : undefined;
  return { images, architectures, pending, unknown };
}

/**
 * Returns what is known about the images that the runtime pulled for a pod's broken containers. `images.overrides` goes before the digest.
 */
export function whatWasPulled(
  pod: JudgedPod,
  settings: Rules,
  namesOf: (image: string) => readonly string[],
  answerOf: (image: PodImage) => ImageAnswer,
): Pulled {
  const images = new Map<BrokenContainer, KnownImage>();
  const pending: string[] = [];
  const unknown: string[] = [];
  const broken = statementOf(pod.statement) === undefined ? (pod.broken ?? []) : [];
  for (const container of broken) {
    const named = { image: container.image, pullPolicy: '' };
    const names = namesOf(named.image);
    const isStated = answerLocally(named, names, settings) !== undefined;
    const image = isStated ? named : container.pulled;
    if (image === undefined) continue;
    const said = narrowingOf(image, pod.runtime, settings, isStated ? names : [], answerOf);
    if (said.kind === 'pending') pending.push(image.image);
    else if (said.kind === 'failed') unknown.push(image.image);
    else if (said.kind === 'set') {
      const { platforms, architectures } = said;
      images.set(container, { image: image.image, platforms, architectures, ...(isStated ? { isStated } : {}) });
    }
  }
  return { images, pending, unknown };
}

/**
 * Whether every broken container fails for a reason of its own: its pulled image has this architecture, and its status does not
 * mention a wrong one. Then the tags of the pod need no lookup.
 */
export function failsByItself({ broken }: Pick<Pod, 'broken'>, architecture: string, { images }: Pulled): boolean {
  return (broken ?? []).every(
    (container) =>
      container.trouble === 'failing' && images.get(container)?.architectures.includes(architecture) === true,
  );
}

/**
 * Judges whether a node of this architecture is wrong for a pod that is bound to it; undefined: nothing says so. A pod whose containers all
 * run is never on a wrong node, even if its tags have changed since. The result names the container with the strongest proof.
 */
export function findWrongNode(
  { broken }: Pick<Pod, 'broken'>,
  architecture: string,
  known: KnownPod,
  pulled: Pulled,
): WrongNodeFinding | undefined {
  let found: WrongNodeFinding | undefined;
  for (const container of broken ?? []) {
    const image = pulled.images.get(container);
    const verdict = judge(container, architecture, known, image);
    if (verdict === undefined || (found !== undefined && RANK[verdict] >= RANK[found.verdict])) continue;
    const reason = container.trouble === 'exec-format-error' ? 'exec-format-error' : 'platforms';
    found = { reason, verdict, container, pulled: image, known };
  }
  return found;
}

const RANK: Readonly<Record<WrongNodeVerdict, number>> = { 'does-not-run': 0, 'says-it-runs': 1, unproved: 2 };

/** Judges one container. Undefined: there is no evidence that it fails because of the architecture. */
function judge(
  { image, trouble }: BrokenContainer,
  architecture: string,
  known: KnownPod,
  pulled: KnownImage | undefined,
): WrongNodeVerdict | undefined {
  const runs = (set: KnownImage) => set.architectures.includes(architecture);
  // The kubelet reports a missing platform of an image volume on the container that mounts it; that container's image is not at fault.
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
