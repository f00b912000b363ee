import { ARCHITECTURES_ANNOTATION } from '../names.ts';
import { SYSTEM_WAIT_MS } from './eligibility.ts';
import { type ImageAnswer, intersect, type NamesOf, narrow, onlySchedulable, statementOf } from './images.ts';
import type { PodImage } from './objects/containers.ts';
import type { SubjectSettings } from './settings.ts';
import type { Subject } from './subject.ts';

/** An image and the platforms that were found for it. Events and tables show it to explain a decision. */
export type ImageSet = {
  readonly image: string;
  /** The name of the image volume that uses the image; absent for an image of a container. */
  readonly volume?: string;
  readonly platforms: readonly string[];
};

/** An image whose lookup failed. */
export type FailedImage = Pick<ImageSet, 'image' | 'volume'> &
  Pick<Extract<ImageAnswer, { kind: 'failed' }>, 'code' | 'message' | 'registry' | 'isUnasked'>;

/** An image that waits in a registry's line because of its limit. */
export type QueuedImage = Pick<ImageSet, 'image' | 'volume'> & { readonly registry: string; readonly inMs: number };

/** The source of a placement's architectures. */
export type DecisionBasis =
  | 'images'
  | 'statement'
  | 'cluster'
  /** An earlier decision of archaware stays in force; no image was looked up. */
  | 'written'
  | 'open'
  | 'fallback'
  | 'released';

/** What should happen to a pod or a template. `patch/patch.ts` turns the decision into a JSON Patch. */
export type Decision =
  | {
      readonly kind: 'place';
      readonly architectures: readonly string[];
      readonly basis: DecisionBasis;
      /** Whether the architectures grow when a node with another architecture joins the cluster. */
      readonly followsCluster: boolean;
      /** The OS that nodes must have: the pod's OS if one of its images exists for several, else undefined. */
      readonly os: string | undefined;
      readonly failed: readonly FailedImage[];
      /** Images that the decision does without: their lookups failed or are still under way. */
      readonly unknown: readonly string[];
      /** The platforms of each image, if the pod was released although its images have no architecture in common. */
      readonly images: readonly ImageSet[];
    }
  | {
      readonly kind: 'wait';
      readonly images: readonly string[];
      readonly failed: readonly FailedImage[];
      readonly queued?: readonly QueuedImage[];
      /** Milliseconds until the decision may change without an answer of a registry; undefined: only an answer can change it. */
      readonly againInMs: number | undefined;
      /**
       * Milliseconds until `images.unresolvable` applies, if no lookup succeeds until then; undefined: never (`wait`), or not known yet
       * because other lookups have not ended.
       */
      readonly givesUpInMs: number | undefined;
    }
  | {
      readonly kind: 'hold';
      readonly reason: 'no-common-architecture';
      /** None if the pod asks for what `architectures.schedulable` excludes. */
      readonly images: readonly ImageSet[];
      /** What the pod asks for itself, if that is what cannot be: `kubernetes.io/arch=arm64 by its nodeSelector`. */
      readonly asked?: string;
    };

/** A decision that lets the pod run on some architectures. */
export type Placement = Extract<Decision, { kind: 'place' }>;

/** What is known at the moment of a decision, of the cluster and of images. */
export type Knowledge = {
  /** Architectures of the cluster's nodes, sorted. */
  readonly clusterArchitectures: readonly string[];
  readonly namesOf: NamesOf;
  readonly answerOf: (image: PodImage) => ImageAnswer;
  /** Milliseconds since this process first saw the object. */
  readonly waitedMs: number;
  /**
   * Whether the pod is new or gated in a mode with affinity, so that it must not be let go to what its images lack: no taint need keep it off.
   */
  readonly mayHold?: boolean;
};

type Evidence = {
  sets: (readonly string[])[];
  /** Those of `sets` that no runtime goes beyond. */
  indexes: (readonly string[])[];
  seen: ImageSet[];
  failed: (FailedImage & { sinceMs: number; retryInMs: number })[];
  pending: string[];
  queued: QueuedImage[];
  /** Milliseconds until an image must be asked for again that no lookup is planned for. */
  askAgainInMs: number;
};

/**
 * Decides where a pod or the pods of a template may run. The caller has checked that the object is not skipped. The function is pure.
 * It calls `answerOf` for every image that needs a registry, even if one answer already decides, so that one pass starts all lookups.
 */
export function decide(subject: Subject, knowledge: Knowledge): Decision {
  const { os, settings } = subject;
  const { clusterArchitectures } = knowledge;
  // Affinity leaves what the author asks for, and no taint keeps the pod off.
  const asked = knowledge.mayHold === true && !isReleased(settings) ? subject.asked : undefined;
  if (
    asked !== undefined &&
    settings.schedulable.length > 0 &&
    onlySchedulable(asked.architectures, settings).length === 0
  ) {
    return { kind: 'hold', reason: 'no-common-architecture', images: [], asked: asked.text };
  }
  const statement = statementOf(subject.statement);
  if (statement === 'all') return place(onlySchedulable(clusterArchitectures, settings), 'statement', true);
  if (statement !== undefined) {
    const set = onlySchedulable(statement, settings);
    if (set.length > 0) return place(set, 'statement');
    const platforms = statement.map((name) => `${os}/${name}`);
    return noCommonArchitecture([{ image: ARCHITECTURES_ANNOTATION, platforms }], subject, knowledge);
  }

  const evidence = gather(subject, knowledge);
  const common = intersect(evidence.sets);
  if (common !== undefined && onlySchedulable(common, settings).length === 0) {
    return noCommonArchitecture(evidence.seen, subject, knowledge);
  }
  // The config of a single manifest may be wrong, and the runtime starts it anyway. There the author's word counts.
  if (asked !== undefined && evidence.indexes.length > 0) {
    const left = intersect([asked.architectures, ...evidence.indexes]) ?? [];
    if (onlySchedulable(left, settings).length === 0) {
      return { kind: 'hold', reason: 'no-common-architecture', images: evidence.seen, asked: asked.text };
    }
  }
  if (evidence.pending.length === 0 && evidence.failed.length === 0) {
    if (common === undefined) return place(onlySchedulable(clusterArchitectures, settings), 'cluster', true);
    return { ...place(onlySchedulable(common, settings), 'images'), os: osOf(evidence, os) };
  }
  return withoutKnowing(evidence, common, subject, knowledge);
}

/** Returns the decision that keeps what archaware wrote before. `unknown`: the images that are not known (yet). */
export function standing(
  architectures: readonly string[],
  unknown: Pick<Placement, 'failed' | 'unknown'> | undefined,
): Placement {
  return place(architectures, 'written', false, unknown?.failed, unknown?.unknown);
}

/** Whether a decision was made without knowing all images. A guess never takes back or widens an earlier decision that knew them. */
export function isGuess(decision: Placement): boolean {
  return decision.basis === 'open' || decision.basis === 'fallback';
}

/** Whether a pod is placed although not all of its images are known or agree. */
export function isOpen({ unknown, basis }: Placement): boolean {
  return unknown.length > 0 || basis === 'released';
}

function gather(subject: Subject, knowledge: Knowledge): Evidence {
  const evidence: Evidence = {
    sets: [],
    indexes: [],
    seen: [],
    failed: [],
    pending: [],
    queued: [],
    askAgainInMs: Number.POSITIVE_INFINITY,
  };
  for (const { image, said } of narrow(subject, knowledge)) {
    const named = whatNames(image);
    switch (said.kind) {
      case 'not-asked':
      case 'anywhere':
        break;
      case 'set':
        evidence.sets.push(said.architectures);
        if (said.isIndex) evidence.indexes.push(said.architectures);
        evidence.seen.push({ ...named, platforms: said.platforms });
        break;
      case 'failed':
        evidence.failed.push({ ...named, ...failureOf(said) });
        break;
      case 'pending':
        evidence.pending.push(image.image);
        if (said.line !== undefined) evidence.queued.push({ ...named, ...said.line });
        evidence.askAgainInMs = Math.min(evidence.askAgainInMs, said.retryInMs ?? Number.POSITIVE_INFINITY);
        break;
      default:
        said satisfies never;
    }
  }
  return evidence;
}

function failureOf(answer: Extract<ImageAnswer, { kind: 'failed' }>) {
  const { code, message, registry, sinceMs, retryInMs, isUnasked } = answer;
  return { code, message, registry, sinceMs, retryInMs, ...(isUnasked ? { isUnasked } : {}) };
}

/** Returns the name of an image and of its volume, if it has one. */
export function whatNames({ image, volume }: PodImage): Pick<ImageSet, 'image' | 'volume'> {
  return volume === undefined ? { image } : { image, volume };
}

/** Decides for a pod with an image that is not known (yet): wait, or apply `images.unresolvable`. */
function withoutKnowing(
  evidence: Evidence,
  common: string[] | undefined,
  subject: Subject,
  { clusterArchitectures, waitedMs }: Knowledge,
): Decision {
  const { settings } = subject;
  const failed = evidence.failed.map(({ sinceMs: _sinceMs, retryInMs: _retryInMs, ...each }): FailedImage => each);
  const unknown = [...failed.map(({ image }) => image), ...evidence.pending];
  const os = osOf(evidence, subject.os);
  const patience = patienceLeft(evidence, subject, waitedMs);
  if (patience > 0) {
    const soonest = Math.min(patience, evidence.askAgainInMs, ...evidence.failed.map(({ retryInMs }) => retryInMs));
    const [againInMs, givesUpInMs] = [soonest, patience].map((ms) => (Number.isFinite(ms) ? ms : undefined));
    const { queued } = evidence;
    return { kind: 'wait', images: unknown, failed, ...(queued.length > 0 ? { queued } : {}), againInMs, givesUpInMs };
  }
  if (settings.unresolvable === 'fallback' && !subject.isSystem) {
    // A fallback that the known images rule out is useless: the architectures that they have in common are the better guess.
    const within = common && intersect([common, settings.fallback]);
    const set = within?.length === 0 ? common : within;
    return { ...place(onlySchedulable(set ?? settings.fallback, settings), 'fallback', false, failed, unknown), os };
  }
  const open = onlySchedulable(common ?? clusterArchitectures, settings);
  return { ...place(open, 'open', common === undefined, failed, unknown), os };
}

/** Returns the milliseconds until `images.unresolvable` applies to every unknown image; 0: now; Infinity: never. */
function patienceLeft(evidence: Evidence, { isSystem, settings }: Subject, waitedMs: number): number {
  if (isSystem) return evidence.failed.length > 0 ? 0 : Math.max(0, SYSTEM_WAIT_MS - waitedMs);
  if (settings.unresolvable === 'wait' || evidence.pending.length > 0) return Number.POSITIVE_INFINITY;
  return Math.max(0, ...evidence.failed.map(({ sinceMs }) => settings.fallbackAfterMs - sinceMs));
}

function noCommonArchitecture(
  images: readonly ImageSet[],
  { settings }: Subject,
  { clusterArchitectures }: Knowledge,
): Decision {
  // Only admission can reject a pod; everywhere else `reject` means `hold`.
  if (!isReleased(settings)) return { kind: 'hold', reason: 'no-common-architecture', images };
  const cluster = onlySchedulable(clusterArchitectures, settings);
  return place(cluster, 'released', true, [], [], images);
}

function isReleased({ noCommonArchitecture }: Pick<SubjectSettings, 'noCommonArchitecture'>): boolean {
  return noCommonArchitecture === 'release';
}

function osOf({ seen }: Evidence, os: string): string | undefined {
  const isForOthers = (platform: string) => !platform.startsWith(`${os}/`);
  return seen.some(({ platforms }) => platforms.some(isForOthers)) ? os : undefined;
}

function place(
  architectures: readonly string[],
  basis: DecisionBasis,
  followsCluster = false,
  failed: readonly FailedImage[] = [],
  unknown: readonly string[] = [],
  images: readonly ImageSet[] = [],
): Placement {
  return { kind: 'place', architectures, basis, followsCluster, os: undefined, failed, unknown, images };
}
