import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import { cleanPod } from '../../../src/placement/clean/pods.ts';
import { type DaemonSet, readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
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
  controls?: boolean;
  tolerations?: readonly JsonObject[];
  managedFields?: readonly JsonObject[] | string;
  metadata?: JsonObject;
  phase?: string;
  allPods?: boolean;
  /** The tolerations of its DaemonSet's template; undefined: the DaemonSet does not exist any more. */
  template?: readonly JsonObject[];
  /** Whether the rollout of that DaemonSet is complete. */
  rolledOut?: boolean;
  strategy?: string;
};

function undo(given: Given) {
  const { owner, controls = true, tolerations = [OURS], managedFields = WRITTEN, metadata = {}, phase } = given;
  const ownerReferences = owner === undefined ? [] : [{ kind: owner, name: 'o', uid: 'd1', controller: controls }];
  const pod = { metadata: { ownerReferences, managedFields, ...metadata }, spec: { tolerations }, status: { phase } };
  return cleanPod(pod, KEYS, given.allPods ?? false, (uid) => (uid === 'd1' ? daemonSetOf(given) : undefined));
}

function daemonSetOf({ template, rolledOut = false, strategy }: Given): DaemonSet | undefined {
  if (template === undefined) return undefined;
  return readDaemonSet({
    metadata: { generation: 2 },
    spec: { updateStrategy: { type: strategy }, template: { spec: { tolerations: template } } },
    status: { observedGeneration: rolledOut ? 2 : 1 },
  });
}

describe("what clean does about a pod with archaware's tolerations", () => {
  const rows: [given: string, what: Given, expected: string][] = [
    ['of a ReplicaSet', { owner: 'ReplicaSet' }, 'replace'],
    ['of a StatefulSet', { owner: 'StatefulSet' }, 'replace'],
    ['of a ReplicationController', { owner: 'ReplicationController' }, 'replace'],
    ['of a Job', { owner: 'Job' }, 'leave: its Job would count it as failed'],
    ['of something else', { owner: 'Workflow' }, 'leave: owned by a Workflow, which may not bring it back'],
    ['bare', {}, 'leave: bare pod: nothing would bring it back'],
    [
      'owned without being controlled',
      { owner: 'ReplicaSet', controls: false },
      'leave: bare pod: nothing would bring it back',
    ],
    ['bare, with --all-pods', { allPods: true }, 'replace'],
    ['of a Job, with --all-pods', { owner: 'Job', allPods: true }, 'replace'],
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
    [
      'of a DaemonSet that replaces none by itself, with --all-pods',
      { owner: 'DaemonSet', template: [], strategy: 'OnDelete', allPods: true },
      'replace',
    ],
  ];
  for (const [given, what, expected] of rows) {
    it(`${given}: ${expected}`, () => {
      const decided = undo(what);
      expect(decided.kind === 'leave' ? `leave: ${decided.reason}` : decided.kind).to.equal(expected);
    });
  }
});
