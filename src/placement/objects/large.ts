import { cut } from '../../kit/cut.ts';
import { weightOf } from '../../kit/fairness/weight.ts';
import { IGNORE_LABEL } from '../../names.ts';
import type { DaemonSet } from './daemonset.ts';
import type { Owner, Pod, PodTemplate } from './pod.ts';

/*
 * The author of a pod decides how large it is, up to what etcd takes (1.5 MB), and every replica keeps every pod. So of a pod
 * or a DaemonSet that is too large nothing is kept but what its queue needs; the rest is read again when its turn comes.
 */

/** Returns about how many bytes of memory a pod takes. Stops at `most`. */
export function weightOfPod(pod: Pod, most: number): number {
  const { gated, broken, owner, written } = pod;
  return (
    weightOfTemplate(pod, most) + [gated, broken, owner, written].reduce((sum, part) => sum + weightOf(part, most), 0)
  );
}

/** Whether a pod has every list and object from the same pod as it was read before, which was kept whole. */
export function isSamePod(pod: Pod, before: Pod): boolean {
  return (
    before.large === undefined &&
    pod.images === before.images &&
    pod.tolerations === before.tolerations &&
    pod.labels === before.labels &&
    pod.pullSecrets === before.pullSecrets &&
    pod.statement === before.statement &&
    pod.asked === before.asked &&
    pod.owner === before.owner &&
    pod.gated === before.gated &&
    pod.broken === before.broken &&
    pod.written === before.written
  );
}

/** Returns about how many bytes of memory a DaemonSet takes. Stops at `most`. */
export function weightOfDaemonSet({ template, labels, recorded, selects }: DaemonSet, most: number): number {
  return weightOfTemplate(template, most) + weightOf(labels, most) + weightOf(recorded) + weightOf(selects, most);
}

function weightOfTemplate(template: PodTemplate, most: number): number {
  const { labels, statement, images, tolerations, pullSecrets, asked } = template;
  return [labels, statement, images, tolerations, pullSecrets, asked].reduce(
    (sum: number, part) => sum + weightOf(part, most),
    0,
  );
}

/** How many broken containers of a large pod are kept. */
const MOST_BROKEN = 4;
const LONGEST_NAME = 253;

/** Returns a text of a fixed length that is the same only for the same text. */
type Digest = (text: string) => string;

/** Returns what is kept of a pod that is too large. */
export function stubOfPod(pod: Pod, digest: Digest): Pod {
  return {
    ...pod,
    ...stubOfTemplate(pod),
    owner: pod.owner && stubOfOwner(pod.owner),
    broken: pod.broken && stubOfBroken(pod.broken),
    // Whether there is a gate decides about the order of the work.
    gated: pod.gated && { gates: [], affinity: undefined, nodeSelector: undefined },
    written: undefined,
    large: digest(whatIsLeftOut(pod)),
  };
}

/** Whether this is what is kept of a pod that is too large: every pod has an image. */
export function isStub({ large, images }: Pick<Pod, 'large' | 'images'>): boolean {
  return large !== undefined && images.length === 0;
}

/** Returns a pod that was read as a whole because what is kept of it is too little. */
export function wholePod(pod: Pod, digest: Digest): Pod {
  return { ...pod, large: digest(whatIsLeftOut(pod)) };
}

/** Returns what is kept of a DaemonSet that is too large. */
export function stubOfDaemonSet(daemonSet: DaemonSet): DaemonSet {
  const { labels, recorded, template } = daemonSet;
  return {
    ...daemonSet,
    labels: onlyIgnored(labels),
    // Whether there is a record says that it may roll because of us.
    recorded: recorded && '',
    template: { ...template, ...stubOfTemplate(template) },
    selects: { nodeSelector: {}, terms: undefined },
    isLarge: true,
  };
}

/** A list that is kept whole stays the same one, so that an event which changes nothing in it shows no change. */
function stubOfBroken(broken: NonNullable<Pod['broken']>): Pod['broken'] {
  return broken.length <= MOST_BROKEN ? broken : broken.slice(0, MOST_BROKEN);
}

function stubOfTemplate({ labels }: PodTemplate) {
  const nothing = { statement: undefined, images: [], tolerations: undefined, pullSecrets: [], asked: undefined };
  return { labels: onlyIgnored(labels), ...nothing };
}

/** Returns the label that says that archaware leaves an object alone, if it is there. */
function onlyIgnored(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const value = Object.hasOwn(labels, IGNORE_LABEL) ? labels[IGNORE_LABEL] : undefined;
  return value === undefined ? {} : { [IGNORE_LABEL]: value };
}

function stubOfOwner({ kind, apiVersion, name, uid }: Owner): Owner {
  return {
    kind: cut(kind, LONGEST_NAME),
    apiVersion: cut(apiVersion, LONGEST_NAME),
    name: cut(name, LONGEST_NAME),
    uid: cut(uid, LONGEST_NAME),
  };
}

/** Returns what decides and is not kept, as text. The generation, where there is one, stands for the spec. */
function whatIsLeftOut({ labels, statement, generation, images, tolerations }: Pod): string {
  const spec = generation === undefined ? [images, tolerations] : [];
  return JSON.stringify([labels, statement, spec]);
}

/** Bytes of labels of a node or a namespace that are kept. Cluster administrators write them, and kubelets those of their node. */
const MOST_LABELS = 64 * 1024;

/** Returns labels that are not too many: those of archaware and of Kubernetes first, then the others in their order. */
export function boundedLabels(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  if (weightOf(labels, MOST_LABELS) <= MOST_LABELS) return labels;
  const isFirst = ([key]: [string, string]) => /(?:^|\.)(?:archaware\.dev|kubernetes\.io|k8s\.io)\//.test(key);
  const entries = Object.entries(labels);
  const kept: [string, string][] = [];
  let left = MOST_LABELS;
  for (const entry of [...entries.filter(isFirst), ...entries.filter((each) => !isFirst(each))]) {
    left -= weightOf(entry);
    if (left < 0) break;
    kept.push(entry);
  }
  return Object.fromEntries(kept);
}
