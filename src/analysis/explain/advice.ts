import { ARCHITECTURE_GATE, ARCHITECTURES_ANNOTATION } from '../../names.ts';
import { whatNames } from '../../placement/decide.ts';
import { type SkipReason, skipFacts } from '../../placement/eligibility.ts';
import type { Demands, Obstacle } from '../../placement/fit.ts';
import { intersect } from '../../placement/images.ts';
import { taintText } from '../../placement/nodes/managed.ts';
import { isOfKind } from '../../placement/nodes/node.ts';
import { statementProblem } from '../../placement/object-problems.ts';
import { isOtherDaemonSet, replaceAdvice } from '../../placement/objects/kinds.ts';
import { tolerationText } from '../../placement/patch/tolerations.ts';
import { onlyObserves } from '../../placement/placing.ts';
import { isFact, unmetBy } from '../../placement/readiness/unmet.ts';
import { few, webAssemblyAmong } from '../../placement/reasons.ts';
import type { WrongNodeFinding } from '../../placement/wrong-node/judge.ts';
import { whatLies, wrongNodeNote } from '../../placement/wrong-node/note.ts';
import { otherDaemonSetNote, workloadOf } from '../workloads/overview.ts';
import { alternatives, setsOf, waysTo } from './clash.ts';
import type { ExplainEvidence, ExplainedNodes, WithoutAnswer } from './explanation.ts';
import type { ExplainInput } from './input.ts';
import { adviseAway, awayText, checkController, handsOf } from './no-controller.ts';
import { adviseOnPools, isKeptOffByOthers, type PoolAdvice } from './pool-advice.ts';
import { comesBack, fitsNowhere, isIn, isOpenUntilPlaced, missingOs } from './verdict.ts';

/** Returns concrete steps that let the pod run, the easiest first. Empty if nothing is wrong. */
export function advise(input: ExplainInput, explained: WithoutAnswer, evidence: ExplainEvidence): string[] {
  const { state } = explained.pod;
  if (state === 'finished' || state === 'deleting') return [];
  const statements = evidence.skipped === undefined ? statementProblem(input.workload.template) : [];
  // As long as the known images have nothing in common, an answer about another one changes nothing.
  const images = [
    ...statements.map((said) => `correct the ${said}`),
    ...adviseHeld(input, explained, evidence),
    ...adviseUnresolved(input, explained),
    ...adviseOtherDaemonSet(input, explained),
  ];
  if (state === 'bound') return [...images, ...adviseBound(input, explained, evidence)];
  const os = missingOs(input);
  // Another build of an image would help nothing as long as no node has its operating system.
  if (os !== undefined) return [...adviseUnresolved(input, explained), ...adviseOs(os, explained)];
  const lines = [
    ...adviseController(input, explained, evidence),
    ...adviseSkipped(input, evidence.skipped),
    ...images,
    ...adviseGated(explained),
    ...advisePlaced(input, explained, evidence),
    ...adviseLate(input, evidence),
    ...adviseNodes(input, explained, evidence),
    ...(evidence.spread === undefined ? [] : [evidence.spread]),
  ];
  return [...new Set(lines)];
}

function adviseOs(os: string, { decision: { architectures = [] } }: WithoutAnswer): string[] {
  const on = architectures.length === 0 ? '' : ` on ${architectures.join(' or ')}`;
  return [`no node runs ${os}: add a node with ${os}${on}`, 'or change the operating system that the pod asks for'];
}

function adviseBound(input: ExplainInput, explained: WithoutAnswer, evidence: ExplainEvidence): string[] {
  const { skipped, wrongNode, narrowed } = evidence;
  const { namespace, node: name = '' } = explained.pod;
  const owner = input.workload.pod?.owner;
  const { architecture = '' } = explained.nodes.find(({ names }) => names.includes(name)) ?? {};
  if (skipped === 'daemon-pod') {
    const read = `kubectl -n ${namespace} get daemonset ${owner?.name} -o yaml`;
    const step = `explain its DaemonSet: ${read} | archaware explain -f -`;
    return [wrongNode === undefined ? step : noteOf(wrongNode, { name, architecture }, step)];
  }
  if (fitsNowhere(explained, evidence)) return adviseSkipped(input, skipped);
  const again = againStep(input, explained, evidence);
  if (wrongNode === undefined && evidence.refused !== undefined && architecture === '') {
    const look = `ask who may read nodes for the architecture of ${name} (kubectl get node ${name} -L kubernetes.io/arch)`;
    return [`${look}; if its images do not run there, ${again}`];
  }
  // Without other steps first, a new pod would come back to this node or fit nowhere.
  const instead = poolsFor(input, explained, evidence).canGrow ? [] : adviseNodes(input, explained, evidence);
  const step = instead.length > 0 ? instead.join(', ') : again;
  if (wrongNode !== undefined) return [noteOf(wrongNode, { name, architecture }, step)];
  const runsOn = intersect(setsOf(narrowed).map(({ architectures }) => architectures));
  const isKnown = explained.decision.kind === 'place' && explained.decision.basis === 'images' && runsOn !== undefined;
  if (isKnown && architecture !== '' && !runsOn.includes(architecture)) {
    const set = runsOn.join(', ');
    return [
      `bound to node ${name} (${architecture}), but its images now run on ${set}: its next start there would fail; ${step}`,
    ];
  }
  return explained.tolerations.some(({ stale }) => stale)
    ? [`${again}: a toleration cannot be removed from a pod`]
    : [];
}

/** Returns how the pod gets to another node: its successor does only if archaware gives it what it needs. */
function againStep(
  { workload: { pod }, controller, nodes }: ExplainInput,
  explained: WithoutAnswer,
  evidence: ExplainEvidence,
): string {
  const [{ decision }, { settings }] = [explained, evidence];
  const owner = pod?.owner;
  const again = replaceAdvice(owner);
  const hands = handsOf(controller, settings);
  if (hands === 'acts' && !comesBack(explained, evidence)) return again;
  if (hands === 'no-leader') return `${adviseAway(controller, nodes, settings)}; then ${again}`;
  const named = pod && owner && workloadOf(pod);
  const where = named === undefined ? 'the pod' : `the template of ${named.kind} ${named.name}`;
  const set = decision.kind === 'place' && decision.basis === 'images' ? (decision.architectures ?? []) : [];
  const pin =
    set.length === 1 ? `the nodeSelector kubernetes.io/arch: ${set[0]}` : 'a node affinity for kubernetes.io/arch';
  if (hands === 'unknown') return `${again}, if archaware runs in this cluster; else give ${where} ${pin}`;
  if (hands === 'acts') return `a new pod may come to this node again: give ${where} ${pin}`;
  const act = hands === 'observes' ? 'choose a placement.mode that places pods' : 'install archaware (docs/install.md)';
  return `a new pod may come to this node again: give ${where} ${pin}, or ${act}`;
}

/**
 * Returns the text of the controller's Event with a step instead of an outcome. If the image claims the platform, the step is about
 * the image.
 */
function noteOf(finding: WrongNodeFinding, node: Parameters<typeof wrongNodeNote>[1], step: string): string {
  return wrongNodeNote(finding, node, finding.verdict === 'says-it-runs' ? whatLies(finding, node.architecture) : step);
}

function adviseSkipped({ namespace }: ExplainInput, skipped: SkipReason | undefined): string[] {
  const cure = skipped && skipFacts(skipped).cure?.(namespace.name);
  const or = 'or give it tolerations of its own (archaware inspect IMAGE shows the architectures)';
  return cure === undefined ? [] : [`${cure}, ${or}`];
}

function adviseUnresolved({ workload, namespace }: ExplainInput, { images, pullSecrets }: WithoutAnswer): string[] {
  const failed = images.flatMap(({ image, error }) => (error ? { image, ...error } : []));
  if (failed.length === 0) return [];
  const account = `${namespace.name}/${workload.template.serviceAccountName}`;
  const secrets = pullSecrets.flatMap(({ name, problem }) =>
    problem === undefined ? [] : `fix the pull secret ${namespace.name}/${name}: ${problem}`,
  );
  const steps = failed.map(({ image, code, registry, login }) =>
    code === 'denied' && login !== undefined
      ? `renew the login of ${login}: ${registry || 'its registry'} refused it, or it may not read ${image}`
      : stepFor(code, image, registry || 'its registry', account),
  );
  const owner = workload.kind === 'Pod' ? 'the pod' : 'the template';
  return [
    ...secrets,
    ...steps,
    `or state its architectures: in images.overrides, or in the annotation ${ARCHITECTURES_ANNOTATION} (amd64,arm64) on ${owner}`,
  ];
}

function stepFor(code: string, image: string, registry: string, account: string): string {
  switch (code) {
    case 'denied':
      return `give ${image} a login: an imagePullSecret for ${registry} in the pod or in its service account ${account}, or a key of credentials.* for the whole cluster`;
    case 'not-found':
      return `push ${image}, or correct its name; some registries give the same answer if a login is needed`;
    case 'rate-limited':
      return `log in to ${registry} (an imagePullSecret or credentials.*), or set a mirror (registries.mirrors)`;
    case 'forbidden-address':
      return `allow ${registry} if this is intended: registries.addresses.allow, registries.insecure for a loopback address, or the file that blocks it`;
    case 'malformed':
    case 'unsupported':
    case 'too-large':
      return `correct the name of ${image}, or push it again: the registry has no valid image under this name`;
    default:
      return `check that ${registry} can be reached from here; its settings are registries.mirrors, registries.caFile and registries.insecure`;
  }
}

function adviseHeld(
  input: ExplainInput,
  { decision }: WithoutAnswer,
  { settings, narrowed, clusterArchitectures }: ExplainEvidence,
): string[] {
  if (decision.kind !== 'hold' && decision.basis !== 'released') return [];
  if (narrowed.length === 0) {
    return [`add an architecture of architectures.schedulable to the annotation ${ARCHITECTURES_ANNOTATION}`];
  }
  const sets = setsOf(narrowed).map(({ architectures }) => architectures);
  const common = intersect(sets) ?? [];
  // Without a cluster, what the images run on is all that is known.
  const targets = clusterArchitectures.length > 0 ? clusterArchitectures : [...new Set(sets.flat())].sort();
  const beyond =
    common.length > 0 ? [`add ${common.join(' or ')}, on which all images run, to architectures.schedulable`] : [];
  const seen = narrowed.flatMap(({ image, said }) =>
    said.kind === 'set' ? { ...whatNames(image), platforms: said.platforms } : [],
  );
  const wasm = webAssemblyAmong(seen);
  const classes =
    wasm.length === 0 ? [] : [`set runtimeClassName to a RuntimeClass that runs WebAssembly (${few(wasm)})`];
  return alternatives([...classes, ...beyond, ...waysTo(targets, input, narrowed, settings.schedulable)]);
}

/** Advises on a DaemonSet of another API group and on its pods: its template decides which nodes get a pod. */
function adviseOtherDaemonSet(
  { workload: { kind, name, pod }, namespace }: ExplainInput,
  { decision, tolerations }: WithoutAnswer,
): string[] {
  const isTemplate = kind.startsWith('DaemonSet.');
  if ((!isTemplate && !isOtherDaemonSet(pod?.owner)) || decision.kind !== 'place') return [];
  const isOurs = pod?.written?.tolerations === true;
  const missing = tolerations.filter(({ present, stale }) => !stale && (!present || isOurs)).map(tolerationText);
  if (missing.length === 0) return [];
  const named = pod === undefined ? { kind, namespace: namespace.name, name } : workloadOf(pod);
  return [otherDaemonSetNote({ ...named, missing })];
}

function adviseGated({ pod: { state, gates = [] } }: WithoutAnswer): string[] {
  const others = gates.filter((gate) => gate !== ARCHITECTURE_GATE);
  if (state !== 'gated' || others.length === 0) return [];
  return [`the pod waits until the gate ${others.join(', ')} is removed by its owner`];
}

/** Advises on a pod that waits for a controller that is not there: without it, no other step helps. */
function adviseController(
  { applied, workload, controller, nodes }: ExplainInput,
  { decision, tolerations, nodes: groups }: WithoutAnswer,
  { settings }: ExplainEvidence,
): string[] {
  const isOpen = !applied && decision.kind === 'place' && groups.some(isOpenUntilPlaced);
  const lacks = decision.kind === 'wait' || (decision.kind === 'place' && tolerations.some(({ present }) => !present));
  const waits = isOpen || (applied && (workload.pod?.gated !== undefined || lacks));
  const away = waits && !onlyObserves(settings) ? adviseAway(controller, nodes, settings) : undefined;
  return away === undefined ? [] : [away];
}

function advisePlaced(
  { applied, isTemplate, workload, controller, refusal }: ExplainInput,
  { decision, tolerations }: WithoutAnswer,
  { settings, isLate }: ExplainEvidence,
): string[] {
  // Nobody will write anything: to install archaware is the first step.
  if (controller?.kind === 'not-installed') return [];
  const isAway = controller?.kind === 'no-leader';
  const isUp = isAway ? 'once the controller is back' : checkController(controller);
  const isGated = applied && workload.pod?.gated !== undefined;
  if (isGated && onlyObserves(settings)) return ['placement.mode observe removes no gate: run archaware clean'];
  const lacks = decision.kind === 'place' && tolerations.some(({ present }) => !present);
  // A write is refused for a template of a DaemonSet only. Its Event lives for an hour, also if the write succeeded later.
  const isRefused = isTemplate === true && (refusal?.reason !== 'WriteRefused' || lacks);
  const waits = applied ? isGated || lacks || isLate : isRefused;
  if (refusal !== undefined && waits && (decision.kind === 'place' || decision.kind === 'skip')) {
    return [refusedText(refusal)];
  }
  if (isGated && (decision.kind === 'place' || decision.kind === 'skip'))
    return [`archaware removes its gate: ${isUp}`];
  if (!applied || decision.kind !== 'place' || tolerations.every(({ present }) => present)) return [];
  return [`archaware adds the missing tolerations: ${isUp}`];
}

/** Says what the API server refuses, in the words of the controller's Event, and what to do. */
function refusedText({ reason, note }: NonNullable<ExplainInput['refusal']>): string {
  // The note of the other Event says what to allow.
  return reason === 'WriteRefused'
    ? `allow the controller's write in the policy or webhook that refuses it (docs/security.md, "Other admission plug-ins"); Event ${reason}: ${note}`
    : `Event ${reason}: ${note}`;
}

/** Advises on a pod that did not pass admission: it has no affinity, and cannot get any later. */
function adviseLate(
  { workload: { pod }, controller, refusal }: ExplainInput,
  { isLate, settings }: ExplainEvidence,
): string[] {
  // Another pod would be refused, or created without it, too.
  if (!isLate || refusal?.reason === 'RefusedByPolicy' || awayText(handsOf(controller, settings)) !== undefined)
    return [];
  return [`admission did not change it, and affinity cannot be added later: ${replaceAdvice(pod?.owner)}`];
}

/** Advises on a pod that fits no node: what would make one fit. */
function adviseNodes(input: ExplainInput, explained: WithoutAnswer, evidence: ExplainEvidence): string[] {
  const { narrowed, settings, clusterArchitectures, obstacles, demands, clash } = evidence;
  if (clash !== undefined) {
    const [first = '', ...others] = clash.steps;
    return [`${clash.what}: ${first}`, ...others];
  }
  if (explained.nodes.length === 0 || (explained.decision.kind !== 'place' && explained.decision.kind !== 'skip'))
    return [];
  const groups = explained.nodes.map((group, index) => ({ group, left: obstacles[index] ?? [] }));
  const able = groups.filter(({ group }) => isIn(group, explained));
  const pools = poolsFor(input, explained, evidence);
  if (able.length === 0) {
    const add = pools.canGrow ? [] : [`add a node of ${explained.decision.architectures?.join(' or ')}`];
    const ways = waysTo(clusterArchitectures, input, narrowed, settings.schedulable);
    return [...pools.steps, ...alternatives([...add, ...ways])];
  }
  if (able.some(({ left }) => left.length === 0)) return [];
  const isOurs = isOfKind(settings.taints);
  const easiest = Math.min(...able.map(({ left }) => left.length));
  const around = able
    .filter(({ left }) => left.length === easiest && !(pools.canGrow && isKeptOffByOthers(left, settings)))
    .map(({ group, left }) => left.map((obstacle) => stepAround(obstacle, group, demands, isOurs)).join('; and '));
  // The pod's selectors name nodes that would take it if its images ran there.
  const isPinned = able.every(({ left }) => left.some(({ kind }) => kind === 'affinity' || kind === 'node-name'));
  const isKeptOff = (obstacle: Obstacle) => obstacle.kind === 'taint' && isOurs(obstacle.taint);
  const others = groups.filter(({ group, left }) => isPinned && !isIn(group, explained) && left.every(isKeptOff));
  const otherTargets = [...new Set(others.flatMap(({ group }) => group.architecture ?? []))];
  const builds = waysTo(otherTargets, input, narrowed, settings.schedulable);
  return [...pools.steps, ...alternatives([...around, ...builds])];
}

function poolsFor(
  { nodes = [], nodePools }: ExplainInput,
  { decision }: WithoutAnswer,
  { settings }: ExplainEvidence,
): PoolAdvice {
  return adviseOnPools(nodes, nodePools, decision.architectures, settings);
}

function stepAround(
  obstacle: Obstacle,
  group: ExplainedNodes,
  demands: Demands,
  isOurs: ReturnType<typeof isOfKind>,
): string {
  const { names } = group;
  switch (obstacle.kind) {
    case 'unschedulable':
      return `kubectl uncordon ${few(names, ' ')}`;
    case 'node-name':
      return `remove nodeName (${demands.nodeName}) from the pod`;
    case 'taint': {
      const { key, value } = obstacle.taint;
      const add = `add a toleration for ${taintText(obstacle.taint)} to the pod`;
      // The images of a pod that is left alone are not looked up, and archaware sets its taint again.
      if (isOurs(obstacle.taint)) return `${add} if its images run on ${value}`;
      return key.startsWith('node.kubernetes.io/')
        ? `see why ${few(names)} is ${key.replace('node.kubernetes.io/', '')}`
        : `${add}, or remove that taint from ${few(names)}`;
    }
    case 'affinity':
      return stepTowards(demands, group);
    default:
      return obstacle satisfies never;
  }
}

/** Advises to label the node, or to change the pod if the label states a fact that nobody should change. */
function stepTowards(demands: Demands, { names, labels }: ExplainedNodes): string {
  const unmet = unmetBy(demands, { labels, name: names[0] ?? '' });
  const texts = unmet.map(({ text }) => text).join('; ');
  const facts = unmet.filter(({ key }) => isFact(key));
  if (facts.length === 0) return `label ${few(names)} as the pod requires (${texts}), or change what the pod requires`;
  const has = facts.flatMap(({ key }) => (Object.hasOwn(labels, key) ? `${key}=${labels[key]}` : []));
  const is = has.length === 0 ? '' : `, and ${few(names)} has ${has.join(', ')}`;
  return `change what the pod requires (${texts}${is}), or add a node that has it`;
}
