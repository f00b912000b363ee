/** What archaware's account may write, and what it must not, by object. The objects are made for it, and nothing is ever stored. */

import { daemonSet, type KubernetesObject, pod } from '../../support/workloads.ts';
import { type Attempt, add, on, part, remove, replace } from './account.ts';
import { GATE, isIn, MANAGED, onArch } from './placed.ts';

export const NS = 'guarded';
const PLAIN = `/api/v1/namespaces/${NS}/pods/plain`;
const HELD = `/api/v1/namespaces/${NS}/pods/held`;
const DEVICES = `/api/v1/namespaces/${NS}/pods/devices`;
const OTHERS = `/api/v1/namespaces/${NS}/pods/of-others`;
const SET = `/apis/apps/v1/namespaces/${NS}/daemonsets/agent`;

export const NOTES = 'archaware.dev/tolerations';
const managed = `/metadata/annotations/${part(MANAGED)}`;
const notes = `/metadata/annotations/${part(NOTES)}`;
export const own = (value: string, more: object = {}) => ({
  key: 'supported-arch',
  operator: 'Equal',
  value,
  effect: 'NoSchedule',
  ...more,
});
const foreign = { key: 'dedicated', operator: 'Equal', value: 'gpu', effect: 'NoSchedule' };

const zone = isIn('example.com/zone', 'a');
const term = (expression: unknown) => ({ matchExpressions: [expression] });
export const liking = (expression: unknown) => ({ weight: 10, preference: term(expression) });
const nowhere = { nodeSelector: { 'example.com/nowhere': 'yes' } };
const images = ['registry.example.com/app:1'];
const others = 'example.com/others';
const annotations = { [MANAGED]: '{"tolerations":[],"required":[],"preferred":[]}', 'example.com/note': 'theirs' };
const nodeAffinity = {
  requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term(zone)] },
  preferredDuringSchedulingIgnoredDuringExecution: [liking(zone)],
};

/** How long a pod stays on a node that is away; the admission plug-in DefaultTolerationSeconds gives every pod two of these. */
export const away = (name: string, more: object = {}) => ({
  key: `node.kubernetes.io/${name}`,
  operator: 'Exists',
  effect: 'NoExecute',
  ...more,
});

export const STAYS = ['not-ready', 'unreachable'].map((name) => away(name, { tolerationSeconds: 300 }));

/** As the admission plug-ins ExtendedResourceToleration and PodTolerationRestriction write them. */
const plugged = (key: string, more: object = {}) => ({ key, operator: 'Exists', effect: 'NoSchedule', ...more });
const DEVICE = 'example.com/device';
const PRESSURE = 'node.kubernetes.io/memory-pressure';
const devices = { requests: { [DEVICE]: '1', cpu: '100m' }, limits: { [DEVICE]: '1' } };

/** What is there. */
export const OBJECTS: readonly KubernetesObject[] = [
  pod(NS, 'plain', { images, annotations, tolerations: [foreign, ...STAYS], spec: nowhere }),
  pod(NS, 'held', {
    images,
    tolerations: [foreign],
    spec: { ...nowhere, schedulingGates: [{ name: others }, { name: GATE }], affinity: { nodeAffinity } },
  }),
  pod(NS, 'devices', {
    images: [],
    tolerations: [foreign],
    spec: { ...nowhere, containers: [{ name: 'c', image: 'registry.example.com/app:1', resources: devices }] },
  }),
  pod(NS, 'of-others', { images, spec: { schedulingGates: [{ name: others }] } }),
  daemonSet(NS, 'agent', { images, tolerations: [foreign, own('amd64'), own('arm64')], spec: nowhere }),
];

const required = '/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms';
const preferred = '/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution';
const toleration = (value: unknown) => add('/spec/tolerations/-', value);

export const PODS_ALLOWED: readonly Attempt[] = [
  ...on(
    PLAIN,
    ['add our tolerations', toleration(own('amd64')), toleration(own('arm64'))],
    ['remove our annotation', remove(managed)],
  ),
  ...on(DEVICES, [
    'add ours where ExtendedResourceToleration and PodTolerationRestriction add theirs',
    toleration(own('amd64')),
    toleration(plugged(DEVICE)),
    toleration(plugged(PRESSURE)),
  ]),
  ...on(
    HELD,
    ['release a pod that holds our gate', remove('/spec/schedulingGates/1')],
    [
      'release it with affinity and tolerations',
      remove('/spec/schedulingGates/1'),
      add(`${required}/0/matchExpressions/-`, onArch('amd64')),
      add(`${required}/0/matchExpressions/-`, isIn('kubernetes.io/os', 'linux')),
      add(`${preferred}/-`, liking(onArch('arm64'))),
      toleration(own('amd64')),
    ],
  ),
];

export const PODS_REFUSED: readonly Attempt[] = [
  ...on(
    DEVICES,
    ['tolerate a resource that the pod does not request', toleration(plugged('example.com/other'))],
    ['tolerate a resource of Kubernetes', toleration(plugged('cpu'))],
    ['tolerate a requested resource whatever the effect', toleration(plugged(DEVICE, { effect: '' }))],
    ['tolerate a requested resource with another effect', toleration(plugged(DEVICE, { effect: 'NoExecute' }))],
    ['tolerate a requested resource by a value', toleration(plugged(DEVICE, { operator: 'Equal', value: 'special' }))],
    ['have a pod tolerate disk pressure', toleration(plugged('node.kubernetes.io/disk-pressure'))],
  ),
  ...on(
    PLAIN,
    ['have a pod without requests tolerate memory pressure', toleration(plugged(PRESSURE))],
    ['change an image', replace('/spec/containers/0/image', 'registry.example.com/evil:1')],
    ['add a foreign toleration', toleration({ ...foreign, key: 'other' })],
    ['add a toleration of everything', toleration({ operator: 'Exists' })],
    ['tolerate our taint whatever its value', toleration({ key: 'supported-arch', operator: 'Exists' })],
    ['tolerate our key with another effect', toleration(own('amd64', { effect: 'NoExecute' }))],
    ['tolerate a value that is not an architecture', toleration(own('AMD64'))],
    ['tolerate a name that Go does not have', toleration(own('evil-1'))],
    ['change how long a toleration lasts', replace('/spec/tolerations/1/tolerationSeconds', 1)],
    ['have a pod leave a node that flaps at once', toleration(away('not-ready', { tolerationSeconds: 0 }))],
    ['have it leave an unreachable node at once', toleration(away('unreachable', { tolerationSeconds: 0 }))],
    ['have it stay there longer', toleration(away('unreachable', { tolerationSeconds: 900 }))],
    ['have it stay there for ever', toleration(away('not-ready'))],
    [
      'tolerate a node that is away by its value',
      toleration({ ...away('not-ready'), operator: 'Equal', value: 'amd64' }),
    ],
    ['set a label', add('/metadata/labels/evil', 'yes')],
    ['change a label', replace('/metadata/labels/app', 'other')],
    ['set an annotation', add('/metadata/annotations/evil', 'yes')],
    ['change our annotation', replace(managed, '{"tolerations":[]}')],
    ['remove a foreign annotation', remove(`/metadata/annotations/${part('example.com/note')}`)],
    ['set a finalizer', add('/metadata/finalizers', ['example.com/evil'])],
    ['give it an owner', add('/metadata/ownerReferences', [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: 'x' }])],
    ['limit its time', add('/spec/activeDeadlineSeconds', 1)],
  ),
  ...on(
    OTHERS,
    ["remove another's gate", remove('/spec/schedulingGates')],
    ['narrow a pod that does not hold our gate', add('/spec/affinity', { nodeAffinity })],
  ),
  ...on(
    HELD,
    ["remove another's gate where ours is, too", remove('/spec/schedulingGates/0')],
    ['remove all gates', remove('/spec/schedulingGates')],
    ['narrow by a foreign label', add(`${required}/0/matchExpressions/-`, isIn('kubernetes.io/hostname', 'evil'))],
    [
      'narrow to what an architecture is not',
      add(`${required}/0/matchExpressions/-`, { key: 'kubernetes.io/arch', operator: 'NotIn', values: ['amd64'] }),
    ],
    ['prefer by a foreign label', add(`${preferred}/-`, liking(isIn('kubernetes.io/hostname', 'evil')))],
    ['remove a preference', remove(preferred)],
    ['change a node selector', add('/spec/nodeSelector/other', 'yes')],
  ),
];

/** What the API server lets nobody do. */
export const PODS_IMPOSSIBLE: readonly Attempt[] = [
  ...on(PLAIN, ['remove a foreign toleration', remove('/spec/tolerations/0')]),
  ...on(
    HELD,
    ['widen required affinity', remove(`${required}/0/matchExpressions/0`)],
    ['add a term of required affinity', add(`${required}/-`, term(onArch('amd64')))],
    [
      'add affinity to pods',
      add('/spec/affinity/podAffinity', {
        requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'kubernetes.io/hostname' }],
      }),
    ],
  ),
];

const template = '/spec/template/spec';
const entry = (toleration: unknown) => JSON.stringify([toleration]);

const decidedOn = (tolerations: readonly unknown[], more: object = {}) =>
  JSON.stringify({ images: ['registry.example.com/app:1'], subject: '0a1bc2d3', ...more, tolerations });

/** The annotation that goes with the DaemonSet: the first one of its tolerations for archaware's taint is archaware's. */
export const RECORDED = { [NOTES]: entry(own('amd64')) };

/** A record that lists these as the past. */
const pastOf = (tolerations: readonly unknown[], past: readonly string[]) =>
  JSON.stringify({ images: ['[::1]:5000/app:1'], past, subject: '0a1bc2d3', tolerations });
const text = (value: string) => `supported-arch=${value}:NoSchedule`;
const rolledOut = (rollout: string, tolerations: readonly unknown[]) =>
  JSON.stringify({ images: ['a:1'], subject: '0123abcd4567cdef', rollout, tolerations });

const requiring = (...matchExpressions: readonly object[]) => ({
  nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] } },
});
const requires = (architectures: string, tolerations: readonly unknown[]) =>
  JSON.stringify({ images: ['a:1'], subject: '0123abcd4567cdef', requires: architectures, tolerations });

const noted = (record: string) => replace(notes, record);
const tolerating = (toleration: unknown) => add(`${template}/tolerations/-`, toleration);
const untolerating = (index: number) => remove(`${template}/tolerations/${index}`);
const affine = (affinity: object) => add(`${template}/affinity`, affinity);

export const SETS_ALLOWED: readonly Attempt[] = on(
  SET,
  ['record a toleration of our form that the template has', noted(decidedOn([own('amd64'), own('arm64')]))],
  ['take our toleration back, and record it as the past', untolerating(1), noted(pastOf([], [text('amd64')]))],
  [
    'add our toleration, and record another one as the past',
    untolerating(1),
    tolerating(own('s390x')),
    noted(pastOf([own('s390x')], [text('amd64')])),
  ],
  [
    'record as the past all that it may have added once',
    noted(pastOf([own('amd64')], ['386', 'riscv64', 's390x'].map(text))),
  ],
  [
    'give up what it owns in managedFields',
    { op: 'test', path: '/metadata/managedFields/0/operation', value: 'Update' },
    remove('/metadata/managedFields/0'),
  ],
  ['record a guess, which is for no images', noted(decidedOn([own('amd64')], { images: [] }))],
  ['take our toleration back', untolerating(1), remove(notes)],
  ['add our toleration', tolerating(own('s390x')), noted(JSON.stringify([own('amd64'), own('s390x')]))],
  ['take our toleration back, and record that it did', untolerating(1), noted(rolledOut('back 3', []))],
  [
    'require the architecture in node affinity, and record it',
    affine(requiring(onArch('amd64', 'arm64'))),
    noted(requires('amd64,arm64', [own('amd64')])),
  ],
  ['record which rollout it waits for', noted(rolledOut('awaited 3', [own('amd64')]))],
  ['record what it was decided on', noted(decidedOn([own('amd64')]))],
  [
    'add our toleration, and record what it was decided on',
    tolerating(own('s390x')),
    noted(decidedOn([own('amd64'), own('s390x')])),
  ],
);

export const SETS_REFUSED: readonly Attempt[] = on(
  SET,
  ['record a toleration of our form that the template does not have', noted(decidedOn([own('amd64'), own('riscv64')]))],
  [
    'record one of our form that is there with another value',
    noted(decidedOn([own('amd64'), { ...foreign, value: 'arm64' }])),
  ],
  [
    'record as the past what nobody has, for a taint of Kubernetes',
    noted(pastOf([own('amd64')], ['node-role.kubernetes.io/x=arm64:NoSchedule'])),
  ],
  ['record as the past what evicts', noted(pastOf([own('amd64')], ['supported-arch=arm64:NoExecute']))],
  [
    'record as the past what its author has, and remove it',
    untolerating(2),
    noted(pastOf([own('amd64')], [text('arm64')])),
  ],
  ['record as the past a foreign toleration', noted(pastOf([own('amd64')], ['dedicated=gpu:NoSchedule']))],
  ['require the architecture without recording it', affine(requiring(onArch('amd64')))],
  [
    'require another architecture than it records',
    affine(requiring(onArch('amd64'))),
    noted(requires('arm64', [own('amd64')])),
  ],
  ['require what is no architecture', affine(requiring(onArch('evil'))), noted(requires('evil', [own('amd64')]))],
  [
    'require another label beside the architecture',
    add(`${template}/affinity`, requiring(onArch('amd64'), isIn('zone', 'a'))),
    noted(requires('amd64', [own('amd64')])),
  ],
  [
    'set an affinity for pods beside it',
    affine({
      ...requiring(onArch('amd64')),
      podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] },
      podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [] },
    }),
    noted(requires('amd64', [own('amd64')])),
  ],
  ['change an image', replace(`${template}/containers/0/image`, 'registry.example.com/evil:1')],
  ['add a container', add(`${template}/containers/-`, { name: 'evil', image: 'registry.example.com/evil:1' })],
  ['make it privileged', add(`${template}/hostPID`, true)],
  ['change its service account', add(`${template}/serviceAccountName`, 'evil')],
  ['set a label of the template', add('/spec/template/metadata/labels/evil', 'yes')],
  ['set an annotation of the template', add('/spec/template/metadata/annotations', { evil: 'yes' })],
  ['add a foreign toleration', tolerating({ ...foreign, key: 'other' })],
  ['add a toleration of everything', tolerating({ operator: 'Exists' })],
  ['remove a foreign toleration', untolerating(0)],
  ["remove one like ours that is its author's", untolerating(2)],
  ['record one that is not there', noted(decidedOn([own('amd64'), own('s390x')]))],
  ['add our toleration without recording it', tolerating(own('s390x'))],
  [
    'add a toleration of a name that Go does not have',
    tolerating(own('evil-1')),
    noted(decidedOn([own('amd64'), own('evil-1')])),
  ],
  ['remove our toleration but for its entry', untolerating(1)],
  ['record a foreign toleration as ours', noted(entry(foreign))],
  ['record a foreign toleration as an image', noted(decidedOn([own('amd64')], { images: [JSON.stringify(foreign)] }))],
  ['record anything else of a rollout', noted(rolledOut('whatever', [own('amd64')]))],
  ['record more behind the images', noted(`${decidedOn([own('amd64')])} `)],
  ['record something else than a hash as what it was decided on', noted(decidedOn([own('amd64')], { subject: 'x y' }))],
  ['record a foreign toleration as ours, with what it was decided on', noted(decidedOn([foreign]))],
  ['record one outside of the list', noted(decidedOn([own('amd64')], { extra: [own('s390x')] }))],
  ['record one with more to it', noted(`${entry(own('amd64'))},"x"`)],
  ['set a label', add('/metadata/labels', { evil: 'yes' })],
  ['set an annotation', add('/metadata/annotations/evil', 'yes')],
  ['change how it is updated', replace('/spec/updateStrategy', { type: 'OnDelete' })],
  ['change the node selector', add(`${template}/nodeSelector/other`, 'yes')],
);

/** Two namespaces: only the people of the first one ask for a report. Each with what it is given before. */
export const SPACES: readonly (readonly [name: string, object: object])[] = [
  [NS, { metadata: { annotations: { 'archaware.dev/report': 'true', note: 'theirs' }, labels: { team: 'a' } } }],
  ['default', { metadata: { annotations: { 'archaware.dev/report-result': 'of before' } } }],
];
const SPACE = `/api/v1/namespaces/${NS}`;
const report = `/metadata/annotations/${part('archaware.dev/report-result')}`;

export const SPACES_ALLOWED: readonly Attempt[] = [
  ...on(SPACE, ['report where it is asked for', add(report, '{"time":"now"}')]),
  ...on('/api/v1/namespaces/default', ['take a report back', remove(report)]),
];

export const SPACES_REFUSED: readonly Attempt[] = [
  ...on(
    SPACE,
    ['report at length', add(report, 'x'.repeat(2_049))],
    ['report and ask no more', add(report, '{}'), remove(`/metadata/annotations/${part('archaware.dev/report')}`)],
    ['set an annotation', add('/metadata/annotations/evil', 'yes')],
    ['change an annotation', replace('/metadata/annotations/note', 'ours')],
    ['remove an annotation', remove('/metadata/annotations/note')],
    ['set a label', add(`/metadata/labels/${part('pod-security.kubernetes.io/enforce')}`, 'privileged')],
    ['remove a label', remove('/metadata/labels/team')],
    ['set a finalizer', add('/metadata/finalizers', ['example.com/evil'])],
  ),
  ...on(
    '/api/v1/namespaces/default',
    ['report where nobody asks', add(report, '{"time":"now"}')],
    ['ask for a report', add(`/metadata/annotations/${part('archaware.dev/report')}`, 'true')],
  ),
];
