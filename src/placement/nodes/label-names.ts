/** The rules for names and values of labels follow the API server (apimachinery's `IsQualifiedName`, `IsValidLabelValue`). */

const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;
const DOMAIN = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;
const MAX_DOMAIN = 253;

/** Whether a text is valid as the name in a label key: the part after the `/`, or the whole key. */
export function isLabelName(text: string): boolean {
  return NAME.test(text);
}

/** Whether a text is valid as the prefix of a label key: the part before the `/`. */
export function isLabelNamespace(text: string): boolean {
  return text.length <= MAX_DOMAIN && DOMAIN.test(text);
}

/** Whether a text is a valid label key: `name` or `domain/name`. */
export function isLabelKey(text: string): boolean {
  const slash = text.indexOf('/');
  return slash < 0 ? isLabelName(text) : isLabelNamespace(text.slice(0, slash)) && isLabelName(text.slice(slash + 1));
}

/** Whether a text is a valid label value: empty, or of the form of a name. */
export function isLabelValue(text: string): boolean {
  return text === '' || isLabelName(text);
}

/** Whether a key is in the domains `kubernetes.io` or `k8s.io`, or below them. archaware sets no such labels. */
export function isReservedKey(key: string): boolean {
  return /^([^/]+\.)?(kubernetes|k8s)\.io\//.test(key);
}
