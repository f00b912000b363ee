import type { EventReason } from '../../src/names.ts';
import { codes, heading, join, type Page, table } from './markdown.ts';

type Meaning = {
  /** The kinds of the objects that the Event is about. */
  readonly about: readonly string[];
  readonly meaning: string;
  readonly next: string;
};

const LEASE = 'Lease';

/** The closed list of names.ts: its type requires exactly one entry for each reason. */
const REASONS: Readonly<Record<EventReason, Meaning>> = {
  ImageUnresolvable: {
    about: ['Pod', 'DaemonSet'],
    meaning:
      'An image could not be looked up; the note names image, registry and [error](errors.md#images). archaware tries again. For a pod that waits, the note says when it starts by itself at the latest (UTC), or that it waits until a lookup succeeds. At most 8 such images of one object have an Event at a time.',
    next: 'Correct what the note names. Meanwhile `images.unresolvable` decides, after `images.fallbackAfter`.',
  },
  NoCommonArchitecture: {
    about: ['Pod', 'DaemonSet'],
    meaning:
      'The images have no architecture in common, within `architectures.schedulable`; the note lists what each runs on. Or the `nodeSelector` or node affinity asks for another architecture than the images have, or than `architectures.schedulable` allows; the note has both. In modes with affinity such a pod is held if its image is an index.',
    next: 'Use images that share one; give a pod of WebAssembly a `runtimeClassName`. `placement.noCommonArchitecture` decides what happens to the pod. Or remove the architecture from the `nodeSelector` or node affinity.',
  },
  TooLarge: {
    about: ['Pod', 'DaemonSet'],
    meaning:
      'The names of images, labels, selectors and tolerations of the object take more than 16 KiB of memory together (each entry counts about 50 bytes more than its characters). archaware skips it: nothing is looked up or added, a gate is removed, and what the object has already stays.',
    next: 'Make the object smaller. If it needs tolerations for the architectures, add them to its template. Most pods take less than 2 KiB.',
  },
  OpenPlacement: {
    about: ['Pod', 'DaemonSet'],
    meaning:
      'Placed without knowing all images: on all architectures that are possible, on `architectures.fallback`, or without the part that the API server refused. In the mode `observe` the note says what the pod would tolerate.',
    next: 'Look at the Event `ImageUnresolvable` or `NoCommonArchitecture` of the same object, or at the refusal in the note.',
  },
  StaleToleration: {
    about: ['Pod'],
    meaning:
      'An image was changed in place, or its tag was pushed again, and no longer runs on an architecture that the pod tolerates. A toleration cannot be removed from a pod.',
    next: 'Delete the pod, so that its controller creates another. A pod of a DaemonSet gets its tolerations from the template: run `kubectl rollout restart` for the DaemonSet, as the note says. What the template still tolerates then belongs to its author: remove it from the source of the DaemonSet.',
  },
  WrongNode: {
    about: ['Pod'],
    meaning:
      'A container of the pod does not run on its node: what was pulled for it lacks the architecture, the kubelet says "no match for platform in manifest", or it died with an exec format error. The note says what was done, and why the pod was not evicted.',
    next: 'Delete the pod, or set `pods.onWrongNode: evict`. If the note says that the image claims to run there, rebuild it or use `images.overrides`. Emulated architectures belong in `architectures.compatible`.',
  },
  WriteContested: {
    about: ['Node', 'DaemonSet', 'Pod'],
    meaning:
      'Another writer reverted a write of archaware three times in ten minutes. archaware tries again after ten minutes, and with a delay that doubles, up to a day.',
    next: 'Find the other writer: `kubectl get KIND NAME -o yaml --show-managed-fields`. Leave the object to one of the two: `archaware.dev/ignore` on a pod or DaemonSet, `taints.nodeSelector` for nodes.',
  },
  PullSecretUnusable: {
    about: ['Pod', 'DaemonSet'],
    meaning:
      'Pull secrets are missing, malformed, of another type or not readable, or the object names more than 32. They are ignored; one Event names the first of them.',
    next: 'Correct the Secret, or the ClusterRole that lets archaware read it ([RBAC](rbac.md)).',
  },
  LabelConflict: {
    about: ['Node'],
    meaning:
      'The node already has a label that a rule of `nodeLabels.directory` sets, and archaware did not set it. It does not change.',
    next: 'Remove the label or the rule.',
  },
  ConfigurationRejected: {
    about: [LEASE, 'Pod', 'DaemonSet'],
    meaning:
      'The changed configuration file has a mistake (the last good file stays in force). Or an annotation or a label of the object, or an annotation of its namespace, has one (it counts as absent).',
    next: 'The note names key, value and what is allowed; `config validate FILE` does too.',
  },
  CertificateInvalid: {
    about: [LEASE],
    meaning:
      'The serving certificate of the webhook, or the `caBundle` in its configuration, is not valid. Pods pass unreviewed meanwhile.',
    next: 'The note says what is wrong. With `webhook.certificates: self` check the rights to the Secret and to the configuration ([RBAC](rbac.md)).',
  },
  JoinedUntainted: {
    about: ['Node'],
    meaning:
      'A node of an autoscaled pool joined without the taint. The controller taints it, but the autoscaler plans with a template that lacks the taint, and may start nodes that pending pods cannot use.',
    next: 'Add the taint that the note names to the template of the pool (NodePool, node group, `--register-with-taints`): [autoscalers](../autoscalers.md).',
  },
  NodeNotInitialized: {
    about: ['Node'],
    meaning:
      'Karpenter has not initialized the node for five minutes, and the taint of archaware is the only taint that is left: it is probably in `startupTaints` of the NodePool. The taint is never removed, so Karpenter waits for ever.',
    next: 'Move the taint from `startupTaints` to `taints` in the NodePool ([runbook](../alerts.md#nodenotinitialized)).',
  },
  NodeArchitectureChanged: {
    about: ['Node'],
    meaning:
      'The kubelet reports another architecture than before for the same Node object. The taint of the node follows. Pods and DaemonSets get no toleration for the new architecture because of this node.',
    next: 'If it is another machine under the same name, delete the Node object, so that it joins again. If not, look at the kubelet: it may be broken, or an attacker may control it ([troubleshooting](../troubleshooting.md#nodearchitecturechanged)).',
  },
  TaintHeldBack: {
    about: ['DaemonSet', 'Node'],
    meaning:
      'Nodes stay without the taint, because this DaemonSet wants pods there and its template does not tolerate the taint: its next update would remove all of its pods from them. The note has the number of nodes, the first of them, and why the template could not be changed. Three nodes get the Event, too. A taint that is there already stays.',
    next: 'Allow the account of archaware in the policy, webhook or role that the note names; or add the tolerations to the source of the DaemonSet; or use the mode `affinity`, or `taints.manage: false` ([runbook](../alerts.md#archawaretaintsheldback)).',
  },
  RolloutStopped: {
    about: ['DaemonSet'],
    meaning:
      'archaware changed the template of the DaemonSet, and its rollout has made no progress for five minutes. archaware changes no other DaemonSet of the namespace, or, for one of a system namespace, none at all and taints no node. After three other namespaces in a row it changes none for 30 minutes. Where the API server lets no pod with the tolerations in, and no node has the taint yet, archaware takes its change back, once.',
    next: 'Look at the Events of the DaemonSet. Allow the tolerations in the policy that refuses the pods, then run `kubectl rollout restart`; or label it `archaware.dev/ignore=true`, if it may lose its pods on nodes with the taint ([runbook](../alerts.md#archawarerolloutstopped)).',
  },
  WriteRefused: {
    about: ['Pod', 'Node', 'DaemonSet'],
    meaning:
      'The API server, a policy or a webhook in it refuses a write of the controller again and again; the note has its answer. Until the write succeeds, a gated pod keeps its gate. The write is tried again.',
    next: 'The answer names what refuses: change the guard policies or the roles so that they fit the configuration ([security](../security.md)), or make an exception in the other policy or webhook.',
  },
  RefusedByPolicy: {
    about: ['ReplicaSet', 'StatefulSet', 'Job', 'DaemonSet', 'any other owner of pods'],
    meaning:
      "The API server refuses to create the pods of this owner, and its answer names tolerations, node affinity or scheduling gates, which archaware adds; the note has the answer. With `placement.refused: withdraw` the webhook leaves that part out of the owner's next pods, at first for ten minutes, and twice as long after each new refusal, up to six hours. The template of a DaemonSet keeps its tolerations.",
    next: 'Allow what archaware adds in the policy that refuses it: [security](../security.md#other-admission-plug-ins).',
  },
};

const INTRODUCTION = `All Events have the type \`Warning\`, come from \`archaware-controller\`, and are in the namespace of their object; Events about nodes and other objects
without a namespace are in \`default\`. While the cause lasts, an Event is repeated every half hour. At most 16 Events about one object are written in ten
minutes, and no namespace takes more than a quarter of the Events that wait to be written. The rest is dropped and counted
(\`archaware_events_dropped_total\`).

    kubectl get events -A --field-selector reportingComponent=archaware-controller`;

/** Every Event. */
export function eventsPage(): Page {
  const rows = Object.entries(REASONS).map(([reason, { about, meaning, next }]) => [
    codes([reason]),
    about.join(', '),
    meaning,
    next,
  ]);
  const text = join(heading('Events'), INTRODUCTION, table(['reason', 'about', 'what it says', 'what to do'], rows));
  return { file: 'events.md', text };
}
