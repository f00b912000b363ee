import { buildReport, type ReportInput } from '../../../src/analysis/readiness/build.ts';
import { createInventory } from '../../../src/analysis/readiness/inventory.ts';
import type { Report } from '../../../src/analysis/readiness/report.ts';
import type { JsonObject } from '../../../src/kit/json.ts';
import type { ImageAnswer } from '../../../src/placement/images.ts';
import { type Node, readNode } from '../../../src/placement/nodes/node.ts';
import type { TargetVerdict } from '../../../src/placement/readiness/readiness-states.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { failed, known, settings } from '../../placement/objects.ts';

/** What the registries of the tests know: the name of an image says what it runs on. */
export function answer(image: string): ImageAnswer {
  const [name = ''] = image.split(':');
  if (name === 'gone') return failed(Number.POSITIVE_INFINITY);
  if (name === 'wasm') return known('wasip1/wasm');
  const architectures = name.split('-').filter((part) => ['amd64', 'arm64', 's390x'].includes(part));
  return known((architectures.length > 0 ? architectures : ['amd64', 'arm64']).map((each) => `linux/${each}`).join());
}

/** A container with an image and requests (`250m`, `1Gi`). */
export function container(image: string, cpu = '1', memory = '1Gi'): JsonObject {
  return { name: `c-${image.split(':')[0]}`, image, resources: { requests: { cpu, memory } } };
}

type Given = {
  readonly kind?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly images?: readonly string[];
  /** Fields of the pod's spec. */
  readonly pod?: JsonObject;
  /** Fields of the object's spec. */
  readonly spec?: JsonObject;
  readonly status?: JsonObject;
  readonly labels?: JsonObject;
  readonly annotations?: JsonObject;
  readonly metadata?: JsonObject;
};

/** A Deployment, or another kind, as the API server would send it. */
export function object(given: Given = {}): JsonObject {
  const { kind = 'Deployment', namespace = 'shop', name = 'web', images = ['web'], labels = {} } = given;
  const own = { name, namespace, labels, ...given.metadata };
  const spec = { containers: images.map((image) => container(image)), ...given.pod };
  const template = { metadata: { labels, annotations: given.annotations }, spec };
  const rest = given.status === undefined ? {} : { status: given.status };
  if (kind === 'Pod') return { kind, metadata: { ...own, annotations: given.annotations }, spec, ...rest };
  if (kind === 'CronJob') {
    const { suspend, ...job } = given.spec ?? {};
    return { kind, metadata: own, spec: { suspend, jobTemplate: { spec: { template, ...job } } }, ...rest };
  }
  return { kind, metadata: own, spec: { template, ...given.spec }, ...rest };
}

/** `ownerReferences` of an object that something controls. */
export function owned(kind: string, name: string, uid: string): JsonObject {
  const isOfKubernetes = ['Deployment', 'ReplicaSet', 'StatefulSet', 'DaemonSet'].includes(kind);
  const apiVersion = isOfKubernetes ? 'apps/v1' : 'example.com/v1';
  return { ownerReferences: [{ controller: true, apiVersion, kind, name, uid }] };
}

/** A node with the labels that a kubelet sets. */
export function node(
  architecture: string,
  given: { labels?: JsonObject; taints?: JsonObject[]; name?: string } = {},
): Node {
  const { name = `${architecture}-1`, labels = {}, taints } = given;
  const own = { 'kubernetes.io/arch': architecture, 'kubernetes.io/os': 'linux', 'kubernetes.io/hostname': name };
  return readNode({
    metadata: { name, labels: { ...own, ...labels } },
    spec: taints === undefined ? {} : { taints },
    status: { nodeInfo: { architecture }, conditions: [{ type: 'Ready', status: 'True' }] },
  });
}

export type World = Partial<Omit<ReportInput, 'units' | 'settings'>> & {
  readonly objects: readonly JsonObject[];
  readonly settings?: Partial<Settings>;
};

/** The report of these objects on a cluster of an amd64 and an arm64 node, for arm64. */
export function report({ objects, settings: changed, ...given }: World): Report {
  const inventory = createInventory();
  for (const each of objects) inventory.add(each);
  return buildReport({
    units: inventory.units(),
    nodes: [node('amd64'), node('arm64')],
    targets: ['arm64'],
    settings: settings(changed),
    namespaceOf: (name) => ({ name, labels: {}, preferred: undefined }),
    namesOf: (image) => [`docker.io/library/${image}`],
    answerOf: ({ image }) => answer(image),
    registryOf: (image) => (image.includes('/') ? (image.split('/')[0] ?? '') : 'docker.io'),
    grouping: undefined,
    unread: [],
    ...given,
  });
}

/** The verdict for one object and arm64: its state, and its reasons as text. */
export function verdict(given: Given, world: Partial<World> = {}): string[] {
  const [workload] = report({ objects: [object(given)], ...world }).workloads;
  return texts(workload?.verdicts.arm64);
}

export function texts(found: TargetVerdict | undefined): string[] {
  return found === undefined ? [] : [found.state, ...found.reasons.map(({ text }) => text)];
}
