import { wrapped } from '../../src/cli/output.ts';
import type { EventReason } from '../../src/names.ts';
import { join, type Part, table } from './markdown.ts';

const COLUMNS = 140;

type Meaning = { readonly meaning: string; readonly next: string };

const CAUSES = table(
  ['which images', 'usual cause', 'what to do'],
  [
    [
      'one, `not-found` or `denied`',
      'a typing error, or a missing pull secret',
      'correct the name; add the pull secret',
    ],
    [
      "`denied`, and the message says that kubelets pull it as the pod's service account",
      'an identity of the pod, which archaware does not have',
      '[a login of the pod](registries.md#a-login-of-the-pod)',
    ],
    [
      'all private ones',
      'archaware may not read Secrets, or the Secret is wrong',
      'Event `PullSecretUnusable`; `kubectl auth can-i get secrets -A --as=system:serviceaccount:archaware:archaware-controller`',
    ],
    [
      'all of one registry',
      'it is down, refuses, or limits requests',
      'log in, [a mirror](registries.md#mirrors), or [state the architectures](alerts.md#archawarepodswaiting)',
    ],
    [
      'of all registries',
      'DNS, a NetworkPolicy or a proxy; kubelets ask from other addresses',
      'try `inspect registry.k8s.io/pause:3.10`',
    ],
  ],
);

/** The closed list of names.ts: its type requires exactly one entry for each reason. */
const REASONS: Readonly<Record<EventReason, Meaning>> = {
  ImageUnresolvable: {
    meaning:
      'An image could not be looked up; the note names image, registry and [error](#errors-of-images). archaware tries again. For a pod that waits, the note says when it starts by itself at the latest (UTC), or that it waits until a lookup succeeds.',
    next: `\`archaware inspect IMAGE\` tries the same lookup; in the pod add \`--config /etc/archaware/config.yaml\`.\n\n${CAUSES}`,
  },
  NoCommonArchitecture: {
    meaning:
      'The images (sidecars included) have no architecture in common, within `architectures.schedulable`; the note lists what each runs on. Or the note says `requires kubernetes.io/arch=arm64 by its nodeSelector, but its images run on amd64 only`: the pod contradicts its images.',
    next: 'Build an image for more platforms, split the pod, or remove the architecture from the `nodeSelector` or node affinity. Give a pod of WebAssembly a `runtimeClassName`. [`placement.noCommonArchitecture`](admission.md#no-architecture-in-common) decides what happens to the pod.',
  },
  TooLarge: {
    meaning:
      'The names of images, labels, selectors and tolerations of the object take more than 16 KiB of memory together (most pods take less than 2 KiB). archaware skips it: nothing is looked up or added, a gate is removed, and what the object has already stays.',
    next: 'Make the object smaller, or add the tolerations to its template.',
  },
  OpenPlacement: {
    meaning:
      'Placed without knowing all images: on all architectures that are possible, on `architectures.fallback`, or without the part that the API server refused. In the mode `observe` the note says what the pod would tolerate.',
    next: 'Look at the Event `ImageUnresolvable` or `NoCommonArchitecture` of the same object, or at the refusal in the note.',
  },
  StaleToleration: {
    meaning:
      'An image was changed in place, or its tag was pushed again, and no longer runs on an architecture that the pod tolerates. A toleration cannot be removed from a pod.',
    next: 'Delete the pod, so that its controller creates another. For a DaemonSet run `kubectl rollout restart`; what the template still tolerates then, its author wrote.',
  },
  WrongNode: {
    meaning:
      'A container of the pod does not run on its node: what was pulled for it lacks the architecture, the kubelet says `no match for platform in manifest`, or it died with an exec format error. The note says what was done, and why the pod was not evicted ([each note](operating.md#pods-on-wrong-nodes)).',
    next: 'Delete the pod, or set `pods.onWrongNode: evict`. If the note says that the image claims to run there: [an image with a wrong architecture](#an-image-with-a-wrong-architecture). Emulated architectures belong in `architectures.compatible`.',
  },
  WriteContested: {
    meaning:
      'Another writer reverted a write of archaware three times in ten minutes. archaware tries again after ten minutes, doubled up to a day.',
    next: 'Find the other writer: `kubectl get KIND NAME -o yaml --show-managed-fields`. Leave the field to one of the two: GitOps tools usually set [the whole list of tolerations](gitops.md#what-these-tools-see-of-other-peoples-objects); or `archaware.dev/ignore` on a pod or DaemonSet, `taints.nodeSelector` for nodes.',
  },
  PullSecretUnusable: {
    meaning:
      'Pull secrets are missing, malformed, of another type or not readable, or the object names more than 32. They are ignored; one Event names the first of them.',
    next: 'Correct the Secret, or the ClusterRole that lets archaware read it ([rights](rights.md)).',
  },
  LabelConflict: {
    meaning:
      'The node already has a label that a rule of `nodeLabels.directory` sets, and archaware did not set it. It does not change.',
    next: 'Remove the label or the rule.',
  },
  ConfigurationRejected: {
    meaning:
      'The changed configuration file has a mistake (the last good file stays in force). Or an annotation or a label of the object, or an annotation of its namespace, has one (it counts as absent).',
    next: 'The note names key, value and what is allowed; `config validate FILE` does too.',
  },
  CertificateInvalid: {
    meaning:
      'The serving certificate of the webhook, or the `caBundle` in its configuration, is not valid. Pods pass unreviewed meanwhile.',
    next: 'The note says what is wrong. With `webhook.certificates: self` check the [rights](rights.md) to the Secret and to the configuration.',
  },
  JoinedUntainted: {
    meaning:
      'A node of an autoscaled pool joined without the taint, so the autoscaler plans without it, and may start nodes that pending pods cannot use.',
    next: 'Add the taint that the note names to the template of the pool: [runbook](alerts.md#archawarenodesjoinuntainted).',
  },
  NodeNotInitialized: {
    meaning:
      'Karpenter has not initialized the node for five minutes, and the taint of archaware is the only one that is left: it is probably in `startupTaints` of the NodePool.',
    next: 'Move it to `taints`: [runbook](alerts.md#nodenotinitialized).',
  },
  NodeArchitectureChanged: {
    meaning:
      'The kubelet reports another architecture than before for the same Node object. The taint of the node follows. Pods and DaemonSets get no toleration for the new architecture because of this node.',
    next: 'If another machine joined under the same name, delete the Node object; the kubelet creates it again. If it is the same machine, its kubelet may be broken, or controlled by an attacker.',
  },
  TaintHeldBack: {
    meaning:
      'Nodes stay without the taint, because this DaemonSet wants pods there and its template does not tolerate the taint: its next update would remove all of its pods from them. The note has the number of nodes, and why the template could not be changed.',
    next: '[Runbook](alerts.md#archawaretaintsheldback).',
  },
  RolloutStopped: {
    meaning:
      'archaware changed the template of the DaemonSet, and its rollout has made no progress for five minutes. [What waits for it](how-it-decides.md#daemonsets).',
    next: '[Runbook](alerts.md#archawarerolloutstopped).',
  },
  WriteRefused: {
    meaning:
      'The API server, a policy or a webhook in it refuses a write of the controller again and again; the note has its answer. The write is tried again; until it succeeds, a gated pod keeps its gate.',
    next: 'With `denied request` of `archaware-guard-…`, a policy is pinned to another `taints.key` or to other labels than the configuration has ([policies](security.md#policies)), or somebody gave a taint of archaware another value (`kubectl taint node NAME KEY-`). Otherwise allow the write in the other policy or webhook: [other admission plug-ins](security.md#other-admission-plug-ins).',
  },
  RefusedByPolicy: {
    meaning:
      "The API server refuses to create the pods of this owner for the tolerations, node affinity or gate that archaware adds. With `placement.refused: withdraw` the webhook leaves that part out of the owner's next pods for a time.",
    next: 'Allow it in [the policy](security.md#other-admission-plug-ins); then `kubectl rollout restart`, as owners retry rarely.',
  },
};

/** Every Event, under a heading of its own. */
export function eventsPart(): Part {
  const sections = Object.entries(REASONS).map(([reason, { meaning, next }]) =>
    join(`### ${reason}`, paragraph(meaning), paragraph(`**Do:** ${next}`)),
  );
  return { page: 'troubleshooting.md', name: 'events', text: join(...sections) };
}

/** Breaks what is not a table into lines of the width of the documents. */
function paragraph(text: string): string {
  return text
    .split('\n')
    .map((line) => (line.startsWith('|') ? line : wrapped(line, COLUMNS).join('\n')))
    .join('\n');
}
