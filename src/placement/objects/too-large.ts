import { weightOf } from '../../kit/fairness/weight.ts';
import { IGNORE_LABEL } from '../../names.ts';
import { readRuntime } from './asked-platform.ts';
import type { DaemonSet } from './daemonset.ts';
import { MOST_BYTES, type Pod, type PodTemplate } from './pod.ts';

/** Says that an object is too large; `bytes`: {@link PodTemplate.tooLarge}. */
export function tooLargeNote(bytes: number): string {
  const what = 'its names of images, labels, selectors and tolerations count together';
  return `too large to be served: ${bytes} bytes, at most ${MOST_BYTES / 1024} KiB (${what})`;
}

/** More than a pod that is not made to be large has. */
const MOST_GATES = 32;

/** Returns what is kept of a pod: all, or of one that is too large what a skipped pod is handled by. */
export function keptPod(pod: Pod): Pod {
  if (pod.tooLarge === undefined) return pod;
  const gates = pod.gated?.gates ?? [];
  // The gate is removed from a skipped pod, and the patch tests the whole list.
  const isReleasable = gates.length > 0 && gates.length <= MOST_GATES;
  const gated = isReleasable ? { gates, affinity: undefined, nodeSelector: undefined, ours: [] } : undefined;
  return { ...pod, ...keptTemplate(pod), broken: undefined, written: undefined, selects: undefined, gated };
}

/** Returns what is kept of a DaemonSet: all, or of one that is too large nothing that its author wrote. */
export function keptDaemonSet(daemonSet: DaemonSet): DaemonSet {
  const { affinity: _, ...rest } = daemonSet;
  const { template, labels } = rest;
  if (template.tooLarge === undefined) return daemonSet;
  return {
    ...rest,
    labels: onlyIgnored(labels),
    recorded: undefined,
    template: { ...template, ...keptTemplate(template) },
    selects: { nodeSelector: {}, terms: undefined },
  };
}

function keptTemplate({ labels }: PodTemplate) {
  const nothing = {
    runtime: readRuntime({}),
    statement: undefined,
    images: [],
    tolerations: undefined,
    pullSecrets: [],
    asked: undefined,
  };
  return { labels: onlyIgnored(labels), ...nothing };
}

/** Returns the label that says that archaware leaves an object alone, if it is there. */
function onlyIgnored(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.hasOwn(labels, IGNORE_LABEL) ? { [IGNORE_LABEL]: labels[IGNORE_LABEL] ?? '' } : {};
}

/** Bytes of labels of a node or a namespace that are kept. Cluster administrators write them, and kubelets those of their node. */
const MOST_LABELS = 64 * 1024;

/** Returns an object with labels that are not too many: those of archaware and of Kubernetes first, then the others in their order. */
export function withBoundedLabels<T extends { readonly labels: Readonly<Record<string, string>> }>(object: T): T {
  const { labels } = object;
  if (weightOf(labels, MOST_LABELS) <= MOST_LABELS) return object;
  const isFirst = ([key]: [string, string]) => /(?:^|\.)(?:archaware\.dev|kubernetes\.io|k8s\.io)\//.test(key);
  const entries = Object.entries(labels);
  const kept: [string, string][] = [];
  let left = MOST_LABELS;
  for (const entry of [...entries.filter(isFirst), ...entries.filter((each) => !isFirst(each))]) {
    left -= weightOf(entry);
    if (left < 0) break;
    kept.push(entry);
  }
  return { ...object, labels: Object.fromEntries(kept) };
}
