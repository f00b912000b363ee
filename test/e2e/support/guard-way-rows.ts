/**
 * Ways of several requests to what one request may not do: our account prepares something, perhaps waits for somebody else, and
 * then removes what is not ours. Each begins with an object of its own, and its requests are stored.
 */

import { daemonSet } from '../../support/workloads.ts';
import { MANAGED } from './placed.ts';
import type { LiveWorld } from './world.ts';

/** What is sent by whom, as a merge patch. */
export type Step = { readonly by: 'us' | 'others'; readonly patch: object };

/** The last step is archaware's, and must be refused; the ones before may be. */
export type Way = {
  readonly title: string;
  readonly kind: 'nodes' | 'daemonsets';
  readonly path: string;
  make(world: LiveWorld): Promise<void>;
  readonly steps: readonly Step[];
};

export const WAYS_NS = 'ways';
const RECORD = 'archaware.dev/tolerations';

const us = (patch: object): Step => ({ by: 'us', patch });
const others = (patch: object): Step => ({ by: 'others', patch });

type Taint = { readonly key: string; readonly value?: string; readonly effect: string };
const taint = (key: string, value?: string, effect = 'NoSchedule'): Taint => ({
  key,
  ...(value === undefined ? {} : { value }),
  effect,
});
const controlPlane = taint('node-role.kubernetes.io/control-plane');
const gpu = taint('dedicated', 'gpu');
const provided = taint('kubernetes.io/arch', 'amd64');
const label = 'accelerators/edgetpu';

const taints = (...list: readonly Taint[]) => ({ spec: { taints: list } });
const recorded = (record: object) => ({ metadata: { annotations: { [MANAGED]: JSON.stringify(record) } } });
const labelled = (value: string | null) => ({ metadata: { labels: { [label]: value } } });
const recordedAnd = (record: object, patch: { readonly metadata?: object; readonly spec?: object }) => ({
  ...patch,
  metadata: { ...recorded(record).metadata, ...patch.metadata },
});

let count = 0;

/** A node of amd64, or one that has not reported its architecture yet, with its taints. */
function onNode(title: string, present: readonly Taint[], steps: readonly Step[], architecture = 'amd64'): Way {
  const name = `way-${++count}`;
  const make = async ({ cluster, patch }: LiveWorld) => {
    await cluster.createNode({ name, architecture: 'amd64', taints: present });
    await patch('Node', '', name, { metadata: { annotations: { 'example.com/note': 'theirs' } } });
    if (architecture === '') await cluster.setNodeArchitecture(name, architecture);
  };
  return { title, kind: 'nodes', path: `/api/v1/nodes/${name}`, make, steps };
}

type Toleration = { readonly key: string; readonly value: string };
const entry = ({ key, value }: Toleration) => ({ key, operator: 'Equal', value, effect: 'NoSchedule' });
const ours = { key: 'supported-arch', value: 'amd64' };
const arm = { key: 'supported-arch', value: 'arm64' };
const provider = { key: 'kubernetes.io/arch', value: 'arm64' };
const template = (...list: readonly Toleration[]) => ({
  spec: { template: { spec: { tolerations: list.map(entry) } } },
});
const asList = (...list: readonly Toleration[]) => JSON.stringify(list.map(entry));
const withImages = (...list: readonly Toleration[]) =>
  JSON.stringify({ images: ['registry.example.com/app:1'], subject: '0123abcd4567cdef', tolerations: list.map(entry) });
const withPast = (list: readonly Toleration[], past: readonly Toleration[]) =>
  withImages(...list).replace('"subject"', () => {
    const texts = past.map(({ key, value }) => `${key}=${value}:NoSchedule`);
    return `"past":${JSON.stringify(texts)},"subject"`;
  });
const noted = (record: string) => ({ metadata: { annotations: { [RECORD]: record } } });

/** A DaemonSet whose template tolerates this, with archaware's record. */
function onSet(title: string, present: readonly Toleration[], record: string, steps: readonly Step[]): Way {
  const name = `way-${++count}`;
  const spec = { nodeSelector: { 'example.com/nowhere': 'yes' } };
  const made = daemonSet(WAYS_NS, name, {
    images: ['registry.example.com/app:1'],
    tolerations: present.map(entry),
    spec,
  });
  const object = { ...made, metadata: { ...made.metadata, annotations: { [RECORD]: record } } };
  const path = `/apis/apps/v1/namespaces/${WAYS_NS}/daemonsets/${name}`;
  return { title, kind: 'daemonsets', path, make: (world) => world.create(object), steps };
}

export const WAYS: readonly Way[] = [
  onNode(
    "record Kubernetes' taint with the architecture as its value, remove it",
    [controlPlane, gpu],
    [us(recorded({ taints: ['node-role.kubernetes.io/control-plane=amd64:NoSchedule'] })), us(taints(gpu))],
  ),
  onNode(
    "record another's key with the architecture as its value, remove the taint",
    [controlPlane, gpu],
    [us(recorded({ taints: ['dedicated=amd64:NoSchedule'] })), us(taints(controlPlane))],
  ),
  onNode(
    "record another's taint as it is, remove it",
    [controlPlane, gpu],
    [us(recorded({ taints: ['dedicated=gpu:NoSchedule'] })), us(taints(controlPlane))],
  ),
  onNode(
    "record another's taint as a label, remove it",
    [controlPlane, gpu],
    [us(recorded({ labels: ['dedicated=amd64:NoSchedule', 'dedicated=gpu:NoSchedule'] })), us(taints(controlPlane))],
  ),
  onNode(
    "put the architecture into another's taint and record that, remove it",
    [controlPlane, gpu],
    [
      us(recordedAnd({ taints: ['dedicated=amd64:NoSchedule'] }, taints(controlPlane, taint('dedicated', 'amd64')))),
      us(taints(controlPlane)),
    ],
  ),
  onNode(
    'record a key that nobody has, wait until somebody uses it, remove it',
    [controlPlane],
    [
      us(recorded({ taints: ['dedicated=amd64:NoSchedule'] })),
      others(taints(controlPlane, gpu)),
      us(taints(controlPlane)),
    ],
  ),
  onNode(
    'set a taint and record it, wait until somebody gives it another value, remove it',
    [controlPlane],
    [
      us(recordedAnd({ taints: ['dedicated=amd64:NoSchedule'] }, taints(controlPlane, taint('dedicated', 'amd64')))),
      others(taints(controlPlane, gpu)),
      us(taints(controlPlane)),
    ],
  ),
  onNode(
    'the same, and put the architecture back into it before it goes',
    [controlPlane],
    [
      us(recordedAnd({ taints: ['dedicated=amd64:NoSchedule'] }, taints(controlPlane, taint('dedicated', 'amd64')))),
      others(taints(controlPlane, gpu)),
      us(taints(controlPlane, taint('dedicated', 'amd64'))),
    ],
  ),
  onNode(
    "record the provider's taint of the architecture, remove it",
    [provided],
    [us(recorded({ taints: ['kubernetes.io/arch=amd64:NoSchedule'] })), us(taints())],
  ),
  onNode(
    "set the provider's taint first, remove it but for its record, wait until the provider sets it, remove it",
    [],
    [
      us(recordedAnd({ taints: ['kubernetes.io/arch=amd64:NoSchedule'] }, taints(provided))),
      us(taints()),
      others(taints(provided)),
      us(taints()),
    ],
  ),
  // A writer of the annotations of a node, such as its kubelet, claims what is another's.
  onNode(
    "take off another's taint that the kubelet recorded",
    [controlPlane, gpu],
    [others(recorded({ taints: ['dedicated=gpu:NoSchedule'] })), us(recordedAnd({ taints: [] }, taints(controlPlane)))],
  ),
  onNode(
    'take off a taint that evicts and that the kubelet recorded',
    [taint('quarantine', 'amd64', 'NoExecute')],
    [others(recorded({ taints: ['quarantine=amd64:NoExecute'] })), us(recordedAnd({ taints: [] }, taints()))],
  ),
  onNode(
    "take off Kubernetes' taint that the kubelet recorded",
    [taint('node-role.kubernetes.io/x', 'amd64')],
    [
      others(recorded({ taints: ['node-role.kubernetes.io/x=amd64:NoSchedule'] })),
      us(recordedAnd({ taints: [] }, taints())),
    ],
  ),
  onNode('remove a taint without a value before the architecture is known', [taint('dedicated')], [us(taints())], ''),
  onNode(
    'record a taint without a value before the architecture is known, remove it',
    [taint('dedicated')],
    [us(recorded({ taints: ['dedicated=:NoSchedule'] })), us(taints())],
    '',
  ),
  onNode(
    'set a label and record it, remove it but for its record, wait until somebody sets it, remove it',
    [],
    [
      us(recordedAnd({ labels: [label] }, labelled('true'))),
      us(labelled(null)),
      others(labelled('true')),
      us(labelled(null)),
    ],
  ),
  onNode(
    'record a label that nobody has, wait until somebody sets it, remove it',
    [],
    [us(recorded({ labels: [label] })), others(labelled('true')), us(labelled(null))],
  ),
  onSet("record its author's toleration like ours, remove it", [ours, arm], asList(ours), [
    us(noted(asList(ours, arm))),
    us(template(ours)),
  ]),
  onSet("record its author's toleration like ours with images, remove it", [ours, arm], withImages(ours), [
    us(noted(withImages(ours, arm))),
    us(template(ours)),
  ]),
  onSet("record its author's toleration of the provider's taint, remove it", [ours, provider], withImages(ours), [
    us(noted(withImages(ours, provider))),
    us(template(ours)),
  ]),
  onSet("list another's toleration of an architecture as the past, remove it", [ours, provider], withImages(ours), [
    us(noted(withPast([ours], [provider]))),
    us(template(ours)),
  ]),
  onSet('record one that nobody has, wait until its author adds it, remove it', [ours], asList(ours), [
    us(noted(asList(ours, arm))),
    others(template(ours, arm)),
    us(template(ours)),
  ]),
  onSet('remove ours but for its record, wait until the author adds it, remove it', [ours, arm], asList(arm), [
    us(template(ours)),
    others(template(ours, arm)),
    us(template(ours)),
  ]),
];
