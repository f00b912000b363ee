/** What archaware's account may write to a node, and what it must not. Nothing is ever stored. */
import { type Attempt, add, on, part, remove, replace } from './account.ts';
import { MANAGED } from './placed.ts';

const NODE = '/api/v1/nodes/amd64-1';
const managed = `/metadata/annotations/${part(MANAGED)}`;
const label = (name: string) => `/metadata/labels/${part(name)}`;

const foreign = { key: 'dedicated', value: 'gpu', effect: 'PreferNoSchedule' };
const ours = { key: 'supported-arch', value: 'amd64', effect: 'NoSchedule' };
const earlier = { key: 'old.example.com/arch', value: 'amd64', effect: 'NoSchedule' };
const TAINTS = ['supported-arch=amd64:NoSchedule', 'old.example.com/arch=amd64:NoSchedule'];
const LABELS = ['accelerators/ncs2'];
const record = (taints: readonly string[], labels: readonly string[]) => JSON.stringify({ taints, labels });

/** The node as it is, as a merge patch. */
export const NODE_AS_IT_IS = {
  metadata: {
    annotations: { [MANAGED]: record(TAINTS, LABELS), 'example.com/note': 'theirs' },
    labels: { 'accelerators/ncs2': 'true', 'accelerators/theirs': 'true', pool: 'a' },
  },
  spec: { taints: [foreign, ours, earlier] },
};

const taints = (...list: readonly unknown[]) => [replace('/spec/taints', list)];

/** A taint of another key with this value, recorded in the same request. */
const setting = (key: string, value = 'amd64', effect = 'NoSchedule') => [
  ...taints(foreign, ours, earlier, { key, value, effect }),
  replace(managed, record([...TAINTS, `${key}=${value}:${effect}`], LABELS)),
];

const claim = (name: string, value = 'true') => [
  add(label(name), value),
  replace(managed, record(TAINTS, [...LABELS, name])),
];

/** What is allowed only where no domain of labels is named. */
export const NODES_ALLOWED_WITHOUT_DOMAINS: readonly Attempt[] = on(NODE, [
  'set a label for which there are no rules',
  ...claim('example.com/pool'),
]);

/** What is allowed only where no key is named. */
export const NODES_ALLOWED_BY_FORM: readonly Attempt[] = on(
  NODE,
  ['set our taint under a new key', ...setting('new.example.com/arch')],
  ["set the provider's taint where there is none", ...setting('kubernetes.io/arch')],
);

export const NODES_ALLOWED: readonly Attempt[] = on(
  NODE,
  ['take all back', ...taints(foreign), remove(managed), remove(label('accelerators/ncs2'))],
  ['take an earlier key back', ...taints(foreign, ours), replace(managed, record(TAINTS.slice(0, 1), LABELS))],
  ['leave the taint to another writer', replace(managed, record([], LABELS))],
  [
    'set our label',
    add(label('accelerators/edgetpu'), 'true'),
    replace(managed, record(TAINTS, ['accelerators/edgetpu', ...LABELS])),
  ],
);

export const NODES_REFUSED: readonly Attempt[] = on(
  NODE,
  ['set a foreign taint', ...taints(foreign, ours, earlier, { ...foreign, key: 'evil' })],
  ['remove a foreign taint', ...taints(ours, earlier)],
  ['change a foreign taint', ...taints({ ...foreign, value: 'cpu' }, ours, earlier)],
  ['set our taint with another effect', ...taints(foreign, ours, earlier, { ...ours, effect: 'NoExecute' })],
  ['set our taint for another architecture', ...taints(foreign, { ...ours, value: 'arm64' }, earlier)],
  ['set a taint under an earlier key', ...taints(foreign, ours, { ...earlier, value: 'arm64' })],
  ['set a taint of Kubernetes', ...setting('node.kubernetes.io/unschedulable')],
  ['set a taint that would evict', ...setting('new.example.com/arch', 'amd64', 'NoExecute')],
  ['remove our taint but for its entry', ...taints(foreign, earlier)],
  ['remove our label but for its entry', remove(label('accelerators/ncs2'))],
  ['record a taint that is not there', replace(managed, record([...TAINTS, 'a.example.com=amd64:NoSchedule'], LABELS))],
  ['record a foreign taint as ours', replace(managed, record(['dedicated=gpu:PreferNoSchedule'], LABELS))],
  ["record another's label as ours", replace(managed, record(TAINTS, ['accelerators/theirs']))],
  ['record a label that is not there', replace(managed, record(TAINTS, ['accelerators/none']))],
  ['change a label', replace(label('pool'), 'b')],
  ['remove a label', remove(label('pool'))],
  ['remove a label that was there before us', remove(label('accelerators/theirs'))],
  ['set our label without recording it', add(label('accelerators/edgetpu'), 'true')],
  ['set our label to something else', ...claim('accelerators/edgetpu', 'yes')],
  ['change our label', replace(label('accelerators/ncs2'), 'false')],
  ['set a label without a domain', ...claim('accelerators')],
  ['set a label of Kubernetes', ...claim('node-role.kubernetes.io/control-plane')],
  ['set an annotation', add('/metadata/annotations/evil', 'yes')],
  ['remove an annotation', remove(`/metadata/annotations/${part('example.com/note')}`)],
  ['set a finalizer', add('/metadata/finalizers', ['example.com/evil'])],
  ['cordon it', add('/spec/unschedulable', true)],
);
