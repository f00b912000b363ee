/** Every name that this program puts on an object or expects there. Nothing else spells one out. */

/**
 * `metadata.annotations` of a node, and of a pod that admission placed: JSON of what we set on it
 * ({@link file://./placement/node.ts}, {@link file://./placement/pod-managed.ts}).
 */
export const MANAGED_ANNOTATION = 'archaware.dev/managed';
/** `metadata.annotations` of a DaemonSet: JSON list of the template's tolerations that are ours. */
export const TOLERATIONS_ANNOTATION = 'archaware.dev/tolerations';
/** `metadata.annotations` of a pod: `amd64,arm64` or `all`, its author's own statement; no image is asked. */
export const ARCHITECTURES_ANNOTATION = 'archaware.dev/architectures';
/** `metadata.labels` of a pod or namespace: `"true"` leaves it alone. */
export const IGNORE_LABEL = 'archaware.dev/ignore';
/** `metadata.labels` of a pod: one architecture; `metadata.annotations` of a namespace: `arm64=75,amd64=25`. */
export const PREFERRED = 'archaware.dev/preferred';
/** Noe's label of the same meaning, so that its pods need not change. */
export const NOE_PREFERRED = 'arch.noe.adevinta.com/preferred';
/** `spec.schedulingGates` of a pod whose images are being looked up. */
export const ARCHITECTURE_GATE = 'archaware.dev/architecture';
/** Well-known node label for the architecture. */
export const ARCHITECTURE_LABEL = 'kubernetes.io/arch';
/** Its name before Kubernetes 1.14, which pods still ask for. */
export const OLD_ARCHITECTURE_LABEL = 'beta.kubernetes.io/arch';
/** Set by the kubelet on mirror pods of static pods; nothing can be written to those. */
export const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';
/** Well-known node label and pod selector for the operating system. */
export const OS_LABEL = 'kubernetes.io/os';
/** Its name before Kubernetes 1.14, which pods still ask for. */
export const OLD_OS_LABEL = 'beta.kubernetes.io/os';
/** Label of a node that Karpenter made: the name of its NodePool. */
export const KARPENTER_POOL = 'karpenter.sh/nodepool';
/** Labels by which a node names the pool that it belongs to, the first that a node has counts. */
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

/** `fieldManager` of every write, `reportingController` of every Event. */
export const FIELD_MANAGER = 'archaware-controller';
/** Where the manifest puts us, and where the Lease is when we run outside a cluster. */
export const DEFAULT_NAMESPACE = 'archaware';
/** The mutating configurations of ours that `clean` removes first, by kind. */
export const GUARD_POLICY = 'archaware-keep';
/** The MutatingWebhookConfiguration that calls us. */
export const WEBHOOK_CONFIGURATION = 'archaware-controller';
/** Where the replicas keep the certificates that they made themselves, the webhook's path, and what signs records of pods. */
export const WEBHOOK_SECRET = 'archaware-controller-webhook';
/** The Service in our namespace through which the API server calls us. */
export const WEBHOOK_SERVICE = 'archaware-controller';

/** The Deployment that runs us. */
export const DEPLOYMENT = 'archaware-controller';
/** `metadata.labels` of every object that runs us, with the value of {@link DEPLOYMENT}: also of the Lease. */
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
  | 'UnmanagedTaint'
  | 'NodeNotInitialized'
  | 'WriteRefused';

/** The longest note of an Event, in bytes of UTF-8 (events.k8s.io/v1 refuses a longer one). */
export const NOTE_BYTES = 1024;
