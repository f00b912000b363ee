/** Every name that the program writes on an object or expects there. No other file spells one out. */

/**
 * `metadata.annotations` of a node, and of a pod that admission placed: JSON of what the controller set on it; see
 * {@link file://./placement/nodes/node.ts} and {@link file://./placement/objects/pod-record.ts}.
 */
export const MANAGED_ANNOTATION = 'archaware.dev/managed';
/** `metadata.annotations` of a DaemonSet: JSON list of the template's tolerations that the controller added. */
export const TOLERATIONS_ANNOTATION = 'archaware.dev/tolerations';
/**
 * No object has this annotation. Archaware's entry in the `metadata.managedFields` of a DaemonSet owns its name, so the entry, and
 * with it the evidence that archaware wrote to the template, outlives a record that somebody removes.
 */
export const WROTE_ANNOTATION = 'archaware.dev/wrote';
/** `metadata.annotations` of a pod: `amd64,arm64` or `all`, stated by its author; its images are not looked up. */
export const ARCHITECTURES_ANNOTATION = 'archaware.dev/architectures';
/** `metadata.labels` of a pod or namespace: with `"true"` the controller leaves it alone. */
export const IGNORE_LABEL = 'archaware.dev/ignore';
/** `metadata.annotations` of the Lease: since when the leader cannot release pods; meanwhile no replica gates any. */
export const RELEASES_FAIL_ANNOTATION = 'archaware.dev/releases-fail';
/** `metadata.labels` of a pod: one architecture. `metadata.annotations` of a namespace: `arm64=75,amd64=25`. */
export const PREFERRED = 'archaware.dev/preferred';
/** `metadata.labels` of a pod, with `webhook.verdictLabels`: what admission decided. */
export const VERDICT_LABEL = 'archaware.dev/verdict';
/** The label of Noe with the same meaning, so that pods written for Noe need no change. */
export const NOE_PREFERRED = 'arch.noe.adevinta.com/preferred';
/** `metadata.annotations` of a namespace: with `"true"` the leader keeps {@link REPORT_RESULT_ANNOTATION} there. */
export const REPORT_ANNOTATION = 'archaware.dev/report';
/** `metadata.annotations` of a namespace: what the leader last saw there, as JSON; see `placement/objects/namespace.ts`. */
export const REPORT_RESULT_ANNOTATION = 'archaware.dev/report-result';
/** `spec.schedulingGates` of a pod whose images are being looked up. */
export const ARCHITECTURE_GATE = 'archaware.dev/architecture';
/** `metadata.labels` of an object that waits in a queue of Kueue: the name of the queue. */
export const KUEUE_QUEUE = 'kueue.x-k8s.io/queue-name';
/** The well-known node label for the architecture. */
export const ARCHITECTURE_LABEL = 'kubernetes.io/arch';
/** The name of that label before Kubernetes 1.14, which some pods still ask for. */
export const OLD_ARCHITECTURE_LABEL = 'beta.kubernetes.io/arch';
export const ARCHITECTURE_LABELS: readonly string[] = [ARCHITECTURE_LABEL, OLD_ARCHITECTURE_LABEL];
/** The kubelet sets it on mirror pods of static pods; the API server refuses changes to those. */
export const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';
/** The well-known node label and pod selector for the operating system. */
export const OS_LABEL = 'kubernetes.io/os';
/** The name of that label before Kubernetes 1.14, which some pods still ask for. */
export const OLD_OS_LABEL = 'beta.kubernetes.io/os';
/** Label of a node that Karpenter made: the name of its NodePool. */
export const KARPENTER_POOL = 'karpenter.sh/nodepool';
/** Labels that name the pool of a node; the first one that a node has counts. */
export const POOL_LABELS = {
  [KARPENTER_POOL]: 'NodePool',
  'eks.amazonaws.com/nodegroup': 'EKS node group',
  'cloud.google.com/gke-nodepool': 'GKE node pool',
  'kubernetes.azure.com/agentpool': 'AKS node pool',
  agentpool: 'AKS node pool',
} as const;
/** Karpenter sets it to `true` when a node has joined; until then nothing is scheduled there. */
export const KARPENTER_REGISTERED = 'karpenter.sh/registered';
/** Karpenter sets it to `true` when a node is Ready and its startup taints are gone. */
export const KARPENTER_INITIALIZED = 'karpenter.sh/initialized';

/** `fieldManager` of every write and `reportingController` of every Event. */
export const FIELD_MANAGER = 'archaware-controller';
/**
 * `fieldManager` of the dry runs that try whether archaware's tolerations in DaemonSets are protected. The protection lets writes of
 * {@link FIELD_MANAGER} pass, so the dry runs need another name.
 */
export const PROBE_FIELD_MANAGER = 'archaware-probe';
/** The namespace of the manifests, and of the Lease when the controller runs outside a cluster. */
export const DEFAULT_NAMESPACE = 'archaware';
/** The name of the policy that keeps tolerations in DaemonSets, and of its binding. `clean` removes both once no node is tainted. */
export const GUARD_POLICY = 'archaware-keep';
/** The name of the policy that keeps tolerations in pods, and of its binding. `clean` removes both, too. */
export const POD_GUARD_POLICY = 'archaware-keep-pods';
/** The MutatingWebhookConfiguration that calls the controller. */
export const WEBHOOK_CONFIGURATION = 'archaware-controller';
/** The Secret in which the replicas keep the certificates that they created, and the path of the webhook. */
export const WEBHOOK_SECRET = 'archaware-controller-webhook';
/** The Service in the controller's namespace through which the API server calls it. */
export const WEBHOOK_SERVICE = 'archaware-controller';

/** The ClusterRole for people who only read: `explain`, `plan`, `report` and `status`. The manifests bind it to nobody. */
export const READER_ROLE = 'archaware-reader';

/** The ConfigMap in which the leader writes what it knows, for `status`. It is in the namespace of the Lease. */
export const STATUS_CONFIG_MAP = 'archaware-controller-status';

/** The name of the policy that places pods of known images as they are created, and of its binding. */
export const PLACE_POLICY = 'archaware-place';
/** Likewise, for templates of DaemonSets. */
export const PLACE_DAEMONSETS_POLICY = 'archaware-place-daemonsets';
/** The object (KnownImages) in which the leader publishes what that policy reads. It is in the namespace of the Lease. */
export const KNOWN_IMAGES = 'known';

/** Returns the path of that object. */
export function knownImagesPath(namespace: string): string {
  return `/apis/archaware.dev/v1/namespaces/${encodeURIComponent(namespace)}/knownimages/${KNOWN_IMAGES}`;
}

/** The Deployment that runs the controller. */
export const DEPLOYMENT = 'archaware-controller';
/** `metadata.labels` of every object that belongs to the controller, including the Lease; the value is {@link DEPLOYMENT}. */
export const APP_LABEL = 'app.kubernetes.io/name';

/** The closed list of Event reasons. */
export type EventReason =
  | 'ImageUnresolvable'
  | 'NoCommonArchitecture'
  | 'OpenPlacement'
  | 'StaleToleration'
  | 'WrongNode'
  | 'WriteContested'
  | 'PullSecretUnusable'
  | 'LabelConflict'
  | 'ConfigurationRejected'
  | 'CertificateInvalid'
  | 'JoinedUntainted'
  | 'NodeNotInitialized'
  | 'NodeArchitectureChanged'
  | 'WriteRefused'
  | 'RefusedByPolicy'
  | 'TaintHeldBack'
  | 'RolloutStopped'
  | 'TooLarge';

/** The longest note of an Event, in bytes of UTF-8 (events.k8s.io/v1 refuses a longer one). */
export const NOTE_BYTES = 1024;
