import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import { cleanPod } from '../../../src/placement/clean/cleaned.ts';
import { createFitting, laterNodes, templateDemands } from '../../../src/placement/clean/successor.ts';
import { readNode } from '../../../src/placement/nodes/node.ts';
import { readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import { toleration } from '../objects.ts';

const OURS = toleration('supported-arch=arm64:NoSchedule');
const OLD = toleration('arch=arm64:NoSchedule');
const KEYS = [
  { key: 'supported-arch', effect: 'NoSchedule' },
  { key: 'arch', effect: 'NoSchedule' },
];
const WRITTEN = [wrote('archaware-controller')];

/** An entry of `metadata.managedFields` about these fields of a pod's spec. */
function wrote(manager: string, fields: JsonObject = { 'f:tolerations': {} }): JsonObject {
  return { manager, operation: 'Update', fieldsType: 'FieldsV1', fieldsV1: { 'f:spec': fields } };
}

type Given = {
  owner?: string;
  apiVersion?: string;
  controls?: boolean;
  tolerations?: readonly JsonObject[];
  managedFields?: readonly JsonObject[] | string;
  metadata?: JsonObject;
  phase?: string;
  /** The tolerations of its DaemonSet's template; undefined: the DaemonSet does not exist any more. */
  template?: readonly JsonObject[];
  /** Whether the rollout of that DaemonSet is complete. */
  rolledOut?: boolean;
  strategy?: string;
  /** More fields of the pod's spec, or of the template's. */
  spec?: JsonObject;
  /** The nodes, by name; default: one that runs every image. */
  nodes?: Readonly<Record<string, JsonObject>>;
};

const TAINTS = {
  manage: true,
  key: 'supported-arch',
  effect: 'NoSchedule',
  nodeSelector: [],
} as const;
/** Nodes of two architectures, tainted by archaware. */
const MIXED = { amd64: {}, arm64: {} };

function nodesOf(nodes: Readonly<Record<string, JsonObject>>) {
  const objects = Object.entries(nodes).map(([name, { labels = {}, annotations = {}, taints = [], ...rest }]) => {
    const architecture = name.split('-')[0] ?? '';
    const own = { key: TAINTS.key, value: architecture, effect: TAINTS.effect };
    return readNode({
      metadata: { name, labels: { 'kubernetes.io/arch': architecture, ...Object(labels) }, annotations, ...rest },
      spec: { ...rest, taints: [own, ...(Array.isArray(taints) ? taints : [])] },
      status: { nodeInfo: { architecture } },
    });
  });
  return laterNodes(objects, TAINTS);
}

function undo(given: Given) {
  const {
    owner,
    apiVersion,
    controls = true,
    tolerations = [OURS],
    managedFields = WRITTEN,
    metadata = {},
    phase,
  } = given;
  const reference = { kind: owner, apiVersion, name: 'o', uid: 'd1', controller: controls };
  const ownerReferences = owner === undefined ? [] : [reference];
  const spec = { tolerations, ...(given.template === undefined ? given.spec : {}) };
  const pod = { metadata: { ownerReferences, managedFields, ...metadata }, spec, status: { phase } };
  return cleanPod(pod, {
    keys: KEYS,
    daemonSetOf: (uid) => (uid === 'd1' ? daemonSetOf(given) : undefined),
    fitting: createFitting(nodesOf(given.nodes ?? { arm64: {} })),
  });
}

function daemonSetOf({ template, rolledOut = false, strategy, spec }: Given) {
  if (template === undefined) return undefined;
  const object = {
    metadata: { generation: 2 },
    spec: { updateStrategy: { type: strategy }, template: { spec: { tolerations: template, ...spec } } },
    status: { observedGeneration: rolledOut ? 2 : 1 },
  };
  return { daemonSet: readDaemonSet(object), demands: templateDemands(object) };
}

const AMD = toleration('supported-arch=amd64:NoSchedule');
const ON_ARM = { nodeSelector: { 'kubernetes.io/arch': 'arm64' } };
/** A required node affinity with one term of these expressions. */
const requiring = (...matchExpressions: JsonObject[]) => ({
  affinity: {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] } },
  },
});
const ARM_REQUIRED = { key: 'kubernetes.io/arch', operator: 'In', values: ['arm64'] };
const POOL = { key: 'pool', operator: 'In', values: ['arm'] };
/** The record that admission left. */
const recorded = (required: readonly JsonObject[], tolerations: readonly JsonObject[] = [OURS]) => ({
  annotations: { 'archaware.dev/managed': JSON.stringify({ tolerations, required, preferred: [] }) },
});
const DEDICATED = { key: 'dedicated', value: 'gpu', effect: 'NoSchedule' };
const WRONG = 'keep: a new pod could start on a node of amd64, for which its images have no build';
const WRONG_SET =
  'keep: its DaemonSet also starts pods on nodes of amd64, for which its images have no build, so its rollout may stop before it replaces this pod';
const NOWHERE = 'keep: no node would fit a new pod';

describe("what clean does about a pod with archaware's tolerations", () => {
  const rows: [given: string, what: Given, expected: string][] = [
    ['of a ReplicaSet', { owner: 'ReplicaSet' }, 'replace'],
    ['of a StatefulSet', { owner: 'StatefulSet' }, 'replace'],
    ['of a ReplicationController', { owner: 'ReplicationController' }, 'replace'],
    ['of a Job', { owner: 'Job' }, 'leave: its Job would count it as failed'],
    [
      'of a StatefulSet of another API group',
      { owner: 'StatefulSet', apiVersion: 'apps.kruise.io/v1beta1' },
      'leave: owned by a StatefulSet.apps.kruise.io, which may not bring it back',
    ],
    ['of a StatefulSet of its own API group', { owner: 'StatefulSet', apiVersion: 'apps/v1' }, 'replace'],
    [
      'of a ReplicationController of its own API group',
      { owner: 'ReplicationController', apiVersion: 'v1' },
      'replace',
    ],
    [
      'of a DaemonSet of another API group',
      { owner: 'DaemonSet', apiVersion: 'apps.kruise.io/v1alpha1', template: [] },
      'leave: owned by a DaemonSet.apps.kruise.io, which may not bring it back',
    ],
    ['of something else', { owner: 'Workflow' }, 'leave: owned by a Workflow, which may not bring it back'],
    ['bare', {}, 'leave: bare pod: nothing would bring it back'],
    [
      'owned without being controlled',
      { owner: 'ReplicaSet', controls: false },
      'leave: bare pod: nothing would bring it back',
    ],
    ['under a key of before', { owner: 'ReplicaSet', tolerations: [OLD] }, 'replace'],
    ['that runs', { owner: 'ReplicaSet', phase: 'Running' }, 'replace'],
    ['that has succeeded', { owner: 'ReplicaSet', phase: 'Succeeded' }, 'none'],
    ['that has failed', { owner: 'ReplicaSet', phase: 'Failed' }, 'none'],
    ['that is being deleted', { owner: 'ReplicaSet', metadata: { deletionTimestamp: 'x' } }, 'none'],

    ['without tolerations', { owner: 'ReplicaSet', tolerations: [] }, 'none'],
    ['under a key that nobody remembers', { owner: 'ReplicaSet', tolerations: [{ ...OURS, key: 'other' }] }, 'replace'],
    [
      'under the effect PreferNoSchedule',
      { owner: 'ReplicaSet', tolerations: [{ ...OURS, effect: 'PreferNoSchedule' }] },
      'replace',
    ],
    ['that names no architecture', { owner: 'ReplicaSet', tolerations: [{ ...OURS, value: 'A B' }] }, 'none'],
    ['under another effect', { owner: 'ReplicaSet', tolerations: [{ ...OURS, effect: 'NoExecute' }] }, 'none'],
    ['in another form', { owner: 'ReplicaSet', tolerations: [{ key: OURS.key, operator: 'Exists' }] }, 'none'],
    ["of its author's own", { owner: 'ReplicaSet', managedFields: [wrote('kubectl')] }, 'none'],
    ['of nobody that is known', { owner: 'ReplicaSet', managedFields: [] }, 'none'],
    [
      'that we wrote, but other fields of it',
      { owner: 'ReplicaSet', managedFields: [wrote('archaware-controller', { 'f:affinity': {} })] },
      'none',
    ],
    ['that others also wrote', { owner: 'ReplicaSet', managedFields: [wrote('kubectl'), ...WRITTEN] }, 'replace'],
    [
      'whose managed fields are text',
      {
        owner: 'ReplicaSet',
        managedFields: [{ manager: 'archaware-controller', fieldsV1: '{"f:spec":{"f:tolerations":{}}}' }],
      },
      'replace',
    ],
    ['whose managed fields are no list', { owner: 'ReplicaSet', managedFields: 'x' }, 'none'],
    [
      'whose managed fields are odd',
      { owner: 'ReplicaSet', managedFields: [{}, { manager: 'archaware-controller', fieldsV1: '{' }, { manager: 1 }] },
      'none',
    ],

    ['of a DaemonSet that is restored', { owner: 'DaemonSet', template: [] }, 'rolls'],
    ['of a DaemonSet, no matter who wrote it', { owner: 'DaemonSet', template: [], managedFields: [] }, 'rolls'],
    ['of a DaemonSet whose author wants it', { owner: 'DaemonSet', template: [OURS] }, 'none'],
    [
      'of a DaemonSet whose author wants one of two',
      { owner: 'DaemonSet', template: [OURS], tolerations: [OURS, OLD] },
      'rolls',
    ],
    ['of a DaemonSet that is gone', { owner: 'DaemonSet' }, 'none'],
    ['of a DaemonSet that has rolled without it', { owner: 'DaemonSet', template: [], rolledOut: true }, 'replace'],
    [
      'of a DaemonSet that replaces none by itself',
      { owner: 'DaemonSet', template: [], strategy: 'OnDelete' },
      'leave: its DaemonSet replaces pods only when they are deleted',
    ],
  ];
  for (const [given, what, expected] of rows) {
    it(`${given}: ${expected}`, () => {
      const decided = undo(what);
      expect('reason' in decided ? `${decided.kind}: ${decided.reason}` : decided.kind).to.equal(expected);
    });
  }
});

describe('what clean does about a pod whose images do not run everywhere', () => {
  const rows: [given: string, what: Given, expected: string][] = [
    ['runs on all architectures of the cluster', { nodes: MIXED, tolerations: [AMD, OURS] }, 'replace'],
    ['runs on one of two', { nodes: MIXED }, WRONG],
    ['runs on one of two, and waits for a node', { nodes: MIXED, phase: 'Pending' }, WRONG],
    ['runs on one of three', { nodes: { ...MIXED, s390x: {} } }, WRONG.replace('amd64', 'amd64 or s390x')],
    ['runs on one of two, of a StatefulSet', { owner: 'StatefulSet', nodes: MIXED }, WRONG],
    ['runs on one of two, and its author selects that', { nodes: MIXED, spec: ON_ARM }, 'replace'],
    ['runs on one of two, and its author requires that', { nodes: MIXED, spec: requiring(ARM_REQUIRED) }, 'replace'],
    [
      'runs on one of two, and archaware requires that, by its record',
      { nodes: MIXED, spec: requiring(ARM_REQUIRED), metadata: recorded([ARM_REQUIRED]) },
      WRONG,
    ],
    [
      'runs on one of two, and archaware requires that, by its field manager',
      {
        nodes: MIXED,
        spec: requiring(ARM_REQUIRED),
        managedFields: [wrote('archaware-controller', { 'f:tolerations': {}, 'f:affinity': {} })],
      },
      WRONG,
    ],
    [
      'runs on one of two, and archaware added to what its author requires',
      {
        nodes: { amd64: {}, arm64: { labels: { pool: 'arm' } } },
        spec: requiring(POOL, ARM_REQUIRED),
        metadata: recorded([{ term: 0, ...ARM_REQUIRED }]),
      },
      'replace',
    ],
    [
      'runs on one of two, and archaware requires labels of nodes, too',
      {
        nodes: { amd64: {}, arm64: { labels: { pool: 'arm' } } },
        spec: requiring(POOL, ARM_REQUIRED),
        metadata: recorded([POOL, ARM_REQUIRED]),
      },
      WRONG,
    ],
    [
      'tolerates two by archaware, but archaware requires one',
      { nodes: MIXED, tolerations: [AMD, OURS], spec: requiring(ARM_REQUIRED), metadata: recorded([ARM_REQUIRED]) },
      WRONG,
    ],
    [
      'runs on one of two, and the other is tainted by somebody else',
      { nodes: { ...MIXED, amd64: { taints: [DEDICATED] } } },
      'replace',
    ],
    [
      'runs on one of two, and tolerates the taint of the other',
      {
        nodes: { ...MIXED, amd64: { taints: [DEDICATED] } },
        tolerations: [OURS, { key: 'dedicated', operator: 'Exists' }],
      },
      WRONG,
    ],
    ['runs on one of two, and the other is cordoned', { nodes: { ...MIXED, amd64: { unschedulable: true } } }, WRONG],
    [
      'runs on one of two, and the other is not ready',
      { nodes: { ...MIXED, amd64: { taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }] } } },
      WRONG,
    ],
    [
      'runs on one of two, and the other is being deleted',
      { nodes: { ...MIXED, amd64: { deletionTimestamp: 'x' } } },
      'replace',
    ],
    [
      'runs on one of two by one key and on both by an earlier one',
      {
        nodes: MIXED,
        tolerations: [OURS, OLD, toleration('arch=amd64:NoSchedule')],
      },
      WRONG,
    ],
    [
      'has an image that was changed in place',
      {
        metadata: { creationTimestamp: '2026-01-01T00:00:00Z' },
        managedFields: [
          { ...wrote('archaware-controller'), time: '2026-01-01T00:00:01Z' },
          {
            ...wrote('kubectl', { 'f:containers': { 'k:{"name":"c"}': { 'f:image': {} } } }),
            time: '2026-01-01T00:00:09Z',
          },
        ],
      },
      'keep: an image of it was changed since archaware placed it, so its architectures are not known',
    ],
    [
      'selects a label of archaware, which clean removes',
      {
        nodes: {
          arm64: {
            labels: { 'accelerators/ncs2': 'true' },
            annotations: { 'archaware.dev/managed': '{"labels":["accelerators/ncs2"]}' },
          },
        },
        spec: { nodeName: 'arm64', nodeSelector: { 'accelerators/ncs2': 'true' } },
      },
      NOWHERE,
    ],
    ['is bound in a cluster without nodes', { nodes: {}, spec: { nodeName: 'gone' } }, NOWHERE],
    ['waits in a cluster without nodes', { nodes: {} }, 'replace'],
    [
      'of a DaemonSet on all architectures',
      { owner: 'DaemonSet', template: [], nodes: MIXED, tolerations: [AMD, OURS] },
      'rolls',
    ],
    ['of a DaemonSet on one of two', { owner: 'DaemonSet', template: [], nodes: MIXED }, WRONG_SET],
    [
      'of a DaemonSet on one of two that its author selects',
      { owner: 'DaemonSet', template: [], nodes: MIXED, spec: ON_ARM },
      'rolls',
    ],
    [
      'of a DaemonSet on one of two that has rolled without it',
      { owner: 'DaemonSet', template: [], nodes: MIXED, rolledOut: true },
      'replace',
    ],
  ];
  for (const [given, what, expected] of rows) {
    it(`${given}: ${expected.split(':')[0]}`, () => {
      const { owner = 'ReplicaSet', ...rest } = what;
      const decided = undo({ ...rest, ...(owner === '' ? {} : { owner }) });
      expect('reason' in decided ? `${decided.kind}: ${decided.reason}` : decided.kind).to.equal(expected);
    });
  }
});
