import { ARCHITECTURES_ANNOTATION } from '../names.ts';
import { isSystemPod, SYSTEM_WAIT_MS } from './eligibility.ts';
import { type ImageAnswer, intersect, narrowingOf, onlySchedulable, statementOf } from './images.ts';
import type { PodImage, PodTemplate } from './pod.ts';
import type { Settings } from './settings.ts';

/** An image with the platforms that were found for it, for the Event and the table that explain a decision. */
export type ImageSet = {
  readonly image: string;
  /** The name of the volume that it is for; absent where it is for a container. */
  readonly volume?: string;
  readonly platforms: readonly string[];
};

/** An image whose look-up failed. */
export type FailedImage = {
  readonly image: string;
  /** The name of the volume that it is for. */
  readonly volume?: string;
  readonly code: string;
  readonly message: string;
  readonly registry: string;
};

/** Why the set of a placement is what it is. */
export type Basis =
  | 'images'
  | 'statement'
  | 'cluster'
  /** What archaware wrote before stands: no image was asked about. */
  | 'written'
  | 'open'
  | 'fallback'
  | 'released';

/** What is to become of a pod or a template: an intent, rendered by `patch.ts`. */
export type Decision =
  | {
      readonly kind: 'place';
      readonly architectures: readonly string[];
      readonly basis: Basis;
      /** Whether the set grows when an architecture joins the cluster. */
      readonly followsCluster: boolean;
      /** The OS that nodes must have: the pod's, where one of its images exists for several. */
      readonly os: string | undefined;
      readonly failed: readonly FailedImage[];
      /** Images it was made without: failed ones and those still being asked. */
      readonly unknown: readonly string[];
      /** Where it was released though its images have nothing in common: what each runs on. */
      readonly images: readonly ImageSet[];
    }
  | {
      readonly kind: 'wait';
      readonly images: readonly string[];
      readonly failed: readonly FailedImage[];
      /** Milliseconds after which time alone may change the decision; undefined: only an answer can. */
      readonly againInMs: number | undefined;
    }
  | { readonly kind: 'hold'; readonly reason: 'no-common-architecture'; readonly images: readonly ImageSet[] };

/** A decision that lets the pod go somewhere. */
export type Placement = Extract<Decision, { kind: 'place' }>;

export type DecisionInput = {
  readonly template: PodTemplate;
  readonly namespace: string;
  readonly settings: Settings;
  /** Architectures of the cluster's nodes, sorted. */
  readonly clusterArchitectures: readonly string[];
  /** The normalised names of an image (`docker.io/library/nginx`, `docker.io/library/nginx:1.27`); none where it is malformed. */
  readonly namesOf: (image: string) => readonly string[];
  readonly answerOf: (image: PodImage) => ImageAnswer;
  /** Milliseconds since this process saw the object first. */
  readonly waitedMs: number;
};

type Evidence = {
  sets: (readonly string[])[];
  seen: ImageSet[];
  failed: (FailedImage & { sinceMs: number; retryInMs: number })[];
  pending: string[];
};

/**
 * The decision for a pod or a template that is not left alone: the rules "Platform sets" and "What cannot be known".
 * Pure; asks `answerOf` for every image that needs a registry, so that one pass starts all look-ups.
 */
export function decide(input: DecisionInput): Decision {
  const { template, settings, clusterArchitectures } = input;
  const statement = statementOf(template.statement);
  if (statement === 'all') {
    return place(onlySchedulable(clusterArchitectures, settings), 'statement', true);
  }
  if (statement !== undefined) {
    const set = onlySchedulable(statement, settings);
    if (set.length > 0) return place(set, 'statement');
    const platforms = statement.map((name) => `${template.os}/${name}`);
    return noCommonArchitecture([{ image: ARCHITECTURES_ANNOTATION, platforms }], input);
  }

  const evidence = gather(input);
  const common = intersect(evidence.sets);
  if (common !== undefined && onlySchedulable(common, settings).length === 0) {
    return noCommonArchitecture(evidence.seen, input);
  }
  if (evidence.pending.length === 0 && evidence.failed.length === 0) {
    return common === undefined
      ? place(onlySchedulable(clusterArchitectures, settings), 'cluster', true)
      : { ...place(onlySchedulable(common, settings), 'images'), os: osOf(evidence, template.os) };
  }
  return withoutKnowing(evidence, common, input);
}

/** The decision that what archaware wrote before stands; `unknown`: images that are still being asked about. */
export function standing(
  architectures: readonly string[],
  unknown: Pick<Placement, 'failed' | 'unknown'> | undefined,
): Placement {
  return place(architectures, 'written', false, unknown?.failed, unknown?.unknown);
}

/** Whether a decision was made without knowing all images: it never takes back or widens what was decided on knowledge. */
export function isGuess(decision: Placement): boolean {
  return decision.basis === 'open' || decision.basis === 'fallback';
}

function gather({ template, settings, namesOf, answerOf, waitedMs }: DecisionInput): Evidence {
  const evidence: Evidence = { sets: [], seen: [], failed: [], pending: [] };
  for (const image of template.images) {
    const said = narrowingOf(image, template, settings, namesOf(image.image), answerOf);
    const named = whatNames(image);
    switch (said.kind) {
      case 'not-asked':
      case 'anywhere':
        break;
      case 'set':
        evidence.sets.push(said.architectures);
        evidence.seen.push({ ...named, platforms: said.platforms });
        break;
      case 'failed':
        // That there are too many is known from the first sight on, and said first.
        if (image.isSurplus) evidence.failed.unshift({ ...named, ...failureOf(said), sinceMs: waitedMs });
        else evidence.failed.push({ ...named, ...failureOf(said) });
        break;
      case 'pending':
        evidence.pending.push(image.image);
        break;
      default:
        said satisfies never;
    }
  }
  return evidence;
}

function failureOf({ code, message, registry, sinceMs, retryInMs }: Extract<ImageAnswer, { kind: 'failed' }>) {
  return { code, message, registry, sinceMs, retryInMs };
}

/** An image's name, and that of its volume. */
export function whatNames({ image, volume }: PodImage): Pick<ImageSet, 'image' | 'volume'> {
  return volume === undefined ? { image } : { image, volume };
}

/** Some image is not known (yet): wait, or go by `images.unresolvable`. */
function withoutKnowing(evidence: Evidence, common: string[] | undefined, input: DecisionInput): Decision {
  const { settings, clusterArchitectures } = input;
  const failed = evidence.failed.map(({ sinceMs: _sinceMs, retryInMs: _retryInMs, ...each }): FailedImage => each);
  const unknown = [...failed.map(({ image }) => image), ...evidence.pending];
  const os = osOf(evidence, input.template.os);
  const patience = patienceLeft(evidence, input);
  if (patience > 0) {
    const soonest = Math.min(patience, ...evidence.failed.map(({ retryInMs }) => retryInMs));
    return { kind: 'wait', images: unknown, failed, againInMs: Number.isFinite(soonest) ? soonest : undefined };
  }
  if (settings.unresolvable === 'fallback' && !isSystemPod(input.template, input.namespace, settings)) {
    // A fallback that the known images rule out says nothing: what they have in common is the better guess.
    const within = common && intersect([common, settings.fallback]);
    const set = within?.length === 0 ? common : within;
    return { ...place(onlySchedulable(set ?? settings.fallback, settings), 'fallback', false, failed, unknown), os };
  }
  const open = onlySchedulable(common ?? clusterArchitectures, settings);
  return { ...place(open, 'open', common === undefined, failed, unknown), os };
}

/** Milliseconds until `images.unresolvable` applies to every image that is not known; 0: now; Infinity: never. */
function patienceLeft(evidence: Evidence, { template, namespace, settings, waitedMs }: DecisionInput): number {
  if (isSystemPod(template, namespace, settings)) {
    return evidence.failed.length > 0 ? 0 : Math.max(0, SYSTEM_WAIT_MS - waitedMs);
  }
  if (settings.unresolvable === 'wait' || evidence.pending.length > 0) return Number.POSITIVE_INFINITY;
  return Math.max(0, ...evidence.failed.map(({ sinceMs }) => settings.fallbackAfterMs - sinceMs));
}

function noCommonArchitecture(images: readonly ImageSet[], input: DecisionInput): Decision {
  // What is not refused at admission is held.
  if (input.settings.noCommonArchitecture !== 'release')
    return { kind: 'hold', reason: 'no-common-architecture', images };
  const cluster = onlySchedulable(input.clusterArchitectures, input.settings);
  return place(cluster, 'released', true, [], [], images);
}

function osOf({ seen }: Evidence, os: string): string | undefined {
  const isForOthers = (platform: string) => !platform.startsWith(`${os}/`);
  return seen.some(({ platforms }) => platforms.some(isForOthers)) ? os : undefined;
}

function place(
  architectures: readonly string[],
  basis: Basis,
  followsCluster = false,
  failed: readonly FailedImage[] = [],
  unknown: readonly string[] = [],
  images: readonly ImageSet[] = [],
): Placement {
  return { kind: 'place', architectures, basis, followsCluster, os: undefined, failed, unknown, images };
}
