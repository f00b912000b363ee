import { isSame } from '../../kit/json.ts';
import { difference, type Operation, pointerPart } from '../../kit/json-patch.ts';
import { ARCHITECTURE_GATE, MANAGED_ANNOTATION, TOLERATIONS_ANNOTATION } from '../../names.ts';
import type { NodeChange } from '../nodes/decide-node.ts';
import { LABEL_VALUE } from '../nodes/labels.ts';
import { readManaged } from '../nodes/managed.ts';
import type { Node } from '../nodes/node.ts';
import type { DaemonSet } from '../objects/daemonset.ts';
import type { Gated, Pod } from '../objects/pod.ts';
import type { PlacementIntent } from '../placing.ts';
import type { TemplateDecision } from '../rollout/template.ts';
import { withAffinity } from './affinity.ts';
import { lacking, type Toleration } from './tolerations.ts';

/**
 * Returns the patch that adds the tolerations that a pod lacks (`missing`); empty if it lacks none. The patch fails on another pod of the
 * same name, and if tolerations or images changed since the pod was read: both raise `metadata.generation`. Pods have no
 * generation before Kubernetes 1.33; there the patch tests the list of tolerations itself.
 */
export function podPatch(pod: Pod, missing: readonly Toleration[]): Operation[] {
  if (missing.length === 0) return [];
  const operations: Operation[] = [test('/metadata/uid', pod.uid)];
  if (pod.generation !== undefined) operations.push(test('/metadata/generation', pod.generation));
  if (pod.tolerations === undefined) {
    // If somebody added tolerations in between, the API server refuses this patch: it would remove entries.
    return [...operations, test('/spec/tolerations', null), add('/spec/tolerations', missing)];
  }
  if (pod.generation === undefined) operations.push(test('/spec/tolerations', pod.tolerations));
  return [...operations, ...missing.map((toleration) => add('/spec/tolerations/-', toleration))];
}

/**
 * Returns the patch that releases a gated pod (KEP-3838): it sets affinity and tolerations and removes archaware's gate at once.
 * Without a `placing` it removes only the gate. The patch fails if any of these changed since the pod was read.
 */
export function releasePatch(pod: Pod, gated: Gated, placing: PlacementIntent | undefined): Operation[] {
  const { gates, affinity } = gated;
  const { generation, resourceVersion } = pod;
  const index = gates.findIndex(({ name }) => name === ARCHITECTURE_GATE);
  const narrowed = placing?.affinity && withAffinity(gated, placing.affinity);
  const missing = lacking(pod.tolerations ?? [], placing?.tolerations ?? []);
  const operations: Operation[] = [test('/metadata/uid', pod.uid)];
  // Before 1.33 there is no generation that counts changes of the spec, so the patch tests the resource version instead. A gated
  // pod has hardly any other changes.
  if (generation === undefined) operations.push(test('/metadata/resourceVersion', resourceVersion));
  else operations.push(test('/metadata/generation', generation));
  operations.push(test('/spec/schedulingGates', gates));
  if (narrowed !== undefined) operations.push(...difference(affinity, narrowed, '/spec/affinity'));
  if (missing.length > 0 && pod.tolerations === undefined) operations.push(add('/spec/tolerations', missing));
  else operations.push(...missing.map((toleration) => add('/spec/tolerations/-', toleration)));
  return [
    ...operations,
    { op: 'remove', path: gates.length === 1 ? '/spec/schedulingGates' : `/spec/schedulingGates/${index}` },
  ];
}

/**
 * Returns the patch for a node's decision: taints, labels and annotation at once, each tested against the value that was read.
 * The labels that rules read are not tested: if one changed, its event leads to a new decision.
 */
export function nodePatch(node: Node, decision: NodeChange): Operation[] {
  const operations: Operation[] = [test('/metadata/uid', node.uid)];
  // Before the kubelet reports it, no decision depends on it, and a test of an absent field fails.
  if (node.reportedArchitecture !== '') {
    operations.push(test('/status/nodeInfo/architecture', node.reportedArchitecture));
  }
  const changed = decision.taints !== node.taints && !isSame(decision.taints, node.taints ?? []);
  if (changed) {
    operations.push(test('/spec/taints', node.taints ?? null));
    if (node.taints === undefined) operations.push(add('/spec/taints', decision.taints));
    else if (decision.taints.length === 0) operations.push({ op: 'remove', path: '/spec/taints' });
    else operations.push({ op: 'replace', path: '/spec/taints', value: decision.taints });
  }
  return [
    ...operations,
    ...labelsPatch(node, decision),
    ...annotationPatch(MANAGED_ANNOTATION, node.hasAnnotations, node.managed, decision.managed),
  ];
}

/** Returns the purpose of a node's patch in one word. */
export function nodeAction(node: Node, decision: NodeChange): 'taint' | 'untaint' | 'label' | 'unlabel' {
  const { taints, addedLabels, removedLabels, managed } = decision;
  if (addedLabels.length + removedLabels.length > 0 && isSame(taints, node.taints ?? [])) {
    return addedLabels.length > 0 ? 'label' : 'unlabel';
  }
  return readManaged(managed).taints.length === 0 ? 'untaint' : 'taint';
}

/** Returns the operations for the labels. Their tests fail if somebody else set or changed one of the labels in between. */
function labelsPatch({ hasLabels }: Node, { addedLabels, removedLabels }: NodeChange): Operation[] {
  if (!hasLabels && addedLabels.length > 0) {
    const labels = Object.fromEntries(addedLabels.map((label) => [label, LABEL_VALUE]));
    return [test('/metadata/labels', null), add('/metadata/labels', labels)];
  }
  const pathOf = (label: string) => `/metadata/labels/${pointerPart(label)}`;
  return [
    ...addedLabels.flatMap((label) => [test(pathOf(label), null), add(pathOf(label), LABEL_VALUE)]),
    ...removedLabels.flatMap((label): Operation[] => [
      test(pathOf(label), LABEL_VALUE),
      { op: 'remove', path: pathOf(label) },
    ]),
  ];
}

/** Returns the patch for a template's decision: the tolerations, and the annotation that lists archaware's. */
export function daemonSetPatch(
  daemonSet: DaemonSet,
  decision: Extract<TemplateDecision, { kind: 'set' }>,
): Operation[] {
  const path = '/spec/template/spec/tolerations';
  const operations: Operation[] = [
    test('/metadata/uid', daemonSet.uid),
    test('/metadata/generation', daemonSet.generation),
  ];
  if (decision.rolls) {
    const present = daemonSet.template.tolerations;
    const isChanged = !isSame(present ?? [], decision.tolerations);
    operations.push(test(path, present ?? null));
    if (isChanged && present === undefined) operations.push(add(path, decision.tolerations));
    else if (isChanged && decision.tolerations.length === 0) operations.push({ op: 'remove', path });
    else if (isChanged) operations.push({ op: 'replace', path, value: decision.tolerations });
    // The generation says that it is the affinity which was read.
    const [before, after] = [{ affinity: daemonSet.affinity }, { affinity: decision.affinity }];
    operations.push(...difference(before, after, '/spec/template/spec'));
  }
  return [
    ...operations,
    ...annotationPatch(TOLERATIONS_ANNOTATION, daemonSet.hasAnnotations, daemonSet.recorded, decision.recorded),
  ];
}

function annotationPatch(
  name: string,
  hasAnnotations: boolean,
  present: string | undefined,
  wanted: string | undefined,
): Operation[] {
  if (present === wanted) return [];
  const path = `/metadata/annotations/${pointerPart(name)}`;
  if (wanted === undefined) return [test(path, present), { op: 'remove', path }];
  if (!hasAnnotations) return [test('/metadata/annotations', null), add('/metadata/annotations', { [name]: wanted })];
  // A test of an absent path fails, so an absent annotation is added without a test.
  return present === undefined ? [add(path, wanted)] : [test(path, present), add(path, wanted)];
}

function test(path: string, value: unknown): Operation {
  return { op: 'test', path, value };
}

function add(path: string, value: unknown): Operation {
  return { op: 'add', path, value };
}
