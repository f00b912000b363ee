/** Every name that this program puts on an object or expects there. Nothing else spells one out. */

/** `metadata.annotations` of a node: JSON of what we set on it ({@link file://./placement/node.ts}). */
export const MANAGED_ANNOTATION = 'archaware.dev/managed';
/** `metadata.annotations` of a DaemonSet: JSON list of the template's tolerations that are ours. */
export const TOLERATIONS_ANNOTATION = 'archaware.dev/tolerations';
/** `metadata.annotations` of a pod: `amd64,arm64` or `all`, its author's own statement; no image is asked. */
export const ARCHITECTURES_ANNOTATION = 'archaware.dev/architectures';
/** `metadata.labels` of a pod or namespace: `"true"` leaves it alone. */
export const IGNORE_LABEL = 'archaware.dev/ignore';
/** Set by the kubelet on mirror pods of static pods; nothing can be written to those. */
export const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';
/** Well-known node label and pod selector for the operating system. */
export const OS_LABEL = 'kubernetes.io/os';

/** `fieldManager` of every write, `reportingController` of every Event. */
export const FIELD_MANAGER = 'archaware-controller';
/** Where the manifest puts us, and where the Lease is when we run outside a cluster. */
export const DEFAULT_NAMESPACE = 'archaware';
/** The mutating configurations of ours that `clean` removes first, by kind. */
export const GUARD_POLICY = 'archaware-keep';

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
  | 'CertificateInvalid';
