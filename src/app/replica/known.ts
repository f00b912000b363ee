import { NEVER } from '../../controllers/image-source.ts';
import type { ObjectRecord } from '../../controllers/memory.ts';
import { isoTime } from '../../kit/duration.ts';
import { createTurns, inTurns } from '../../kit/fairness/event-loop.ts';
import { printable } from '../../kit/printable.ts';
import type { Placement } from '../../placement/decide.ts';
import { isSystemNamespace, skipFacts } from '../../placement/eligibility.ts';
import { isOurTaint, readManaged } from '../../placement/nodes/managed.ts';
import { type Node, nodeArchitecture, readTaint } from '../../placement/nodes/node.ts';
import { problemsOf } from '../../placement/object-problems.ts';
import { hasEnded } from '../../placement/objects/containers.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import { type Taint, tolerates } from '../../placement/patch/tolerations.ts';
import { onlyObserves } from '../../placement/placing.ts';
import { contradictionOf, decisionNote, queuedNote, skipNote, startsAtLatestText } from '../../placement/reasons.ts';
import type { Settings } from '../../placement/settings.ts';
import type { LeaderStatus, StatusProblem, WaitingPod } from '../leader-status.ts';
import { VERSION } from '../version.ts';
import type { Base } from './base.ts';
import type { Parts } from './parts.ts';
import { type Said, TROUBLES, type TroubleReason } from './said.ts';
import { outcomeOf } from './serve-state.ts';

/** The architectures of the nodes, each with archaware's taint there, or undefined for nodes without it; every pair once. */
export type TaintedNodes = readonly { readonly architecture: string; readonly taint: Taint | undefined }[];

/** Returns the pairs of architecture and taint. */
export function taintedNodes(nodes: Iterable<Node>, { taints }: Pick<Settings, 'taints'>): TaintedNodes {
  const pairs = new Map<string, TaintedNodes[number]>();
  for (const node of nodes) {
    const architecture = nodeArchitecture(node);
    if (architecture === undefined) continue;
    const managed = readManaged(node.managed);
    const found = (node.taints ?? []).find((taint) => isOurTaint(taint, managed, taints));
    const taint = found && readTaint(found);
    pairs.set(JSON.stringify([architecture, taint]), { architecture, taint });
  }
  return [...pairs.values()];
}

const REASON_BYTES = 500;

/** Whether a pod has no node because of archaware. */
export function isWaiting(
  pod: Pod,
  { decision, notes }: ObjectRecord,
  settings: Settings,
  nodes: TaintedNodes,
): boolean {
  if (pod.nodeName !== undefined || pod.deleting || hasEnded(pod.phase)) return false;
  if (pod.gated !== undefined || notes?.refused !== undefined) return true;
  if (decision === undefined || onlyObserves(settings)) return false;
  switch (decision.kind) {
    case 'wait':
    case 'hold':
      return true;
    case 'place':
      return contradictionOf(decision, pod.asked, settings) !== undefined || hasNoNode(decision, nodes);
    case 'skip':
      return skipFacts(decision.reason).isLeftAlone && isCutOff(pod, nodes);
    default:
      return decision satisfies never;
  }
}

const REFUSED = 'WriteRefused: the API server refuses what archaware writes to it';

/** Returns what is shown of a pod that waits. `queued`: its place in a registry's line, if its images wait there. */
export function waitingPod(
  pod: Pod,
  { decision, notes }: ObjectRecord,
  settings: Settings,
  queued: string | undefined,
): WaitingPod {
  const { namespace, name, createdAt, gated } = pod;
  // The decision that the record has is the last one that was carried out, and its promise cannot be kept.
  const isRefused = notes?.refused !== undefined;
  const known = isRefused ? REFUSED : reasonOf(pod, decision, settings, queued);
  const reason = known ?? 'it has the gate, because an image is not known yet';
  const startsAt = decision?.kind === 'wait' && !isRefused ? notes?.startsAt : undefined;
  return {
    ...{ namespace, name, since: isoTime(createdAt), gated: gated !== undefined },
    reason: printable(reason, REASON_BYTES),
    outlook: startsAt === undefined ? '' : startsAtLatestText(startsAt),
  };
}

function reasonOf(
  pod: Pod,
  decision: ObjectRecord['decision'],
  settings: Settings,
  queued: string | undefined,
): string | undefined {
  if (decision === undefined) return undefined;
  if (decision.kind === 'skip') {
    return `it tolerates no taint of archaware, and is left alone: ${skipNote(decision.reason, pod)}`;
  }
  const problems = problemsOf(pod, pod.namespace, decision, settings);
  const isClear = decision.kind === 'wait' || decision.kind === 'hold';
  const chosen = problems.findLast(({ reason }) => isClear || reason === 'NoCommonArchitecture');
  if (chosen !== undefined) return `${chosen.reason}: ${chosen.note}`;
  if (decision.kind === 'place' && pod.gated === undefined) {
    return `${decisionNote(decision, pod.runtime.os, settings.schedulable)}, and no node has that architecture`;
  }
  return queued ?? (decision.kind === 'wait' ? 'its images are being looked up' : undefined);
}

/** Whether no node has an architecture of a placement. An autoscaler may make one. */
function hasNoNode({ architectures, followsCluster }: Placement, nodes: TaintedNodes): boolean {
  if (followsCluster || architectures.length === 0 || nodes.length === 0) return false;
  return !nodes.some(({ architecture }) => architectures.includes(architecture));
}

/** Whether every node of the architectures that a pod asks for has a taint of archaware that the pod does not tolerate. */
function isCutOff({ asked, tolerations = [] }: Pod, nodes: TaintedNodes): boolean {
  const possible = nodes.filter(
    ({ architecture }) => asked === undefined || asked.architectures.includes(architecture),
  );
  const isOpen = ({ taint }: TaintedNodes[number]) =>
    taint === undefined || taint.effect !== 'NoSchedule' || tolerations.some((each) => tolerates(each, taint));
  return possible.length > 0 && !possible.some(isOpen);
}

/** How much is wrong, as the controllers count it. */
export type Counts = {
  readonly contested: number;
  readonly heldBack: number;
  readonly stopped: number;
  readonly onWrongNodes: number;
  /** Whether the present configuration file is in use. */
  readonly configurationInUse: boolean;
  /** When the certificate of the webhook expires, in milliseconds since the epoch; undefined without one. */
  readonly certificateExpiry: number | undefined;
};

/** A certificate is renewed long before. */
const EXPIRES_SOON_MS = 7 * 86_400_000;
const MOST_NAMED = 10;
const NODE_CONTESTED =
  'set the taint where that writer gets its taints from (the node pool of a provider), or leave such nodes out with taints.nodeSelector; archaware tries again after ten minutes, and then less and less often, up to a day';
const GUARDED =
  'if somebody gave the taint of archaware another value, kubectl taint node NAME KEY-; if the policy is pinned to another taints.key, or lacks the domain of a label rule, apply the manifest that fits the configuration (docs/troubleshooting.md, "WriteRefused")';

function adviceFor({ regarding: { kind }, reason, note }: Said): string {
  if (kind !== 'Node') return TROUBLES[reason];
  if (reason === 'WriteRefused' && note.includes('archaware-guard-nodes')) return GUARDED;
  return reason === 'WriteContested' ? NODE_CONTESTED : TROUBLES[reason];
}

/** Returns the problems that a leader knows. `said`: what its Events said about objects, and is still so. `now`: the wall time. */
export function knownProblems(
  counts: Counts,
  said: readonly Said[],
  now: number,
  settings: Pick<Settings, 'systemNamespaces'>,
): StatusProblem[] {
  const { contested, heldBack, stopped, onWrongNodes, configurationInUse, certificateExpiry } = counts;
  // Many pods may be on wrong nodes, or refused. What harms the whole cluster comes first: tenants can have any number of problems.
  const rank = ({ regarding: { kind, namespace }, reason }: Said) =>
    (reason === 'WrongNode' ? 3 : kind === 'Pod' ? 2 : kind === 'Node' ? 0 : 1) +
    (namespace === undefined || isSystemNamespace(namespace, settings) ? 0 : 4);
  const ranked = said.toSorted((one, other) => rank(one) - rank(other));
  const named = ranked.slice(0, MOST_NAMED).map((each) => {
    const { kind, namespace, name } = each.regarding;
    const object = namespace === undefined ? name : `${namespace}/${name}`;
    return { problem: `${kind} ${object}: ${each.reason}: ${each.note}`, do: adviceFor(each) };
  });
  const unnamed = (count: number, reason: TroubleReason, text: (count: number) => string): StatusProblem[] => {
    const more = count - said.filter((each) => each.reason === reason).length;
    const advice = `kubectl get events -A --field-selector reason=${reason}; ${TROUBLES[reason]}`;
    return when(more > 0, text(more), advice);
  };
  return [
    ...when(
      !configurationInUse,
      'the changed configuration file is refused, and the last valid one stays in use',
      "the leader's log says which line is wrong; correct the ConfigMap",
    ),
    ...when(
      certificateExpiry !== undefined && certificateExpiry - now < EXPIRES_SOON_MS,
      `the certificate of the webhook expires at ${isoTime(certificateExpiry ?? 0)}`,
      'docs/admission.md; the log of the leader says why it was not renewed',
    ),
    ...named,
    ...when(
      said.length > named.length,
      `${said.length - named.length} more objects with such an Event`,
      'kubectl get events -A --field-selector reportingComponent=archaware-controller',
    ),
    ...unnamed(
      stopped,
      'RolloutStopped',
      (count) =>
        `${counted(count, 'DaemonSet is', 'DaemonSets are')} not back after archaware changed the template; others wait`,
    ),
    ...when(
      heldBack > 0 && !said.some(({ reason }) => reason === 'TaintHeldBack'),
      `${counted(heldBack, 'node stays', 'nodes stay')} untainted: a DaemonSet that runs there cannot be given its tolerations`,
      `kubectl get events -A --field-selector reason=TaintHeldBack names it; ${TROUBLES.TaintHeldBack}`,
    ),
    ...unnamed(
      contested,
      'WriteContested',
      (count) => `another writer keeps undoing the writes to ${counted(count, 'object', 'objects')}`,
    ),
    ...unnamed(onWrongNodes, 'WrongNode', (count) =>
      counted(count, 'pod does not run on its node', 'pods do not run on their nodes'),
    ),
  ];
}

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** Returns a problem if there is one. */
export function when(isWrong: boolean, problem: string, advice: string): StatusProblem[] {
  return isWrong ? [{ problem, do: advice }] : [];
}

const MOST_WAITING = 5;

function nameOf({ pod: { namespace, name } }: { readonly pod: Pod }): string {
  return `${namespace}/${name}`;
}

function isTooLarge({ decision }: ObjectRecord): boolean {
  return decision?.kind === 'skip' && decision.reason === 'too-large';
}

/** Returns the place of a pod's images in a registry's line; undefined if none of them waits there. */
function queuedText({ images }: Parts['running'], { images: wanted, namespace, pullSecrets }: Pod): string | undefined {
  const texts = wanted.flatMap((image) => {
    const answer = images.answer(image, namespace, pullSecrets, NEVER);
    const line = 'line' in answer ? answer.line : undefined;
    return line === undefined ? [] : queuedNote({ image: image.image, ...line }).join('');
  });
  return texts[0] === undefined ? undefined : `ImageUnresolvable: ${texts[0]}`;
}

/** Returns what the leader knows now; undefined between terms. */
export async function gatherStatus(base: Base, parts: Parts): Promise<LeaderStatus | undefined> {
  const { running, watches, refused, admission, terms } = parts;
  const loops = running.loops();
  if (loops === undefined) return undefined;
  const turns = createTurns(base.clock);
  const settings = running.settings();
  const nodes = taintedNodes(watches.nodes.store.values(), settings);
  const pods = { placed: 0, waiting: 0, held: 0, open: 0, ignored: 0 };
  const oldest: { readonly pod: Pod; readonly record: ObjectRecord }[] = [];
  let [tooLarge, count] = [0, 0];
  await inTurns(turns, loops.podStates, ([key, record]) => {
    const outcome = record.decision && outcomeOf(record.decision);
    if (outcome !== undefined) pods[outcome]++;
    if (isTooLarge(record)) tooLarge++;
    const pod = watches.pods.store.get(key);
    if (pod === undefined || !isWaiting(pod, record, record.settings ?? settings, nodes)) return;
    count++;
    oldest.push({ pod, record });
    oldest.sort((one, other) => one.pod.createdAt - other.pod.createdAt || (nameOf(one) < nameOf(other) ? -1 : 1));
    oldest.splice(MOST_WAITING);
  });
  for (const record of loops.daemonSetStates.values()) if (isTooLarge(record)) tooLarge++;
  const said = [...parts.events.said()].filter(({ regarding, reason }) =>
    reason === 'RefusedByPolicy'
      ? refused.refused(regarding.namespace ?? '', regarding.uid).length > 0
      : loops.isStill(reason, regarding),
  );
  const counts = {
    ...{ contested: loops.contested(), heldBack: loops.heldBack(), stopped: loops.rolloutsStopped() },
    ...{ onWrongNodes: loops.onWrongNodes(), configurationInUse: parts.configurationInUse },
    certificateExpiry: admission?.expiry(),
  };
  return {
    writer: running.identity,
    version: VERSION,
    pods,
    tooLarge,
    waiting: {
      count,
      oldest: oldest.map(({ pod, record }) =>
        waitingPod(pod, record, record.settings ?? settings, queuedText(running, pod)),
      ),
    },
    keepsDaemonSets: terms.keepsDaemonSets(),
    published: terms.published(),
    problems: knownProblems(counts, said, base.clock.wall(), settings),
  };
}
