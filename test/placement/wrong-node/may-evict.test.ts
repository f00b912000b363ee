import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import { readNode } from '../../../src/placement/nodes/node.ts';
import type { BrokenContainer, ContainerTrouble } from '../../../src/placement/objects/containers.ts';
import { readPod } from '../../../src/placement/objects/pod.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import type { WrongNodeFinding, WrongNodeVerdict } from '../../../src/placement/wrong-node/judge.ts';
import { readWhole, whyNotEvicted } from '../../../src/placement/wrong-node/may-evict.ts';
import { requires, term } from '../affinities.ts';
import { digest, node, settings, taint, toleration } from '../objects.ts';

type Row = {
  readonly trouble?: ContainerTrouble;
  readonly verdict?: WrongNodeVerdict;
  readonly isPulled?: false;
  /** The architectures of its images now; undefined: not known. */
  readonly runsOn?: readonly string[] | undefined;
  readonly spec?: JsonObject;
  readonly metadata?: JsonObject;
  readonly settings?: Partial<Settings>;
  /** The taints of the wrong node, which is arm64. */
  readonly taints?: readonly JsonObject[];
  readonly nodes?: readonly JsonObject[];
  readonly daemonTolerations?: readonly JsonObject[];
  /** Before the whole pod was read. */
  readonly early?: true;
  readonly managedFields?: readonly JsonObject[];
};

const OURS = toleration('supported-arch=arm64:NoSchedule');
const TAINT = taint('supported-arch=arm64:NoSchedule');
const owned = (kind: string): JsonObject => ({ ownerReferences: [{ kind, name: 'o', uid: 'o', controller: true }] });
const by = (...tolerations: readonly JsonObject[]): Row => ({ spec: { tolerations } });
const off = (more: Partial<Settings['taints']>) => ({ taints: { ...settings().taints, ...more } });
const wrote = (manager: string, fields: JsonObject) => ({ manager, fieldsV1: { 'f:spec': fields } });

const AMD = toleration('supported-arch=amd64:NoSchedule');
const template = (fields: JsonObject) => wrote('kube-controller-manager', fields);
const asking = (architecture: string) => ({ nodeSelector: { 'kubernetes.io/arch': architecture } });
/** A pod of a DaemonSet with these tolerations. */
const daemon = (...daemonTolerations: readonly JsonObject[]) => ({ metadata: owned('DaemonSet'), daemonTolerations });

/** Another node of the cluster, with archaware's taint. */
function other(architecture: string, spec: JsonObject = {}, labels: JsonObject = {}): JsonObject {
  return {
    metadata: { name: `${architecture}-2`, labels: { 'kubernetes.io/arch': architecture, ...labels } },
    spec: { taints: [taint(`supported-arch=${architecture}:NoSchedule`)], ...spec },
    status: { nodeInfo: { architecture } },
  };
}

const CORDONED = other('amd64', { unschedulable: true });

function placeOf({ trouble = 'failing', verdict = 'does-not-run', isPulled, ...row }: Row): WrongNodeFinding {
  const image = { image: `app@${digest('app')}`, pullPolicy: 'IfNotPresent' };
  const pulled = isPulled === false ? undefined : image;
  const container: BrokenContainer = { name: 'c', image: 'app:1', trouble, pulled };
  const architectures = 'runsOn' in row ? row.runsOn : ['amd64'];
  return {
    reason: trouble === 'exec-format-error' ? trouble : 'platforms',
    verdict,
    container,
    pulled: verdict === 'unproved' || pulled === undefined ? undefined : { ...image, platforms: [], architectures: [] },
    known: { images: [], architectures, pending: [], unknown: [] },
  };
}

describe('the eviction of a pod from a wrong node', () => {
  const NO_PLACE = /would take another one/;
  const DAEMON = /its DaemonSet would create another one here/;
  const own = (value: string) => by({ key: 'supported-arch', value });
  const UNPROVED = { verdict: 'unproved' } as const;
  const SAYS = { trouble: 'exec-format-error', verdict: 'says-it-runs' } as const;
  const UNPULLED = { trouble: 'no-match-for-platform', verdict: 'says-it-runs' } as const;
  const AMD_TAINT = taint('supported-arch=amd64:NoSchedule');
  const GPU = [taint('gpu=yes:NoSchedule')];
  const TOLERATES_GPU = by({ key: 'gpu', operator: 'Exists' });
  const TOLERATES_CORDONS = by({ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' });
  const rows: [given: string, what: Row, expected: RegExp | undefined][] = [
    ['of a ReplicaSet', {}, undefined],
    ['of a StatefulSet', { metadata: owned('StatefulSet') }, undefined],
    ['of a ReplicationController', { metadata: owned('ReplicationController') }, undefined],
    ['of a Job', { metadata: owned('Job') }, /its Job would count it as failed/],
    ['of something else', { metadata: owned('Workflow') }, /owned by a Workflow/],
    ['that is bare', { metadata: {} }, /bare pod/],
    [
      'with pods.onWrongNode: warn',
      { settings: { onWrongNode: 'warn' } },
      /^pods.onWrongNode is warn \(delete the pod: its ReplicaSet creates another; if its template has spec.nodeName, remove that first\)$/,
    ],
    [
      'that is bare, with pods.onWrongNode: warn, because it may have named its node',
      { metadata: {}, settings: { onWrongNode: 'warn' } },
      /^pods.onWrongNode is warn \(create the pod again, without spec.nodeName if it was given one\)$/,
    ],

    [
      'of a Job, with pods.onWrongNode: warn, because the Job counts a deleted pod as failed',
      { metadata: owned('Job'), settings: { onWrongNode: 'warn' } },
      /^pods.onWrongNode is warn \(create its Job again, without spec.nodeName if it was given one\)$/,
    ],

    // Without proof nothing is evicted.
    [
      'whose image says that it runs there, and does not',
      SAYS,
      /its image app@\S+ claims to run on arm64, but it does not .*rebuild it, or state the architectures of "app:1" in images.overrides/,
    ],
    ['not pulled, though they do', { ...UNPULLED, isPulled: false }, /its images have arm64.*pull may succeed/],
    [
      'that ran there, and whose tag moved before its next start',
      UNPULLED,
      /the image that it ran before has arm64, but the image that its tag names now cannot be pulled here/,
    ],
    ['whose status names no digest', { ...UNPROVED, isPulled: false }, /the status of container c has no digest that/],
    ['whose digest is not known', UNPROVED, /not known for certain which image container c runs \(app@sha256/],

    // The next pod runs the images that the tags name now.
    ['of whose images one is not known', { runsOn: undefined }, /platforms of its images are not known for certain/],
    ['whose images run there by now', { runsOn: ['amd64', 'arm64'] }, /its images now have arm64/],
    ['that could run nowhere', { runsOn: ['s390x'] }, /no node of the cluster runs all/],
    ['that may run nowhere else', { settings: { schedulable: ['arm64'] } }, /no node of the cluster runs all/],

    // A taint must keep the next pod off this node.
    ['where nodes are not tainted by us', { settings: off({ manage: false }) }, /has no taint supported-arch=arm64/],
    ['whose node has no taint yet', { taints: [] }, /node n1 has no taint/],
    ["whose node has another architecture's taint", { taints: [taint('supported-arch=amd64:NoSchedule')] }, /no taint/],
    [
      'whose node only prefers others',
      { settings: off({ effect: 'PreferNoSchedule' }), taints: [taint('supported-arch=arm64:PreferNoSchedule')] },
      /has no taint/,
    ],
    ['that tolerates what we gave it', by(OURS), undefined],
    ['that tolerates everything', by({ operator: 'Exists' }), /onto nodes of arm64/],
    ['that tolerates every value of our key', by({ key: 'supported-arch', operator: 'Exists' }), /onto nodes of arm64/],
    ['that tolerates it in a form of its own', own('arm64'), /onto nodes of arm64/],
    ['that tolerates another so', { ...own('s390x'), nodes: [other('amd64'), other('s390x')] }, /onto nodes of s390x/],
    ['that tolerates what is not here in a form of its own', own('s390x'), undefined],
    ['that tolerates the right one in a form of its own', own('amd64'), undefined],
    ["whose tolerations of our form are its author's", { ...by(OURS), managedFields: [] }, /onto nodes of arm64/],
    ['whose author named the node', { managedFields: [template({ 'f:nodeName': {} })] }, /its template names the node/],

    // The next pod must fit a node that runs its images.
    ['whose nodeSelector allows only wrong nodes', { spec: asking('arm64') }, /no node of amd64 would take another/],
    ['whose nodeSelector a right node matches', { spec: asking('amd64') }, undefined],
    ['whose affinity no right node matches', { spec: { affinity: requires(term('zone In a')) } }, NO_PLACE],
    ['whose right node is cordoned', { nodes: [CORDONED] }, NO_PLACE],
    ['that tolerates cordoned nodes, without another', { ...TOLERATES_CORDONS, nodes: [CORDONED] }, NO_PLACE],
    ["whose right node has somebody else's taint", { nodes: [other('amd64', { taints: GPU })] }, NO_PLACE],
    ['that tolerates that', { ...TOLERATES_GPU, nodes: [other('amd64', { taints: [...GPU, AMD_TAINT] })] }, undefined],
    ['before its spec was read whole', { early: true, spec: { nodeSelector: { no: 'node' } } }, undefined],

    // A daemon pod needs no other node.
    ['of a DaemonSet whose template tolerates the node', daemon(OURS), DAEMON],
    ['of a DaemonSet that tolerates everything', daemon({ operator: 'Exists' }), DAEMON],
    ['of a DaemonSet of which nothing is known', { metadata: owned('DaemonSet') }, DAEMON],
    ['of a DaemonSet whose template no longer tolerates the node', daemon(AMD), undefined],
    ['of such a one that no other node would take', { ...daemon(), runsOn: ['s390x'] }, undefined],
    ['of such a one, on a node without the taint', { ...daemon(), taints: [] }, /has no taint/],
    ['of a DaemonSet, of which nothing is proved', { ...daemon(), verdict: 'unproved' }, /not known for certain/],
  ];
  for (const [given, what, expected] of rows) {
    it(`${given}: ${expected === undefined ? 'may be' : expected.source}`, () => {
      const evicting = settings({ onWrongNode: 'evict', ...what.settings });
      const { metadata = owned('ReplicaSet'), nodes = [other('amd64')], taints = [TAINT], spec = {} } = what;
      const { managedFields = [wrote('archaware-controller', { 'f:tolerations': {} })] } = what;
      const object = { metadata: { ...metadata, managedFields }, spec: { ...spec, nodeName: 'n1' } };
      const read = nodes.map(readNode);
      const surroundings = {
        architectures: ['arm64', ...read.map(({ reportedArchitecture }) => reportedArchitecture)],
        nodes: read,
        daemonTolerations: what.daemonTolerations,
      };
      const why = whyNotEvicted(
        readPod(object),
        placeOf(what),
        { ...node({ taints }), architecture: 'arm64' },
        surroundings,
        evicting,
        what.early ? undefined : readWhole(object),
      );
      if (expected === undefined) expect(why).to.equal(undefined);
      else expect(why).to.match(expected);
    });
  }
});

describe('the facts that only the whole pod has', () => {
  const rows: [given: string, managedFields: unknown, expected: [namesNode: boolean, toleratesByUs: boolean]][] = [
    ['of a template that names its node', [template({ 'f:nodeName': {} })], [true, false]],
    ['of a template, and of us', [template({}), wrote('archaware-controller', { 'f:tolerations': {} })], [false, true]],
    ['of a template with tolerations', [template({ 'f:tolerations': {} })], [false, false]],
  ];
  for (const [given, managedFields, expected] of rows) {
    it(given, () => {
      const { namesNode, toleratesByUs } = readWhole({ metadata: { managedFields } });
      expect([namesNode, toleratesByUs]).to.deep.equal(expected);
    });
  }
});
