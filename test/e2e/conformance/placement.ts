import { type Behaviour, better, different, type Shown, same } from './behaviour.ts';

const here = (title: string): Shown => ['e2e/conformance-placement.e2e.ts', title];
const affinity = (title: string): Shown => ['e2e/admission-affinity.e2e.ts', title];
const workloads = (title: string): Shown => ['e2e/admission-workloads.e2e.ts', title];
const wish = (what: string): Shown => here(`of what a pod asks for itself, ${what}`);

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
    'Noe never reads the config of a single manifest and takes it for amd64',
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
    wish('a requirement of the architecture stays, and gets our preference'),
  ),
  same(
    "user's preferred affinity on the architecture: ours is not added",
    'M',
    wish('a preference among architectures stays alone, beside our requirement'),
  ),
  same(
    "user's preferred affinity on other keys: ours is appended",
    'M',
    wish('a preference of another kind stays, with ours behind it'),
  ),
  same(
    'both set by the user: untouched',
    'M',
    wish('requirement and preference of the architecture both stay as they are'),
  ),
  same(
    'several required terms: only those without the architecture are narrowed',
    'M',
    wish('of several terms those are narrowed that do not speak of the architecture'),
  ),
  same(
    'nodeSelector on the architecture: required part untouched',
    'M, N',
    wish('a node selector of the architecture gets no requirement'),
  ),
  same('nodeName set: not gated, not changed', 'M', here('a pod that names its node is neither gated nor changed')),
  ...['kube-public', 'openshift-monitoring', 'hypershift-clusters'].map((namespace) =>
    different(
      `namespaces ${namespace.split('-')[0]}-*: not gated`,
      'M',
      'never gated either, as the cluster may need them first; but what is known is given to them. `pods.excludeNamespaces` leaves them alone altogether',
      here(`pods of ${namespace} are never gated, but get what is known`),
    ),
  ),
  different(
    'node selectors of the control plane: not gated',
    'M',
    'the same: never gated, but given what is known',
    here('pods for nodes of the role control-plane are never gated, but get what is known'),
    here('pods for nodes of the role master are never gated, but get what is known'),
  ),
  same(
    'namespace opt-out by label',
    'M',
    affinity('leaves alone what names its node, what is labelled so, and excluded namespaces'),
  ),
  same('namespace opt-in by label', 'M', here('a namespace is served while its label says so')),
  better(
    'opt-out by label, changed later',
    'M',
    'a gate that is already there goes at once',
    affinity(
      'releases gated pods as they are when their namespace is labelled so, and serves new ones when the label goes',
    ),
  ),
  same('opt-in by label, changed later', 'M', here('a namespace is served while its label says so')),
  same(
    'StatefulSet, images of one architecture',
    'M',
    here('the pods of a StatefulSet with one architecture run where they may'),
  ),
  same(
    'StatefulSet, images of several',
    'M',
    here('the pods of a StatefulSet with several architectures run where they may'),
  ),
  same(
    'StatefulSet, mixed',
    'M',
    here('the pods of a StatefulSet with images of one and of several architectures run where they may'),
  ),
  better(
    'StatefulSet, no common architecture',
    'M',
    'held by the gate, with an Event that names each image and what it runs on, in place of a label that no node has',
    here('the pods of a StatefulSet without a common architecture are held by the gate, with an Event'),
  ),
  same(
    'StatefulSet, affinity set by the user',
    'M',
    here('the pods of a StatefulSet with an affinity of its own run where they may'),
  ),
  better(
    'DaemonSet pods are not gated',
    'M',
    'nor are they in the modes with taints, where their template gets what it needs',
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
    'held, as a wrong tag can be mended; `placement.noCommonArchitecture: reject` denies',
    affinity('holds the pod, with an Event that names each image and what it runs on'),
    affinity('refuses it at admission with reject, where all is known there, else holds it'),
  ),
  better(
    "OS other than the system's is left out",
    'N',
    'each pod says its own OS, and it is required where an image exists for several',
    ['e2e/placement.e2e.ts', 'reads the platforms of the operating system that a pod asks for'],
    affinity(
      'requires only what a policy calls schedulable, the labels of pods.matchNodeLabels, and the OS where an image exists for several',
    ),
  ),
  same('ephemeral containers ignored', 'N', here('an ephemeral container is not asked about, whatever it is')),
  different(
    'pod on a node of the wrong architecture, unready: removed',
    'N',
    'an Event, or, with `pods.onWrongNode: evict`, evicted within its PodDisruptionBudgets, where what was pulled lacks the architecture and another pod fits a right node',
    ['e2e/wrong-node.e2e.ts', 'are evicted one after the other, and come back on the right node'],
    ['e2e/wrong-node.e2e.ts', 'stay while a PodDisruptionBudget does not let them go, and go then'],
    [
      'e2e/wrong-node.e2e.ts',
      'have only an Event where nothing brings them back, and where a DaemonSet would do so on the same node',
    ],
  ),
];

/** Which of several architectures. */
export const PREFERENCES: readonly Behaviour[] = [
  same(
    'preference survives where the required part failed',
    'M',
    here('a preference stays where nothing can be required, as the image cannot be found'),
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
    here('of policies that overlap the first decides alone, and its selector says for which pods'),
  ),
  same(
    'preferred weights, by selector',
    'M',
    here('of policies that overlap the first decides alone, and its selector says for which pods'),
  ),
  different(
    'preferred weights that overlap',
    'M',
    'there the weights of all that match add up; here the first policy decides alone, as for everything else. `config convert` gives each the weights of those below it that surely match too',
    here('of policies that overlap the first decides alone, and its selector says for which pods'),
    ['config/convert/mto.test.ts', 'of a namespace are ordered by priority, and the first decides alone'],
  ),
  different(
    'preferred architecture by configuration',
    'N',
    'a preference, with its weight, in place of a hard node selector: where it has no room, pods go elsewhere',
    affinity('prefers by the configuration'),
    here('a preference gives way where its nodes take no pods'),
  ),
  different(
    'preferred architecture by label of the pod',
    'N',
    "a preference of weight 100, in place of a hard node selector; Noe's label is read too",
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
    here('a preference outside of what is schedulable is refused with the configuration'),
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
