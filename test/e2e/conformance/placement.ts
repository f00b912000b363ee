import { type Behaviour, better, different, type Shown, same } from './behaviour.ts';

const here = (title: string): Shown => ['e2e/conformance-placement.e2e.ts', title];
const affinity = (title: string): Shown => ['e2e/admission-affinity.e2e.ts', title];
const workloads = (title: string): Shown => ['e2e/admission-workloads.e2e.ts', title];
const wish = (what: string): Shown => here(`the pod's own settings: ${what}`);

/** What becomes of pods whose images are known. */
export const PLACEMENT: readonly Behaviour[] = [
  same(
    'Deployment with a public image of several architectures: they are required',
    'M, N',
    here('a Deployment of an OCI index of two architectures requires exactly what that runs on'),
  ),
  better(
    'image of a single architecture: only that one',
    'M, N',
    'Noe does not read the config of a single manifest and assumes amd64',
    here('a Deployment of an OCI manifest requires exactly what that runs on'),
  ),
  same(
    "user's required affinity on other keys is kept and narrowed",
    'M',
    affinity('narrows what a pod asks for: another label'),
  ),
  same(
    "user's required affinity on the architecture: left alone, the preference is still added",
    'M',
    wish('a requirement for the architecture stays, and the preference is added'),
  ),
  same(
    "user's preferred affinity on the architecture: no preference is added",
    'M',
    wish('a preference for an architecture stays, and only the requirement is added'),
  ),
  same(
    "user's preferred affinity on other keys: the preference is appended",
    'M',
    wish('another preference stays, and the preference for architectures is appended'),
  ),
  same(
    'both set by the user: untouched',
    'M',
    wish('a requirement and a preference for the architecture both stay unchanged'),
  ),
  same(
    'several required terms: only those without the architecture are narrowed',
    'M',
    wish('of several terms, only those without the architecture are narrowed'),
  ),
  same(
    'nodeSelector on the architecture: required part untouched',
    'M, N',
    wish('a node selector for the architecture gets no requirement'),
  ),
  same('nodeName set: not gated, not changed', 'M', here('a pod with nodeName is neither gated nor changed')),
  ...['kube-public', 'openshift-monitoring', 'hypershift-clusters'].map((namespace) =>
    different(
      `namespaces ${namespace.split('-')[0]}-*: not gated`,
      'M',
      'not gated either, because the cluster may need them first, but placed if their images are known. `pods.excludeNamespaces` ignores them completely',
      here(`pods of ${namespace} are never gated, but get what is known`),
    ),
  ),
  different(
    'node selectors of the control plane: not gated',
    'M',
    'the same: not gated, but placed if their images are known',
    here('pods for nodes of the role control-plane are never gated, but get what is known'),
    here('pods for nodes of the role master are never gated, but get what is known'),
  ),
  same(
    'namespace opt-out by label',
    'M',
    affinity('leaves alone what names its node, what is labelled so, and excluded namespaces'),
  ),
  same('namespace opt-in by label', 'M', here('pods are placed while the label of their namespace selects it')),
  better(
    'opt-out by label, changed later',
    'M',
    'an existing gate is removed at once',
    affinity(
      'releases gated pods unchanged when their namespace gets the label, and places new ones when the label is removed',
    ),
  ),
  same('opt-in by label, changed later', 'M', here('pods are placed while the label of their namespace selects it')),
  same(
    'StatefulSet, images of one architecture',
    'M',
    here('the pods of a StatefulSet with one architecture run on nodes that fit'),
  ),
  same(
    'StatefulSet, images of several',
    'M',
    here('the pods of a StatefulSet with several architectures run on nodes that fit'),
  ),
  same(
    'StatefulSet, mixed',
    'M',
    here('the pods of a StatefulSet with images of one and of several architectures run on nodes that fit'),
  ),
  better(
    'StatefulSet, no common architecture',
    'M',
    'held by the gate, with an Event that names each image and its architectures, instead of a label that no node has',
    here('the pods of a StatefulSet without a common architecture are held by the gate, with an Event'),
  ),
  same(
    'StatefulSet, affinity set by the user',
    'M',
    here('the pods of a StatefulSet with an affinity of its own run on nodes that fit'),
  ),
  better(
    'DaemonSet pods are not gated',
    'M',
    'not gated either; in modes with taints their template gets tolerations',
    affinity('does not taint nodes, nor touch DaemonSets'),
    workloads('leaves one whose images are not known to its loop, and gates no pod of it'),
  ),
  ...(['Job', 'CronJob', 'bare pod'] as const).map((kind) =>
    same(
      kind,
      'M',
      workloads(`gates the pods of a ${kind} while its image is not known, and releases each with one write`),
      workloads(`places the pods of a ${kind} at once where its image is known: no gate ever, no write`),
    ),
  ),
  different(
    'no common architecture: denied',
    'N',
    'held, because a wrong tag can be corrected; `placement.noCommonArchitecture: reject` denies it',
    affinity('holds the pod, with an Event that names each image and what it runs on'),
    affinity('refuses it at admission with reject, where all is known there, else holds it'),
  ),
  better(
    "OS other than the system's is left out",
    'N',
    'the OS is that of each pod, and it is required if an image exists for several',
    ['e2e/placement.e2e.ts', 'reads the platforms of the operating system that a pod asks for'],
    affinity(
      'requires only what a policy calls schedulable, the labels of pods.matchNodeLabels, and the OS where an image exists for several',
    ),
  ),
  same('ephemeral containers ignored', 'N', here('the image of an ephemeral container is not looked up')),
  different(
    'pod on a node of the wrong architecture, unready: removed',
    'N',
    'an Event; with `pods.onWrongNode: evict` an eviction within its PodDisruptionBudgets, if the pulled image lacks the architecture and a new pod fits another node',
    ['cli/both/wrong-node.ts', 'are evicted one after the other, and come back on the right node'],
    ['cli/both/wrong-node.ts', 'stay while a PodDisruptionBudget does not let them go, and go then'],
    [
      'cli/both/wrong-node.ts',
      'have only an Event where nothing brings them back, and where a DaemonSet would do so on the same node',
    ],
  ),
];

/** Which of several architectures. */
export const PREFERENCES: readonly Behaviour[] = [
  same(
    'preference is kept if the required part failed',
    'M',
    here('a preference is added even if nothing can be required, because the image is not found'),
  ),
  same('preferred weights of the cluster', 'M', affinity('prefers by the configuration')),
  same(
    'preferred weights of a namespace',
    'M',
    affinity('prefers by a policy before that'),
    affinity("prefers by the namespace's annotation before both"),
  ),
  same(
    'preferred weights, by priority',
    'M',
    here('if policies overlap, only the first applies, to the pods that its selector matches'),
  ),
  same(
    'preferred weights, by selector',
    'M',
    here('if policies overlap, only the first applies, to the pods that its selector matches'),
  ),
  different(
    'preferred weights that overlap',
    'M',
    'in the operator the weights of all matching configurations add up; here only the first policy applies. `config convert` adds the weights of the policies below it that match the same pods',
    here('if policies overlap, only the first applies, to the pods that its selector matches'),
    ['cli/convert/mto.test.ts', 'of a namespace are ordered by priority, and the first decides alone'],
  ),
  different(
    'preferred architecture by configuration',
    'N',
    'a preference with a weight instead of a node selector: without room there, pods go to other nodes',
    affinity('prefers by the configuration'),
    here('pods go to other nodes if the preferred ones have no room'),
  ),
  different(
    'preferred architecture by label of the pod',
    'N',
    "a preference of weight 100 instead of a node selector; Noe's label is read, too",
    affinity("prefers by Noe's label before all of these"),
    affinity('prefers by our label first of all'),
  ),
  same(
    'unsupported preference ignored',
    'N',
    affinity('prefers by the next source where one names nothing that the images run on'),
    here(
      'a Deployment of an OCI manifest of the architecture that is not preferred requires exactly what that runs on',
    ),
  ),
  same(
    'schedulable architectures narrow the set',
    'N',
    affinity(
      'requires only what a policy calls schedulable, the labels of pods.matchNodeLabels, and the OS where an image exists for several',
    ),
  ),
  same(
    'preferred must be within the schedulable ones',
    'N',
    here('a configuration whose preference is not schedulable is refused'),
  ),
  ...['present', 'absent'].map((label) =>
    same(
      `matchNodeLabels: label ${label}`,
      'N',
      affinity(
        'requires only what a policy calls schedulable, the labels of pods.matchNodeLabels, and the OS where an image exists for several',
      ),
    ),
  ),
];
