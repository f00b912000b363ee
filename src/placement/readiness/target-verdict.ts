import { ARCHITECTURE_LABEL, ARCHITECTURES_ANNOTATION, OS_LABEL } from '../../names.ts';
import { type Decision, decide, type Knowledge } from '../decide.ts';
import type { SkipReason } from '../eligibility.ts';
import type { Demands } from '../fit.ts';
import { type NarrowedImage, type Narrowing, narrow, onlySchedulable, statementOf } from '../images.ts';
import type { PodImage } from '../objects/containers.ts';
import { isDaemonSet, isDaemonSetOfAnyGroup, isOtherDaemonSet, type Owner } from '../objects/kinds.ts';
import type { PodTemplate } from '../objects/pod.ts';
import { placingFor, usesAffinity } from '../placing.ts';
import { few, skipNote, webAssemblyAmong } from '../reasons.ts';
import type { Settings } from '../settings.ts';
import type { Subject } from '../subject.ts';
import type { PinsOf } from './places.ts';
import type { ReadinessState, Reason, TargetVerdict } from './readiness-states.ts';

/** What a verdict is about: a pod, or an object that creates pods. */
export type Judged = {
  readonly kind: string;
  readonly owner: Owner | undefined;
  readonly template: Pick<PodTemplate, 'labels' | 'statement' | 'priorityClassName' | 'tooLarge'>;
  readonly demands: Demands;
  /** The containers and image volumes of the template, each with its image; empty where no reason has to name them. */
  readonly users: readonly ImageUser[];
};

/** A container or an image volume that uses an image. */
export type ImageUser = { readonly name: string; readonly image: string; readonly pullPolicy: string };

/** What `run` would decide for a candidate once all lookups have ended, and on what it rests. */
export type Assessment = {
  readonly subject: Subject;
  readonly settings: Settings;
  readonly outcome: Decision | { readonly kind: 'skip'; readonly reason: SkipReason };
  /** How each image narrows the architectures; empty if images were not asked about. */
  readonly narrowed: readonly NarrowedImage[];
};

/** Assesses a subject by what is known of its images. `skipped`: why archaware leaves it alone. */
export function assessSubject(
  subject: Subject,
  settings: Settings,
  knowledge: Knowledge,
  skipped: SkipReason | undefined,
): Assessment {
  if (skipped !== undefined) return { subject, settings, outcome: { kind: 'skip', reason: skipped }, narrowed: [] };
  const isStated = statementOf(subject.statement) !== undefined;
  const narrowed = isStated ? [] : narrow(subject, knowledge);
  return { subject, settings, outcome: decide(subject, knowledge), narrowed };
}

/** Says whether the pods of a candidate can run on a target, and what is in the way. */
export function verdictOf(candidate: Judged, assessment: Assessment, target: string, pinsOf: PinsOf): TargetVerdict {
  const { outcome, settings, narrowed } = assessment;
  if (outcome.kind === 'skip') {
    const text = `archaware leaves it alone: ${skipNote(outcome.reason, candidate.template)}`;
    return { state: 'unknown', reasons: [{ kind: 'left-alone', text }] };
  }
  const blocking = narrowed.flatMap(({ image, said }) => blockingReason(candidate, image, said, target));
  const failing = narrowed.flatMap(({ image, said }) => failingReason(candidate, image, said));
  const pins = [
    ...statementReason(candidate, target),
    ...(onlySchedulable([target], settings).length > 0 ? [] : [schedulableReason(assessment)]),
    ...pinsOf(candidate.demands, target),
    ...labelReason(candidate, assessment, target, pinsOf),
  ];
  const reasons = [...blocking, ...failing, ...pins];
  // An open placement is a guess, but then an image could not be looked up, and that is a reason.
  const isPlaced = outcome.kind === 'place' && outcome.architectures.includes(target);
  if (isPlaced && reasons.length === 0) return { state: 'ready', reasons };
  return { state: stateOf(candidate, blocking, failing, pins), reasons };
}

function stateOf(
  { kind, owner }: Judged,
  blocking: readonly Reason[],
  failing: readonly Reason[],
  pins: readonly Reason[],
): ReadinessState {
  if (blocking.length > 0) {
    if (!isDaemonSetOfAnyGroup(kind) && !isDaemonSet(owner) && !isOtherDaemonSet(owner)) return 'blocked';
    // Its author keeps it away from these nodes, so nothing is missing there.
    return pins.length > 0 ? 'pinned' : 'missing';
  }
  return failing.length > 0 || pins.length === 0 ? 'unknown' : 'pinned';
}

function blockingReason(candidate: Judged, image: PodImage, said: Narrowing, target: string): Reason[] {
  if (said.kind !== 'set' || said.architectures.includes(target)) return [];
  const containers = usersOf(candidate, image);
  const platforms = [...said.platforms].sort();
  const text = `${of(image, containers)} ${onlyFor(image, said, platforms)}`;
  return [{ kind: 'image', image: image.image, containers, platforms, text }];
}

function onlyFor(image: PodImage, said: Extract<Narrowing, { kind: 'set' }>, platforms: readonly string[]): string {
  const volume = image.volume === undefined ? {} : { volume: image.volume };
  if (webAssemblyAmong([{ image: image.image, ...volume, platforms }]).length > 0) {
    return 'is WebAssembly and needs a RuntimeClass';
  }
  const list = few(platforms) || 'no platform';
  return said.by === 'override' ? `is only for ${list}, by images.overrides` : `is only for ${list}`;
}

function failingReason(candidate: Judged, image: PodImage, said: Narrowing): Reason[] {
  if (said.kind !== 'failed' && said.kind !== 'pending') return [];
  const containers = usersOf(candidate, image);
  const [code, message] = said.kind === 'failed' ? [said.code, said.message] : ['pending', 'it was not looked up'];
  const text = `${of(image, containers)} could not be looked up (${code}): ${message}`;
  return [{ kind: 'lookup', image: image.image, containers, code, text }];
}

function of({ image }: PodImage, containers: readonly string[]): string {
  return containers.length === 0 ? image : `${image} (${few(containers)})`;
}

function statementReason({ template }: Judged, target: string): Reason[] {
  const statement = statementOf(template.statement);
  if (statement === undefined || statement === 'all' || statement.includes(target)) return [];
  return [{ kind: 'statement', text: `its annotation ${ARCHITECTURES_ANNOTATION} says ${statement.join(', ')}` }];
}

function schedulableReason({ settings: { schedulable, policy } }: Assessment): Reason {
  const by = policy === undefined ? '' : ` of the policy ${policy}`;
  return { kind: 'schedulable', text: `architectures.schedulable${by} allows only ${schedulable.join(', ')}` };
}

function labelReason(candidate: Judged, assessment: Assessment, target: string, pinsOf: PinsOf): Reason[] {
  const required = labelsRequired(candidate, assessment);
  const wanted = Object.entries(required).map(([key, value]) => `${key}=${value}`);
  if (wanted.length === 0) return [];
  const { demands } = candidate;
  const narrowed = { ...demands, nodeSelector: { ...demands.nodeSelector, ...required } };
  if (pinsOf(demands, target).length > 0 || pinsOf(narrowed, target).length === 0) return [];
  return [{ kind: 'node-affinity', text: `pods.matchNodeLabels asks for ${wanted.join(', ')}` }];
}

/** Returns the names of the containers and volumes that use an image of the template. */
export function usersOf({ users }: Pick<Judged, 'users'>, { image, pullPolicy }: PodImage): string[] {
  const names = users.filter((user) => user.image === image && user.pullPolicy === pullPolicy).map(({ name }) => name);
  return [...new Set(names)];
}

/** Returns the node labels that `pods.matchNodeLabels` makes archaware require of nodes for these pods, as a node selector. */
function labelsRequired(
  { kind, demands }: Pick<Judged, 'kind' | 'demands'>,
  { subject, outcome }: Assessment,
): Demands['nodeSelector'] {
  if (outcome.kind !== 'place' || isDaemonSetOfAnyGroup(kind) || !usesAffinity(subject.settings)) return {};
  const required = placingFor(outcome, subject).affinity?.required ?? [];
  const mentioned = (demands.terms ?? []).flatMap(({ expressions }) => expressions.map(({ key }) => key));
  const own = [ARCHITECTURE_LABEL, OS_LABEL, ...Object.keys(demands.nodeSelector), ...mentioned];
  return Object.fromEntries(
    required.flatMap(({ key, values: [value] }) => (own.includes(key) || value === undefined ? [] : [[key, value]])),
  );
}
