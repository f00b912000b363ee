import { isoTime, utcTime } from '../../kit/duration.ts';
import { ARCHITECTURE_GATE, OLD_OS_LABEL, OS_LABEL } from '../../names.ts';
import { isOfSystem } from '../../placement/admission/pod.ts';
import { skipFacts } from '../../placement/eligibility.ts';
import { onlyObserves, usesAffinity } from '../../placement/placing.ts';
import { few, withinText } from '../../placement/reasons.ts';
import { isAgent } from './explained-affinity.ts';
import type {
  ExplainEvidence,
  ExplainedNodes,
  ExplainedVerdict,
  Explanation,
  PodState,
  WithoutAnswer,
} from './explanation.ts';
import type { ExplainInput } from './input.ts';
import { awayText, handsOf } from './no-controller.ts';

/** A controller that is a little late is not overdue. */
const LATE_MS = 30_000;

/** Returns the answer to "what happens to this pod, and why", in one sentence that names the pod. */
export function verdictOf(input: ExplainInput, explained: WithoutAnswer, evidence: ExplainEvidence): ExplainedVerdict {
  const { kind, namespace, name, state } = explained.pod;
  const object = `${kind} ${namespace}/${name}`;
  const subject = kind === 'Pod' ? object : `a new pod of ${object}`;
  const [of, text, startsAtLatest] = answerOf(state, input, explained, evidence);
  return { state: of, text: `${subject} ${text}`, ...(startsAtLatest === undefined ? {} : { startsAtLatest }) };
}

/** A verdict whose text goes on after the name of the pod. */
type ShortVerdict = readonly [state: ExplainedVerdict['state'], text: string, startsAtLatest?: string];

function answerOf(
  state: PodState,
  input: ExplainInput,
  explained: WithoutAnswer,
  evidence: ExplainEvidence,
): ShortVerdict {
  switch (state) {
    case 'finished':
      return ['ended', 'has finished'];
    case 'deleting':
      return ['ended', 'is being deleted'];
    case 'bound':
      return ofBound(input, explained, evidence);
    case 'gated':
    case 'pending':
    case 'not-applied':
    case 'template':
      return ofUnbound(input, explained, evidence);
    default:
      return state satisfies never;
  }
}

function ofBound(input: ExplainInput, explained: WithoutAnswer, evidence: ExplainEvidence): ShortVerdict {
  const { node: name = '' } = explained.pod;
  const architecture = explained.nodes.find(({ names }) => names.includes(name))?.architecture;
  const node = architecture === undefined ? `${name}, whose architecture is not known` : `${name} (${architecture})`;
  if (evidence.wrongNode !== undefined) return ['wrong-node', `is on ${node}, and does not run there`];
  if (evidence.refused !== undefined && architecture === undefined) {
    const only = runsOnText(explained);
    const why = `its container ${evidence.refused.name} died with an exec format error`;
    return ['wrong-node', `is on ${name}, and does not run there: ${why}${only === undefined ? '' : `; ${only}`}`];
  }
  const { phase, broken } = input.workload.pod ?? {};
  const now = phase === 'Running' && broken === undefined ? `runs on ${node}` : `is bound to ${node}`;
  const { decision } = explained;
  if (evidence.skipped !== undefined) {
    const again = fitsNowhere(explained, evidence) ? '; at its next start no node would take it' : '';
    return [
      'runs',
      `${now}; ${skipFacts(evidence.skipped).isLeftAlone ? 'archaware leaves it alone: ' : ''}${decision.reason}${again}`,
    ];
  }
  const hands = handsOf(input.controller, evidence.settings);
  if (hands !== 'acts') {
    const facts = [factOf(explained, evidence, architecture), awayText(hands)];
    return ['runs', [now, ...facts.filter((fact) => fact !== undefined)].join('; ')];
  }
  const later = whyNotAgain(input, explained, evidence, architecture);
  if (later !== undefined) return ['runs', `${now}; at its next start ${later}`];
  const only = architecture === undefined ? runsOnText(explained) : undefined;
  return ['runs', only === undefined ? now : `${now}; ${only}`];
}

/** Returns what is wrong with the images of a pod that nobody holds or places; undefined if nothing is. */
function factOf(
  explained: WithoutAnswer,
  evidence: ExplainEvidence,
  architecture: string | undefined,
): string | undefined {
  const { kind, architectures = [] } = explained.decision;
  if (kind === 'hold') return heldText(evidence);
  if (kind === 'wait') return `not known: ${imagesText(explained)}`;
  if (evidence.clash !== undefined) return evidence.clash.what;
  const isFine = architecture !== undefined && architectures.includes(architecture);
  return isFine ? undefined : runsOnText(explained);
}

/** Returns `its images run on amd64 only`; undefined if the images do not say. */
function runsOnText({ decision }: WithoutAnswer): string | undefined {
  const { kind, basis, reason } = decision;
  return kind === 'place' && basis === 'images' ? `${reason} only` : undefined;
}

/** Returns what would happen to a new pod like this one, if that is not good; else undefined. */
function whyNotAgain(
  input: ExplainInput,
  explained: WithoutAnswer,
  evidence: ExplainEvidence,
  architecture: string | undefined,
): string | undefined {
  const { decision } = explained;
  if (decision.kind === 'hold') return `it would be ${heldWord(input, evidence)}, because ${heldText(evidence)}`;
  if (decision.kind === 'wait') return `it would wait for ${imagesText(explained)}`;
  const never = whyNever(input, explained, evidence);
  if (never !== undefined) return `no node would take it: ${never}`;
  const only = runsOnText(explained);
  const isElsewhere = architecture !== undefined && decision.architectures?.includes(architecture) === false;
  if (!isElsewhere || only === undefined) return undefined;
  if (comesBack(explained, evidence)) return `it could come to such a node again: ${only}`;
  const isTaken = explained.nodes.some((group) => group.placed.fits && isIn(group, explained));
  return isTaken ? `it would go to another node: ${only}` : `no node would take it: ${only}`;
}

/** Whether nothing keeps a new pod off nodes that do not run its images. Affinity does; stale tolerations are not in its template. */
export function comesBack(explained: WithoutAnswer, { settings }: ExplainEvidence): boolean {
  if (settings.mode !== 'taints' || explained.tolerations.some(({ stale }) => stale)) return false;
  return explained.nodes.some((group) => group.placed.fits && !isIn(group, explained));
}

/** Whether a group of nodes has one of the decided architectures. */
export function isIn({ architecture = '' }: ExplainedNodes, { decision }: Pick<WithoutAnswer, 'decision'>): boolean {
  return decision.architectures === undefined || decision.architectures.includes(architecture);
}

/** Whether only what archaware adds keeps new pods off the nodes: its affinity. */
export function isOpenUntilPlaced({ fits, placed }: Pick<ExplainedNodes, 'fits' | 'placed'>): boolean {
  return fits && !placed.fits;
}

/** Whether archaware leaves alone a pod that no node would take again: it has no toleration of its own. */
export function fitsNowhere({ nodes }: Pick<Explanation, 'nodes'>, { skipped }: ExplainEvidence): boolean {
  const isAlone = skipped !== undefined && skipFacts(skipped).isLeftAlone;
  return isAlone && nodes.length > 0 && nodes.every(({ fits }) => !fits);
}

function ofUnbound(input: ExplainInput, explained: WithoutAnswer, evidence: ExplainEvidence): ShortVerdict {
  const { decision, nodes, pod } = explained;
  const { settings } = evidence;
  const isNew = pod.state === 'not-applied' || pod.state === 'template';
  const others = (pod.gates ?? []).filter((gate) => gate !== ARCHITECTURE_GATE);
  if (others.length > 0 && !isNew) {
    return ['waits', `waits until the gate ${others.join(', ')} is removed by its owner`];
  }
  if (decision.kind === 'skip') {
    const fit = nodes.length === 0 ? '' : nodes.some(({ fits }) => fits) ? '; a node fits' : '; no node fits';
    return ['left-alone', `waits without archaware, which leaves it alone: ${decision.reason}${fit}`];
  }
  const hands = handsOf(input.controller, settings);
  const away = awayText(hands);
  if (away !== undefined && decision.kind !== 'place') {
    const fact = factOf(explained, evidence, undefined);
    return [decision.kind === 'hold' ? 'held' : 'waits', `gets nothing from archaware: ${away}; ${fact}`];
  }
  if (decision.kind === 'wait') return ofWaiting(input, explained, evidence);
  if (decision.kind === 'hold') {
    if (onlyObserves(settings)) return ['held', `is not held in the mode observe, but ${heldText(evidence)}`];
    return ['held', `is ${isNew ? heldWord(input, evidence) : 'held'}, because ${heldText(evidence)}`];
  }
  const never = whyNever(input, explained, evidence);
  if (never !== undefined) return ['fits-nowhere', `fits no node: ${never}`];
  const guess = decision.basis === 'open' || decision.basis === 'fallback' ? ', without knowing all of its images' : '';
  const fitting = nodes.filter(({ fits, placed }) => (isNew || !onlyObserves(settings) ? placed.fits : fits));
  const where = architecturesOf(decision.architectures, fitting);
  if (nodes.length === 0) return ['can-run', `can run on ${where}${guess}; no node is known`];
  const writes = whatIsMissing(explained);
  if (away !== undefined) {
    const isTaken = !isNew && pod.state !== 'gated' && nodes.some(({ fits }) => fits);
    // Node affinity that nobody adds keeps no pod off.
    const open = isNew ? nodes.filter(isOpenUntilPlaced) : [];
    const also = open.length === 0 ? '' : `, so new pods also go to ${architecturesOf(undefined, open)}`;
    if (isNew || isTaken || writes === undefined) return ['can-run', `can run on ${where}${guess}; ${away}${also}`];
    return ['waits', `waits until archaware ${writes}, but ${away}; then it can run on ${where}${guess}`];
  }
  if (!isNew && writes !== undefined && !onlyObserves(settings)) {
    return ['waits', `waits until archaware ${writes}; then it can run on ${where}${guess}`];
  }
  const elsewhere =
    pod.scheduler === undefined ? '' : `; archaware does not hold it, the scheduler says: ${pod.scheduler}`;
  const astray = comesBack(explained, evidence) ? ', and may come to nodes that do not run its images' : '';
  return ['can-run', `can run on ${where}${guess}${astray}${elsewhere}`];
}

function ofWaiting(input: ExplainInput, explained: WithoutAnswer, { settings }: ExplainEvidence): ShortVerdict {
  const images = imagesText(explained);
  if (onlyObserves(settings)) return ['can-run', `is not held in the mode observe; not known: ${images}`];
  const waits = (text: string) => ['waits', `waits for ${images}; ${text}`] as const;
  const { afterwards } = explained.decision;
  if (afterwards === undefined) return waits('it waits until a lookup succeeds (images.unresolvable: wait)');
  const { architectures = [] } = afterwards;
  // Without a cluster no architecture is known.
  const on = architectures.length === 0 ? '' : `, on ${architectures.join(', ')}`;
  const { startsAtLatestMs, nowMs } = input.patience ?? {};
  if (startsAtLatestMs === undefined || nowMs === undefined) {
    const after = durationOf(explained.settings);
    const see = explained.pod.state === 'pending' ? ' (its Event ImageUnresolvable says when)' : '';
    return waits(`it starts by itself within ${after} of the controller's first failed lookup${see}${on}`);
  }
  const isSure = handsOf(input.controller, settings) === 'acts';
  const time = utcTime(startsAtLatestMs);
  const text =
    nowMs > startsAtLatestMs + LATE_MS
      ? `the controller should have let it start at ${time}: check that it runs`
      : `${isSure ? '' : 'the controller said: '}it starts by itself at ${time} at the latest${on}`;
  return [...waits(text), isoTime(startsAtLatestMs)];
}

/** Returns why no node can ever take the pod as things are; undefined if one can. */
function whyNever(input: ExplainInput, explained: WithoutAnswer, { clash }: ExplainEvidence): string | undefined {
  const os = missingOs(input);
  if (os !== undefined) return `it needs ${os}, and no node runs ${os}`;
  if (clash !== undefined) return clash.what;
  if (explained.decision.blocked === undefined) return undefined;
  const { architectures = [], reason } = explained.decision;
  const isThere = explained.nodes.some(({ architecture = '' }) => architectures.includes(architecture));
  return isThere ? `${reason}, and those nodes do not take it` : `${reason}, and no node has that architecture`;
}

/** Returns what becomes of a new pod whose images have no architecture in common. */
function heldWord({ workload, namespace }: ExplainInput, { settings }: ExplainEvidence): string {
  const mayBeRefused = usesAffinity(settings) && !isAgent(workload) && !isOfSystem(workload.spec, namespace, settings);
  return mayBeRefused && settings.noCommonArchitecture === 'reject'
    ? 'refused when it is created (placement.noCommonArchitecture: reject)'
    : 'held';
}

function heldText({ settings }: ExplainEvidence): string {
  return `its images have no architecture in common${withinText(settings.schedulable)}`;
}

function imagesText({ images }: WithoutAnswer): string {
  const failed = images.flatMap(({ image, error }) => (error === undefined ? [] : `${image} (${error.code})`));
  return failed.length === 0 ? 'the lookup of its images' : few(failed);
}

/** Returns what archaware has still to write; undefined if nothing. */
function whatIsMissing({ pod, tolerations }: WithoutAnswer): string | undefined {
  if (pod.state === 'gated') return 'removes its gate';
  return tolerations.every(({ present }) => present) ? undefined : 'writes its tolerations';
}

/** Returns `amd64 and arm64 nodes`, of those that the decision names and a node has. */
function architecturesOf(decided: readonly string[] = [], fitting: readonly ExplainedNodes[]): string {
  const here = [...new Set(fitting.flatMap(({ architecture }) => architecture ?? []))].sort();
  const usable = here.filter((name) => decided.length === 0 || decided.includes(name));
  const names = usable.length > 0 ? usable : decided;
  return names.length === 0 ? 'any node' : `${names.join(', ')} nodes`;
}

function durationOf(settings: Explanation['settings']): string {
  const value = settings.find(({ key }) => key === 'images.fallbackAfter')?.value;
  return typeof value === 'string' ? value : 'images.fallbackAfter';
}

/** Returns the pod's operating system if no node has it; undefined if one has, or if no node is known. */
export function missingOs({ workload, nodes = [] }: Pick<ExplainInput, 'workload' | 'nodes'>): string | undefined {
  const { os } = workload.template.runtime;
  // The kubelet labels every node; a node without the label is none of Windows.
  const isThere = nodes.some(({ labels }) => (labels[OS_LABEL] ?? labels[OLD_OS_LABEL] ?? 'linux') === os);
  return isThere || nodes.length === 0 ? undefined : os;
}
