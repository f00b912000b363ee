import { expect } from 'chai';
import { cleanPod } from '../../src/clean/cleaned.ts';
import type { JsonObject } from '../../src/kit/json.ts';
import { requires } from '../placement/affinities.ts';
import { toleration } from '../placement/objects.ts';

const OURS = toleration('supported-arch=arm64:NoSchedule');
const OLD = toleration('arch=arm64:NoSchedule');
const KEYS: ReadonlySet<string> = new Set(['supported-arch:NoSchedule', 'arch:NoSchedule']);
const MANAGER = 'archaware-controller';
const WRITTEN = [wrote(MANAGER)];
const managedBy = (fieldsV1: string, ...others: JsonObject[]) => ({
  managedFields: [...others, { manager: MANAGER, fieldsV1 }],
});

/** An entry of `metadata.managedFields` about these fields of a pod's spec. */
function wrote(manager: string, fields: JsonObject = { 'f:tolerations': {} }): JsonObject {
  return { manager, operation: 'Update', fieldsType: 'FieldsV1', fieldsV1: { 'f:spec': fields } };
}

type Given = {
  keys?: ReadonlySet<string>;
  /** Default: a ReplicaSet. */
  owner?: string | undefined;
  apiVersion?: string;
  controls?: boolean;
  tolerations?: readonly JsonObject[];
  managedFields?: readonly JsonObject[] | string;
  metadata?: JsonObject;
  phase?: string;
  /** The tolerations of its DaemonSet's template; undefined: the DaemonSet does not exist any more. */
  template?: readonly JsonObject[];
  /** Whether that template changes now. */
  rolls?: boolean;
  wasWhole?: boolean;
  strategy?: string;
  /** More fields of the pod's spec. */
  spec?: JsonObject;
  /** The architectures of the nodes; default: one that runs every image. */
  architectures?: readonly string[];
};

const DAEMON = { owner: 'DaemonSet', template: [] };
const KRUISE = { apiVersion: 'apps.kruise.io/v1beta1' };
const NOT = ', which clean does not restart';
const BARE = 'keep: bare pod: it has no owner that could be restarted';
const MIXED = ['amd64', 'arm64'];

function undo(given: Given) {
  const {
    owner = 'owner' in given ? undefined : 'ReplicaSet',
    apiVersion,
    controls = true,
    tolerations = [OURS],
    managedFields = WRITTEN,
    metadata = {},
    phase,
  } = given;
  const reference = { kind: owner, apiVersion, name: 'o', uid: 'd1', controller: controls };
  const ownerReferences = owner === undefined ? [] : [reference];
  const spec = { tolerations, ...given.spec };
  const pod = { metadata: { ownerReferences, managedFields, ...metadata }, spec, status: { phase } };
  return cleanPod(pod, {
    keys: given.keys ?? KEYS,
    daemonSetOf: (uid) => (uid === 'd1' ? daemonSetOf(given) : undefined),
    architectures: given.architectures ?? ['arm64'],
  });
}

function daemonSetOf({ template, rolls = true, wasWhole = true, strategy = 'RollingUpdate' }: Given) {
  return template && { tolerations: template, rolls, wasWhole, updateStrategy: strategy };
}

const AMD = toleration('supported-arch=amd64:NoSchedule');
const requiring = (...matchExpressions: JsonObject[]) => ({ affinity: requires({ matchExpressions }) });
const UNTOLERATED: Given = { architectures: MIXED, tolerations: [], managedFields: [] };
const ARM_REQUIRED = { key: 'kubernetes.io/arch', operator: 'In', values: ['arm64'] };
const REQUIRES = { spec: requiring(ARM_REQUIRED) };
/** The record that admission left. */
const recorded = (required: readonly JsonObject[], tolerations: readonly JsonObject[] = [OURS]) => ({
  annotations: { 'archaware.dev/managed': JSON.stringify({ tolerations, required, preferred: [] }) },
});
const ALL_REQUIRED = { spec: requiring({ ...ARM_REQUIRED, values: MIXED }) };
const ONLY_REQUIRED = { metadata: recorded([ARM_REQUIRED], []) };
const TOLERATED = { architectures: MIXED, tolerations: [AMD, OURS] };
const IMAGE = { 'f:containers': { 'k:{"name":"c"}': { 'f:image': {} } } };
const WRONG = 'keep: a new pod could start on a node of amd64, for which its images have no build';

describe("what clean does about a pod with archaware's tolerations", () => {
  const rows: [given: string, what: Given, expected: string][] = [
    ['of a ReplicaSet', {}, 'restart'],
    ['of a StatefulSet', { owner: 'StatefulSet' }, 'restart'],
    ['of a ReplicationController', { owner: 'ReplicationController' }, `keep: owned by a ReplicationController${NOT}`],
    ['of a Job', { owner: 'Job' }, `keep: owned by a Job${NOT}`],
    ['of another group', { owner: 'StatefulSet', ...KRUISE }, `keep: owned by a StatefulSet.apps.kruise.io${NOT}`],
    ['of a StatefulSet of its own API group', { owner: 'StatefulSet', apiVersion: 'apps/v1' }, 'restart'],
    ['of such a DaemonSet', { ...DAEMON, ...KRUISE }, `keep: owned by a DaemonSet.apps.kruise.io${NOT}`],
    ['of something else', { owner: 'Workflow' }, `keep: owned by a Workflow${NOT}`],
    ['bare', { owner: undefined }, BARE],
    ['owned without being controlled', { controls: false }, BARE],
    ['under a key of before', { tolerations: [OLD] }, 'restart'],
    ['that runs', { phase: 'Running' }, 'restart'],
    ['that has succeeded', { phase: 'Succeeded' }, 'none'],
    ['that has failed', { phase: 'Failed' }, 'none'],
    ['that is being deleted', { metadata: { deletionTimestamp: 'x' } }, 'none'],

    ['without tolerations', { tolerations: [] }, 'none'],
    ['under a key that nobody remembers', { tolerations: [{ ...OURS, key: 'other' }] }, 'restart'],
    ['under the effect PreferNoSchedule', { tolerations: [{ ...OURS, effect: 'PreferNoSchedule' }] }, 'restart'],
    ['that names no architecture', { tolerations: [{ ...OURS, value: 'A B' }] }, 'none'],
    ['under another effect', { tolerations: [{ ...OURS, effect: 'NoExecute' }] }, 'none'],
    ['in another form', { tolerations: [{ key: OURS.key, operator: 'Exists' }] }, 'none'],
    ["of its author's own", { managedFields: [wrote('kubectl')] }, 'none'],
    ['of nobody that is known', { managedFields: [] }, 'none'],
    ['that we wrote, but other fields', { managedFields: [wrote(MANAGER, { 'f:affinity': {} })] }, 'none'],
    ['that others also wrote', { managedFields: [wrote('kubectl'), ...WRITTEN] }, 'restart'],
    ['whose managed fields are text', managedBy('{"f:spec":{"f:tolerations":{}}}'), 'restart'],
    ['whose managed fields are no list', { managedFields: 'x' }, 'none'],
    ['whose managed fields are odd', managedBy('{', {}, { manager: 1 }), 'none'],

    ['of a DaemonSet that is restored', DAEMON, 'rolls'],
    ['of a DaemonSet, no matter who wrote it', { ...DAEMON, managedFields: [] }, 'rolls'],
    ['of a DaemonSet whose author wants it', { owner: 'DaemonSet', template: [OURS] }, 'none'],
    ['of one whose author wants one of two', { ...DAEMON, template: [OURS], tolerations: [OURS, OLD] }, 'rolls'],
    ['of a DaemonSet that is gone', { owner: 'DaemonSet' }, 'none'],
    ['of one whose template does not change', { ...DAEMON, rolls: false }, 'keep: its DaemonSet does not replace it'],
    [
      'of a DaemonSet that was not whole before',
      { ...DAEMON, wasWhole: false },
      'keep: its DaemonSet lacked available pods before, so clean does not wait until it replaces this pod',
    ],
    [
      'of a DaemonSet that replaces none by itself',
      { ...DAEMON, strategy: 'OnDelete' },
      'keep: its DaemonSet replaces pods only when they are deleted',
    ],
  ];
  for (const [given, what, expected] of rows) {
    it(`${given}: ${expected}`, () => {
      const decided = undo(what);
      expect('reason' in decided ? `${decided.kind}: ${decided.reason}` : decided.kind).to.equal(expected);
    });
  }
});

it('clean looks at a daemon pod once, however many taints the records of strangers name', () => {
  const keys = new Set([...KEYS, ...Array.from({ length: 200_000 }, (_, index) => `k${index}:NoSchedule`)]);
  for (let pod = 0; pod < 500; pod++) expect(undo({ ...DAEMON, keys })).to.deep.equal({ kind: 'rolls' });
});

describe('what clean does about a pod whose images do not run everywhere', () => {
  const rows: [given: string, what: Given, expected: string][] = [
    ['runs on all architectures of the cluster', TOLERATED, 'restart'],
    ['runs on one of two', { architectures: MIXED }, WRONG],
    ['runs on one of two, and waits for a node', { architectures: MIXED, phase: 'Pending' }, WRONG],
    ['runs on one of three', { architectures: [...MIXED, 's390x'] }, WRONG.replace('amd64', 'amd64 or s390x')],
    ['tolerates two, archaware requires one', { ...TOLERATED, ...REQUIRES, metadata: recorded([ARM_REQUIRED]) }, WRONG],
    ['is required on all, without tolerations', { ...UNTOLERATED, ...ALL_REQUIRED, ...ONLY_REQUIRED }, 'restart'],
    ['is required on one of two, without any', { ...UNTOLERATED, ...REQUIRES, ...ONLY_REQUIRED }, WRONG],
    ['is required by its author alone, without tolerations', { ...UNTOLERATED, ...REQUIRES }, 'none'],
    [
      'runs on one of two by one key and on both by an earlier one',
      { architectures: MIXED, tolerations: [OURS, OLD, toleration('arch=amd64:NoSchedule')] },
      WRONG,
    ],
    [
      'has an image that was changed in place',
      {
        metadata: { creationTimestamp: '2026-01-01T00:00:00Z' },
        managedFields: [
          { ...wrote(MANAGER), time: '2026-01-01T00:00:01Z' },
          { ...wrote('kubectl', IMAGE), time: '2026-01-01T00:00:09Z' },
        ],
      },
      'keep: an image of it was changed since archaware placed it, so its architectures are not known',
    ],
    ['is in a cluster without nodes', { architectures: [] }, 'restart'],
    ['of a DaemonSet on all architectures', { ...DAEMON, ...TOLERATED }, 'rolls'],
    [
      'of a DaemonSet on one of two',
      { ...DAEMON, architectures: MIXED },
      'keep: its DaemonSet may also start pods on nodes of amd64, for which its images have no build, so clean does not wait until it replaces this pod',
    ],
  ];
  for (const [given, what, expected] of rows) {
    it(`${given}: ${expected.split(':')[0]}`, () => {
      const decided = undo(what);
      expect('reason' in decided ? `${decided.kind}: ${decided.reason}` : decided.kind).to.equal(expected);
    });
  }
});
