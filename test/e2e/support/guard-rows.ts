/** What archaware's account may write, and what it must not, by object. The objects are made for it, and nothing is ever stored. */

import { daemonSet, type KubernetesObject, pod } from '../../support/workloads.ts';
import { type Attempt, add, part, remove, replace } from './account.ts';
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
const toleration = (value: unknown) => [add('/spec/tolerations/-', value)];

export const PODS_ALLOWED: readonly Attempt[] = [
  ['add our tolerations', PLAIN, [...toleration(own('amd64')), ...toleration(own('arm64'))]],
  [
    'add ours where ExtendedResourceToleration and PodTolerationRestriction add theirs',
    DEVICES,
    [...toleration(own('amd64')), ...toleration(plugged(DEVICE)), ...toleration(plugged(PRESSURE))],
  ],
  ['remove our annotation', PLAIN, [remove(managed)]],
  ['release a pod that holds our gate', HELD, [remove('/spec/schedulingGates/1')]],
  [
    'release it with affinity and tolerations',
    HELD,
    [
      remove('/spec/schedulingGates/1'),
      add(`${required}/0/matchExpressions/-`, onArch('amd64')),
      add(`${required}/0/matchExpressions/-`, isIn('kubernetes.io/os', 'linux')),
      add(`${preferred}/-`, liking(onArch('arm64'))),
      ...toleration(own('amd64')),
    ],
  ],
];

export const PODS_REFUSED: readonly Attempt[] = [
  ['tolerate a resource that the pod does not request', DEVICES, toleration(plugged('example.com/other'))],
  ['tolerate a resource of Kubernetes', DEVICES, toleration(plugged('cpu'))],
  ['tolerate a requested resource whatever the effect', DEVICES, toleration(plugged(DEVICE, { effect: '' }))],
  ['tolerate a requested resource with another effect', DEVICES, toleration(plugged(DEVICE, { effect: 'NoExecute' }))],
  [
    'tolerate a requested resource by a value',
    DEVICES,
    toleration(plugged(DEVICE, { operator: 'Equal', value: 'special' })),
  ],
  ['have a pod without requests tolerate memory pressure', PLAIN, toleration(plugged(PRESSURE))],
  ['have a pod tolerate disk pressure', DEVICES, toleration(plugged('node.kubernetes.io/disk-pressure'))],
  ['change an image', PLAIN, [replace('/spec/containers/0/image', 'registry.example.com/evil:1')]],
  ['add a foreign toleration', PLAIN, toleration({ ...foreign, key: 'other' })],
  ['add a toleration of everything', PLAIN, toleration({ operator: 'Exists' })],
  ['tolerate our taint whatever its value', PLAIN, toleration({ key: 'supported-arch', operator: 'Exists' })],
  ['tolerate our key with another effect', PLAIN, toleration(own('amd64', { effect: 'NoExecute' }))],
  ['tolerate a value that is not an architecture', PLAIN, toleration(own('AMD64'))],
  ['tolerate a name that Go does not have', PLAIN, toleration(own('evil-1'))],
  ['change how long a toleration lasts', PLAIN, [replace('/spec/tolerations/1/tolerationSeconds', 1)]],
  ['have a pod leave a node that flaps at once', PLAIN, toleration(away('not-ready', { tolerationSeconds: 0 }))],
  ['have it leave an unreachable node at once', PLAIN, toleration(away('unreachable', { tolerationSeconds: 0 }))],
  ['have it stay there longer', PLAIN, toleration(away('unreachable', { tolerationSeconds: 900 }))],
  ['have it stay there for ever', PLAIN, toleration(away('not-ready'))],
  [
    'tolerate a node that is away by its value',
    PLAIN,
    toleration({ ...away('not-ready'), operator: 'Equal', value: 'amd64' }),
  ],
  ['set a label', PLAIN, [add('/metadata/labels/evil', 'yes')]],
  ['change a label', PLAIN, [replace('/metadata/labels/app', 'other')]],
  ['set an annotation', PLAIN, [add('/metadata/annotations/evil', 'yes')]],
  ['change our annotation', PLAIN, [replace(managed, '{"tolerations":[]}')]],
  ['remove a foreign annotation', PLAIN, [remove(`/metadata/annotations/${part('example.com/note')}`)]],
  ['set a finalizer', PLAIN, [add('/metadata/finalizers', ['example.com/evil'])]],
  [
    'give it an owner',
    PLAIN,
    [add('/metadata/ownerReferences', [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: 'x' }])],
  ],
  ['limit its time', PLAIN, [add('/spec/activeDeadlineSeconds', 1)]],
  ["remove another's gate", OTHERS, [remove('/spec/schedulingGates')]],
  ["remove another's gate where ours is, too", HELD, [remove('/spec/schedulingGates/0')]],
  ['remove all gates', HELD, [remove('/spec/schedulingGates')]],
  ['narrow a pod that does not hold our gate', OTHERS, [add('/spec/affinity', { nodeAffinity })]],
  [
    'narrow by a foreign label',
    HELD,
    [add(`${required}/0/matchExpressions/-`, isIn('kubernetes.io/hostname', 'evil'))],
  ],
  [
    'narrow to what an architecture is not',
    HELD,
    [add(`${required}/0/matchExpressions/-`, { key: 'kubernetes.io/arch', operator: 'NotIn', values: ['amd64'] })],
  ],
  ['prefer by a foreign label', HELD, [add(`${preferred}/-`, liking(isIn('kubernetes.io/hostname', 'evil')))]],
  ['remove a preference', HELD, [remove(preferred)]],
  ['change a node selector', HELD, [add('/spec/nodeSelector/other', 'yes')]],
];

/** What the API server lets nobody do. */
export const PODS_IMPOSSIBLE: readonly Attempt[] = [
  ['remove a foreign toleration', PLAIN, [remove('/spec/tolerations/0')]],
  ['widen required affinity', HELD, [remove(`${required}/0/matchExpressions/0`)]],
  ['add a term of required affinity', HELD, [add(`${required}/-`, term(onArch('amd64')))]],
  [
    'add affinity to pods',
    HELD,
    [
      add('/spec/affinity/podAffinity', {
        requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'kubernetes.io/hostname' }],
      }),
    ],
  ],
];

const template = '/spec/template/spec';
const entry = (toleration: unknown) => JSON.stringify([toleration]);

const decidedOn = (tolerations: readonly unknown[], more: object = {}) =>
  JSON.stringify({ images: ['registry.example.com/app:1'], subject: '0a1bc2d3', ...more, tolerations });

/** The annotation that goes with the DaemonSet: the first one of its tolerations for archaware's taint is archaware's. */
export const RECORDED = { [NOTES]: entry(own('amd64')) };

/** The record as it has been since it names the images. */
const recordOf = (tolerations: readonly unknown[], images: readonly string[] = ['registry.example.com/app:1']) =>
  JSON.stringify({ images, subject: '0123abcd4567cdef', tolerations });

/** A record that lists these as the past. */
const pastOf = (tolerations: readonly unknown[], past: readonly string[]) =>
  JSON.stringify({ images: ['[::1]:5000/app:1'], past, subject: '0a1bc2d3', tolerations });
const text = (value: string) => `supported-arch=${value}:NoSchedule`;
const rolledOut = (rollout: string, tolerations: readonly unknown[]) =>
  JSON.stringify({ images: ['a:1'], subject: '0123abcd4567cdef', rollout, tolerations });

const ARCH = 'kubernetes.io/arch';
const requiring = (...matchExpressions: readonly object[]) => ({
  nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] } },
});
const requires = (architectures: string, tolerations: readonly unknown[]) =>
  JSON.stringify({ images: ['a:1'], subject: '0123abcd4567cdef', requires: architectures, tolerations });

export const SETS_ALLOWED: readonly Attempt[] = [
  [
    'record a toleration of our form that the template has',
    SET,
    [replace(notes, decidedOn([own('amd64'), own('arm64')]))],
  ],
  [
    'take our toleration back, and record it as the past',
    SET,
    [remove(`${template}/tolerations/1`), replace(notes, pastOf([], [text('amd64')]))],
  ],
  [
    'add our toleration, and record another one as the past',
    SET,
    [
      remove(`${template}/tolerations/1`),
      add(`${template}/tolerations/-`, own('s390x')),
      replace(notes, pastOf([own('s390x')], [text('amd64')])),
    ],
  ],
  [
    'record as the past all that it may have added once',
    SET,
    [replace(notes, pastOf([own('amd64')], ['386', 'riscv64', 's390x'].map(text)))],
  ],
  [
    'give up what it owns in managedFields',
    SET,
    [{ op: 'test', path: '/metadata/managedFields/0/operation', value: 'Update' }, remove('/metadata/managedFields/0')],
  ],
  ['record which images they are for', SET, [replace(notes, recordOf([own('amd64')]))]],
  ['record a guess, which is for no images', SET, [replace(notes, recordOf([own('amd64')], []))]],
  ['take our toleration back', SET, [remove(`${template}/tolerations/1`), remove(notes)]],
  [
    'add our toleration',
    SET,
    [add(`${template}/tolerations/-`, own('s390x')), replace(notes, JSON.stringify([own('amd64'), own('s390x')]))],
  ],
  [
    'take our toleration back, and record that it did',
    SET,
    [remove(`${template}/tolerations/1`), replace(notes, rolledOut('back 3', []))],
  ],
  [
    'require the architecture in node affinity, and record it',
    SET,
    [
      add(`${template}/affinity`, requiring({ key: ARCH, operator: 'In', values: ['amd64', 'arm64'] })),
      replace(notes, requires('amd64,arm64', [own('amd64')])),
    ],
  ],
  ['record which rollout it waits for', SET, [replace(notes, rolledOut('awaited 3', [own('amd64')]))]],
  ['record what it was decided on', SET, [replace(notes, decidedOn([own('amd64')]))]],
  [
    'add our toleration, and record what it was decided on',
    SET,
    [add(`${template}/tolerations/-`, own('s390x')), replace(notes, decidedOn([own('amd64'), own('s390x')]))],
  ],
];

export const SETS_REFUSED: readonly Attempt[] = [
  [
    'record a toleration of our form that the template does not have',
    SET,
    [replace(notes, decidedOn([own('amd64'), own('riscv64')]))],
  ],
  [
    'record one of our form that is there with another value',
    SET,
    [replace(notes, decidedOn([own('amd64'), { ...foreign, value: 'arm64' }]))],
  ],
  [
    'record as the past what nobody has, for a taint of Kubernetes',
    SET,
    [replace(notes, pastOf([own('amd64')], ['node-role.kubernetes.io/x=arm64:NoSchedule']))],
  ],
  ['record as the past what evicts', SET, [replace(notes, pastOf([own('amd64')], ['supported-arch=arm64:NoExecute']))]],
  [
    'record as the past what its author has, and remove it',
    SET,
    [remove(`${template}/tolerations/2`), replace(notes, pastOf([own('amd64')], [text('arm64')]))],
  ],
  [
    'record as the past a foreign toleration',
    SET,
    [replace(notes, pastOf([own('amd64')], ['dedicated=gpu:NoSchedule']))],
  ],
  [
    'require the architecture without recording it',
    SET,
    [add(`${template}/affinity`, requiring({ key: ARCH, operator: 'In', values: ['amd64'] }))],
  ],
  [
    'require another architecture than it records',
    SET,
    [
      add(`${template}/affinity`, requiring({ key: ARCH, operator: 'In', values: ['amd64'] })),
      replace(notes, requires('arm64', [own('amd64')])),
    ],
  ],
  [
    'require what is no architecture',
    SET,
    [
      add(`${template}/affinity`, requiring({ key: ARCH, operator: 'In', values: ['evil'] })),
      replace(notes, requires('evil', [own('amd64')])),
    ],
  ],
  [
    'require another label beside the architecture',
    SET,
    [
      add(
        `${template}/affinity`,
        requiring({ key: ARCH, operator: 'In', values: ['amd64'] }, { key: 'zone', operator: 'In', values: ['a'] }),
      ),
      replace(notes, requires('amd64', [own('amd64')])),
    ],
  ],
  [
    'set an affinity for pods beside it',
    SET,
    [
      add(`${template}/affinity`, {
        ...requiring({ key: ARCH, operator: 'In', values: ['amd64'] }),
        podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] },
        podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [] },
      }),
      replace(notes, requires('amd64', [own('amd64')])),
    ],
  ],
  ['change an image', SET, [replace(`${template}/containers/0/image`, 'registry.example.com/evil:1')]],
  ['add a container', SET, [add(`${template}/containers/-`, { name: 'evil', image: 'registry.example.com/evil:1' })]],
  ['make it privileged', SET, [add(`${template}/hostPID`, true)]],
  ['change its service account', SET, [add(`${template}/serviceAccountName`, 'evil')]],
  ['set a label of the template', SET, [add('/spec/template/metadata/labels/evil', 'yes')]],
  ['set an annotation of the template', SET, [add('/spec/template/metadata/annotations', { evil: 'yes' })]],
  ['add a foreign toleration', SET, [add(`${template}/tolerations/-`, { ...foreign, key: 'other' })]],
  ['add a toleration of everything', SET, [add(`${template}/tolerations/-`, { operator: 'Exists' })]],
  ['remove a foreign toleration', SET, [remove(`${template}/tolerations/0`)]],
  ["remove one like ours that is its author's", SET, [remove(`${template}/tolerations/2`)]],
  ['record one that is not there', SET, [replace(notes, decidedOn([own('amd64'), own('s390x')]))]],
  ['add our toleration without recording it', SET, [add(`${template}/tolerations/-`, own('s390x'))]],
  [
    'add a toleration of a name that Go does not have',
    SET,
    [add(`${template}/tolerations/-`, own('evil-1')), replace(notes, decidedOn([own('amd64'), own('evil-1')]))],
  ],
  ['remove our toleration but for its entry', SET, [remove(`${template}/tolerations/1`)]],
  ['record a foreign toleration as ours', SET, [replace(notes, entry(foreign))]],
  ['record a foreign toleration with images', SET, [replace(notes, recordOf([foreign]))]],
  [
    'record a foreign toleration as an image',
    SET,
    [replace(notes, recordOf([own('amd64')], [JSON.stringify(foreign)]))],
  ],
  ['record anything else of a rollout', SET, [replace(notes, rolledOut('whatever', [own('amd64')]))]],
  ['record more behind the images', SET, [replace(notes, `${recordOf([own('amd64')])} `)]],
  [
    'record something else than a hash as what it was decided on',
    SET,
    [replace(notes, recordOf([own('amd64')]).replace('0123abcd', 'x y'))],
  ],
  ['record a foreign toleration as ours, with what it was decided on', SET, [replace(notes, decidedOn([foreign]))]],
  ['record one outside of the list', SET, [replace(notes, decidedOn([own('amd64')], { extra: [own('s390x')] }))]],
  ['record one with more to it', SET, [replace(notes, `${entry(own('amd64'))},"x"`)]],
  ['set a label', SET, [add('/metadata/labels', { evil: 'yes' })]],
  ['set an annotation', SET, [add('/metadata/annotations/evil', 'yes')]],
  ['change how it is updated', SET, [replace('/spec/updateStrategy', { type: 'OnDelete' })]],
  ['change the node selector', SET, [add(`${template}/nodeSelector/other`, 'yes')]],
];

/** Two namespaces: only the people of the first one ask for a report. Each with what it is given before. */
export const SPACES: readonly (readonly [name: string, object: object])[] = [
  [NS, { metadata: { annotations: { 'archaware.dev/report': 'true', note: 'theirs' }, labels: { team: 'a' } } }],
  ['default', { metadata: { annotations: { 'archaware.dev/report-result': 'of before' } } }],
];
const SPACE = `/api/v1/namespaces/${NS}`;
const report = `/metadata/annotations/${part('archaware.dev/report-result')}`;

export const SPACES_ALLOWED: readonly Attempt[] = [
  ['report where it is asked for', SPACE, [add(report, '{"time":"now"}')]],
  ['take a report back', '/api/v1/namespaces/default', [remove(report)]],
];

export const SPACES_REFUSED: readonly Attempt[] = [
  ['report at length', SPACE, [add(report, 'x'.repeat(2_049))]],
  ['report where nobody asks', '/api/v1/namespaces/default', [add(report, '{"time":"now"}')]],
  [
    'ask for a report',
    '/api/v1/namespaces/default',
    [add(`/metadata/annotations/${part('archaware.dev/report')}`, 'true')],
  ],
  [
    'report and ask no more',
    SPACE,
    [add(report, '{}'), remove(`/metadata/annotations/${part('archaware.dev/report')}`)],
  ],
  ['set an annotation', SPACE, [add('/metadata/annotations/evil', 'yes')]],
  ['change an annotation', SPACE, [replace('/metadata/annotations/note', 'ours')]],
  ['remove an annotation', SPACE, [remove('/metadata/annotations/note')]],
  ['set a label', SPACE, [add(`/metadata/labels/${part('pod-security.kubernetes.io/enforce')}`, 'privileged')]],
  ['remove a label', SPACE, [remove('/metadata/labels/team')]],
  ['set a finalizer', SPACE, [add('/metadata/finalizers', ['example.com/evil'])]],
];
