/** Names and values of labels as the API server takes them (apimachinery's `IsQualifiedName`, `IsValidLabelValue`). */

const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;
const DOMAIN = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;
const MAX_DOMAIN = 253;

/** What a key of a label has after its `/`, or is as a whole. */
export function isLabelName(text: string): boolean {
  return NAME.test(text);
}

/** What a key of a label may have before a `/`. */
export function isLabelNamespace(text: string): boolean {
  return text.length <= MAX_DOMAIN && DOMAIN.test(text);
}

/** `name` or `domain/name`. */
export function isLabelKey(text: string): boolean {
  const slash = text.indexOf('/');
  return slash < 0 ? isLabelName(text) : isLabelNamespace(text.slice(0, slash)) && isLabelName(text.slice(slash + 1));
}

/** A value of a label: empty, or of the form of a name. */
export function isLabelValue(text: string): boolean {
  return text === '' || isLabelName(text);
}

/** Whether a key is of the domains `kubernetes.io` or `k8s.io`, or below them: what is there is not ours to set. */
export function isReservedKey(key: string): boolean {
  return /^([^/]+\.)?(kubernetes|k8s)\.io\//.test(key);
}
