import type { Platform } from '../../kit/platform.ts';
import { ARCHITECTURES_ANNOTATION } from '../../names.ts';
import { type Decision, decide, type Knowledge, whatNames } from '../../placement/decide.ts';
import { isSystemPod, type SkipReason, settingsFor, skipFacts } from '../../placement/eligibility.ts';
import { type Demands, obstaclesTo, obstacleText } from '../../placement/fit.ts';
import { type ImageAnswer, intersect, type NarrowedImage, narrow, statementOf } from '../../placement/images.ts';
import { taintText } from '../../placement/nodes/managed.ts';
import { architecturesOf, nodeArchitecture } from '../../placement/nodes/node.ts';
import { hasEnded, type PodImage } from '../../placement/objects/containers.ts';
import type { PodTemplate } from '../../placement/objects/pod.ts';
import { lacking } from '../../placement/patch/tolerations.ts';
import { overPlaced, placingFor, standingArchitectures, usesAffinity, usesTaints } from '../../placement/placing.ts';
import { unpublished } from '../../placement/publish/known-images.ts';
import { decisionNote, imageText, skipNote, staleUnder } from '../../placement/reasons.ts';
import type { Settings } from '../../placement/settings.ts';
import type { Subject } from '../../placement/subject.ts';
import { findWrongNode, type WrongNodeFinding, whatIsKnown, whatWasPulled } from '../../placement/wrong-node/judge.ts';
import { answerFrom } from '../lookup-results.ts';
import { spreadNote, taintedArchitectures } from '../spread.ts';
import { readWorkloadSubject } from '../workloads/workload.ts';
import { advise } from './advice.ts';
import { clashOf } from './clash.ts';
import { explainAffinity, isTooLate, mayBeNarrowed, narrowedDemands, templateIntent } from './explained-affinity.ts';
import type {
  ExplainEvidence,
  ExplainedImage,
  ExplainedNodes,
  Explanation,
  NarrowingStep,
  PodState,
  WithoutAnswer,
} from './explanation.ts';
import type { ExplainedDecision, ExplainInput, Findings } from './input.ts';
import { groupNodes } from './node-groups.ts';
import { isIn, verdictOf } from './verdict.ts';

/** Returns the images that must be looked up in registries before {@link explainPlacement}. */
export function imagesToAsk(input: ExplainInput): PodImage[] {
  const asked: PodImage[] = [];
  const subject = readWorkloadSubject(input.workload, input.namespace, settingsOf(input));
  if (!isLookedAt(input, subject.skipped)) return asked;
  const answerOf = (image: PodImage): ImageAnswer => {
    asked.push(image);
    return { kind: 'pending' };
  };
  const asking = knowledgeOf(input, answerOf);
  if (subject.skipped === undefined) decide(subject, asking);
  else if (statementOf(subject.statement) === undefined) narrow(subject, asking);
  if (input.applied && input.workload.pod)
    whatWasPulled(input.workload.pod, subject.settings, asking.namesOf, answerOf);
  return asked;
}

/** Explains the decision for a pod. */
export function explainPlacement(input: ExplainInput, findings: Findings): Explanation {
  const { workload, namespace } = input;
  const { template } = workload;
  const settings = settingsOf(input);
  const subject = readWorkloadSubject(workload, namespace, settings);
  const asking = (sinceMs: number) =>
    knowledgeOf(input, (image) => answerFrom(findings.lookupOf(image), sinceMs), sinceMs);
  const outcome = subject.skipped ?? overEarlier(input, decide(subject, asking(0)), subject);
  const [skipped, decision] = typeof outcome === 'string' ? [outcome, undefined] : [undefined, outcome];
  const later = decision?.kind === 'wait' ? decide(subject, asking(Number.POSITIVE_INFINITY)) : undefined;
  const statement = statementOf(template.statement);
  const narrowed = isLookedAt(input, skipped) && statement === undefined ? narrow(subject, asking(0)) : [];
  const intersection = skipped === undefined ? stepsOf(statement, narrowed, settings) : [];

  const present = template.tolerations ?? [];
  const placing = decision?.kind === 'place' ? placingFor(decision, subject) : undefined;
  const follow = placing?.tolerations ?? [];
  const missing = lacking(present, follow);
  const intent = mayBeNarrowed(input) ? placing?.affinity : templateIntent(input, decision, settings);
  const stale =
    decision !== undefined && input.applied && settings.mode !== 'affinity'
      ? staleUnder(decision, present, settings.taints)
      : [];
  const now = demandsOf(input);
  const then = intent === undefined ? now : narrowedDemands(workload, intent);
  const demands = { ...then, tolerations: [...now.tolerations, ...missing] };
  const nodes = nodesOf(input, now, demands, narrowed);
  const clusterArchitectures = architecturesOf(input.nodes ?? []);
  const decided = explainDecision(outcome, later, template, settings, input.nodes !== undefined);
  const evidence: ExplainEvidence = {
    settings,
    skipped,
    narrowed,
    clusterArchitectures,
    clash: clashOf(input, decision, narrowed, clusterArchitectures, settings),
    wrongNode: wrongNodeOf(input, outcome, subject, asking(0)),
    // The kernel of its node refused it, by its status, whatever the node's architecture is.
    refused:
      input.applied && outcome !== 'terminal'
        ? workload.pod?.broken?.find(({ trouble }) => trouble === 'exec-format-error')
        : undefined,
    demands,
    // A pod that was placed on a guess lacks affinity because its images are unknown.
    isLate:
      placing?.affinity !== undefined &&
      (decision?.kind !== 'place' || decision.failed.length === 0) &&
      isTooLate(input, placing.affinity),
    spread:
      decision &&
      spreadNote(workload.spread, template, decision, settings, taintedArchitectures(input.nodes ?? [], settings)),
    obstacles: nodes.map(({ left }) => left),
  };
  const explanation = {
    pod: podOf(input),
    images: template.images.map((image) => explainImage(image, narrowed, skipped, findings)),
    ...(input.controller === undefined ? {} : { controller: input.controller.kind }),
    ...publicationOf(input, narrowed),
    pullSecrets: findings.pullSecrets,
    intersection,
    ...(settings.policy === undefined ? {} : { policy: settings.policy }),
    settings: keysThatMatter(input, evidence, decision).map((key) => ({
      key,
      ...findings.sourceOf(key, settings.policy),
    })),
    decision: decided,
    tolerations: [
      ...follow.map((toleration) => ({ ...toleration, present: !missing.includes(toleration) })),
      ...stale.map((toleration) => ({ ...toleration, present: true, stale: true as const })),
    ],
    ...(intent === undefined ? {} : { affinity: explainAffinity(workload, intent) }),
    nodes: nodes.map(({ shown }) => shown),
  };
  const blocked = whyBlocked(explanation, evidence);
  const complete = { ...explanation, decision: blocked === undefined ? decided : { ...decided, blocked } };
  const verdict = verdictOf(input, complete, evidence);
  // Where a lookup failed here, too, this failure is newer than the Event.
  const isOther = decided.kind !== 'wait' || explanation.images.some(({ error }) => error?.code === 'rate-limited');
  const said = verdict.state === 'waits' && isOther ? input.said : undefined;
  const advice = advise(input, explanation, evidence);
  return { verdict, ...complete, ...(said === undefined ? {} : { said }), advice };
}

/** A pod that archaware placed before is not waiting for its images, as the controller sees it: what was written stays in force. */
function overEarlier({ workload: { pod }, applied, namesOf }: ExplainInput, decision: Decision, subject: Subject) {
  if (!applied || pod === undefined || decision.kind !== 'wait') return decision;
  return overPlaced(decision, pod, standingArchitectures(subject, pod.written, namesOf));
}

function publicationOf({ published, workload }: ExplainInput, narrowed: readonly NarrowedImage[]) {
  const placedAtCreation = workload.pod?.written?.byPolicy === true;
  if (published === undefined && !placedAtCreation) return {};
  return {
    publication: { placedAtCreation, missing: published === undefined ? [] : unpublished(narrowed, published) },
  };
}

/** Whether the images are examined. A bound daemon pod is skipped by the rules, but it may be on a wrong node. */
function isLookedAt({ workload: { pod } }: ExplainInput, skipped: SkipReason | undefined): boolean {
  return skipped === undefined || (skipped === 'daemon-pod' && pod?.broken !== undefined);
}

/** Returns the pod's demands on nodes. The node that the scheduler chose is left out: next time it may be another one. */
function demandsOf({ workload: { pod, demands, namesNode }, applied }: ExplainInput): Demands {
  return applied && pod?.nodeName !== undefined && !namesNode ? { ...demands, nodeName: undefined } : demands;
}

function whyBlocked(explanation: WithoutAnswer, { clash, obstacles }: ExplainEvidence): string | undefined {
  if (explanation.decision.kind !== 'place') return undefined;
  if (clash !== undefined) return `${clash.wish}: no node fits`;
  const waiting: readonly PodState[] = ['pending', 'gated', 'not-applied', 'template'];
  if (!waiting.includes(explanation.pod.state) || explanation.nodes.length === 0) return undefined;
  const isFit = explanation.nodes.some((group, index) => isIn(group, explanation) && obstacles[index]?.length === 0);
  return isFit ? undefined : 'no node fits';
}

function settingsOf({ settings, namespace, workload }: ExplainInput): Settings {
  return settingsFor(settings, { namespace, labels: workload.template.labels });
}

function knowledgeOf({ nodes = [], namesOf }: ExplainInput, answerOf: Knowledge['answerOf'], waitedMs = 0): Knowledge {
  return { clusterArchitectures: architecturesOf(nodes), namesOf, answerOf, waitedMs };
}

function stepsOf(
  statement: 'all' | string[] | undefined,
  narrowed: readonly NarrowedImage[],
  { schedulable }: Settings,
): NarrowingStep[] {
  const said = [
    ...(Array.isArray(statement) ? [{ by: ARCHITECTURES_ANNOTATION, architectures: statement }] : []),
    ...narrowed.flatMap(({ image, said }) =>
      said.kind === 'set' ? { by: imageText(image), architectures: said.architectures } : [],
    ),
    ...(schedulable.length > 0 ? [{ by: 'architectures.schedulable', architectures: schedulable }] : []),
  ];
  return said.map((step, index) => ({
    ...step,
    common: intersect(said.slice(0, index + 1).map(({ architectures }) => architectures)) ?? [],
  }));
}

/** Judges the pod as the wrong-node controller does. */
function wrongNodeOf(
  { workload: { pod }, applied, nodes = [] }: ExplainInput,
  outcome: Decision | SkipReason,
  { settings }: Subject,
  { namesOf, answerOf }: Knowledge,
): WrongNodeFinding | undefined {
  const node = nodes.find(({ name }) => name === pod?.nodeName);
  const architecture = node && nodeArchitecture(node);
  const isLeftAlone = typeof outcome === 'string' && outcome !== 'daemon-pod';
  if (!applied || pod === undefined || architecture === undefined || isLeftAlone) return undefined;
  const known = whatIsKnown(pod, settings, namesOf, answerOf);
  return findWrongNode(pod, architecture, known, whatWasPulled(pod, settings, namesOf, answerOf));
}

/** Returns the groups of nodes for the output, and what keeps the pod off each group even with the decision's tolerations and affinity. */
function nodesOf({ nodes = [] }: ExplainInput, demands: Demands, placed: Demands, narrowed: readonly NarrowedImage[]) {
  const common = intersect(narrowed.flatMap(({ said }) => (said.kind === 'set' ? [said.architectures] : [])));
  const isSure = narrowed.every(({ said }) => said.kind !== 'failed');
  /** The known images are enough to rule an architecture out. All images must be known to let it in. */
  const runsOn = (architecture: string | undefined) => {
    if (common === undefined || architecture === undefined) return undefined;
    return common.includes(architecture) ? isSure || undefined : false;
  };
  return groupNodes(nodes, placed).map(({ architecture, taints, example, ...seen }) => {
    const reasons = obstaclesTo(demands, example).map(obstacleText);
    const left = obstaclesTo(placed, example);
    const runs = runsOn(architecture);
    const shown: ExplainedNodes = {
      ...(architecture === undefined ? {} : { architecture }),
      ...seen,
      taints: taints.map(taintText),
      ...(runs === undefined ? {} : { runs }),
      fits: reasons.length === 0,
      reasons,
      placed: { fits: left.length === 0, reasons: left.map(obstacleText) },
    };
    return { shown, left };
  });
}

function podOf({ workload, applied, isTemplate = false, namespace }: ExplainInput): Explanation['pod'] {
  const { kind, name, template, pod, demands, gates, scheduler } = workload;
  const state = isTemplate ? 'template' : stateOf(applied ? pod : undefined, gates);
  return {
    kind,
    namespace: namespace.name,
    name,
    os: template.runtime.os,
    state,
    ...(demands.nodeName === undefined ? {} : { node: demands.nodeName }),
    ...(gates.length === 0 ? {} : { gates }),
    ...(state === 'pending' && scheduler !== undefined ? { scheduler } : {}),
  };
}

function stateOf(pod: ExplainInput['workload']['pod'], gates: readonly string[]): PodState {
  if (pod === undefined) return 'not-applied';
  if (hasEnded(pod.phase)) return 'finished';
  if (pod.deleting) return 'deleting';
  if (pod.nodeName !== undefined) return 'bound';
  return gates.length > 0 ? 'gated' : 'pending';
}

function explainDecision(
  outcome: Decision | SkipReason,
  later: Decision | undefined,
  template: PodTemplate,
  { schedulable }: Settings,
  knowsCluster: boolean,
): ExplainedDecision {
  const { os } = template.runtime;
  if (typeof outcome === 'string') return { kind: 'skip', reason: skipNote(outcome, template) };
  const describe = (decision: Decision): ExplainedDecision => ({
    kind: decision.kind,
    reason: decisionNote(knowsCluster ? decision : anywhere(decision), os, schedulable),
    ...(decision.kind === 'place' ? { architectures: decision.architectures, basis: decision.basis } : {}),
  });
  // With `images.unresolvable: wait` the decision stays `wait`.
  return {
    ...describe(outcome),
    ...(later === undefined || later.kind === 'wait' ? {} : { afterwards: describe(later) }),
  };
}

/** Returns a decision that follows the cluster as text shows it where nobody knows the cluster's architectures. */
function anywhere(decision: Decision): Decision {
  const isOpen = decision.kind === 'place' && decision.followsCluster && decision.architectures.length === 0;
  return isOpen ? { ...decision, architectures: ['every architecture of the cluster'] } : decision;
}

/** Explains one of a template's images. `narrowed`: how the images narrow the architectures; empty if they were not examined. */
function explainImage(
  image: PodImage,
  narrowed: readonly NarrowedImage[],
  skipped: SkipReason | undefined,
  { lookupOf }: Findings,
): ExplainedImage {
  const base = { ...whatNames(image), platforms: [], skipped: [] };
  const said = narrowed.find((entry) => entry.image === image)?.said;
  if (said === undefined) return { ...base, notAsked: skipped === undefined ? 'statement' : 'left-alone' };
  if (said.kind === 'not-asked') return { ...base, notAsked: 'never-pulled' };
  if (said.kind === 'set' && said.by === 'override') {
    return { ...base, notAsked: 'override', platforms: said.platforms.map(platformOf) };
  }
  const found = lookupOf(image);
  if (found === undefined) return base;
  if (!('error' in found)) {
    const { isIndex: _isIndex, isBundle: _isBundle, ...rest } = found;
    return { ...base, ...rest, ...(said.kind === 'anywhere' ? { anywhere: said.as } : {}) };
  }
  return said.kind === 'anywhere' ? { ...base, anywhere: said.as } : { ...base, error: found.error };
}

function platformOf(text: string): Platform {
  const [os = '', architecture = ''] = text.split('/');
  return { os, architecture };
}

/** Returns the configuration keys that influenced a decision, so that a reader need not go through all of them. */
function keysThatMatter(
  { workload, namespace }: ExplainInput,
  { settings, skipped, narrowed, wrongNode }: Pick<ExplainEvidence, 'settings' | 'skipped' | 'narrowed' | 'wrongNode'>,
  decision: Decision | undefined,
): string[] {
  const isUnknown = narrowed.some(({ said }) => said.kind === 'failed');
  const isUncommon = decision?.kind === 'hold' || (decision?.kind === 'place' && decision.basis === 'released');
  const rows: readonly (readonly [key: string, matters: boolean])[] = [
    ['placement.mode', settings.mode !== 'taints'],
    ['taints.manage', usesTaints(settings) && !settings.taints.manage],
    ['taints.key', usesTaints(settings)],
    ['taints.effect', usesTaints(settings)],
    ['pods.matchNodeLabels', usesAffinity(settings) && settings.matchNodeLabels.length > 0],
    ['architectures.preferred', usesAffinity(settings) && Object.keys(settings.preferred).length > 0],
    ['architectures.schedulable', skipped === undefined && settings.schedulable.length > 0],
    ['architectures.compatible', narrowed.some(isWidened)],
    ['images.overrides', narrowed.some(({ said }) => said.kind === 'set' && said.by === 'override')],
    ['images.unresolvable', isUnknown],
    ['images.fallbackAfter', isUnknown && settings.unresolvable !== 'wait'],
    ['architectures.fallback', isUnknown && settings.unresolvable === 'fallback'],
    ['systemNamespaces', isUnknown && isSystemPod(workload.template, namespace.name, settings)],
    ['placement.noCommonArchitecture', isUncommon],
    ['pods.onWrongNode', wrongNode !== undefined],
  ];
  const ofSkipped = skipped && skipFacts(skipped).key;
  return [...(ofSkipped === undefined ? [] : [ofSkipped]), ...rows.flatMap(([key, matters]) => (matters ? key : []))];
}

/** Whether `architectures.compatible` added an architecture that the image itself does not have. */
function isWidened({ said }: NarrowedImage): boolean {
  if (said.kind !== 'set') return false;
  return said.architectures.some((name) => !said.platforms.some((platform) => platform.endsWith(`/${name}`)));
}
