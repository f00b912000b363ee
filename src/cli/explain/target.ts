import { ConfigurationError } from '../../config/shown-problems.ts';
import { nearest } from '../../kit/nearest.ts';
import { KINDS } from '../survey/kind-paths.ts';

/** What to explain: an object of the cluster, or those in files (`-`: standard input). */
export type ExplainTarget = ObjectTarget | { readonly kind: 'namespace'; readonly name: string };

/** What to explain, but for a namespace. */
export type ObjectTarget =
  | { readonly kind: 'files'; readonly files: readonly string[]; readonly namespace: string | undefined }
  | {
      readonly kind: 'object';
      /** The kind as the API names it: `Deployment`. */
      readonly of: string;
      /** Undefined: the namespace of the context. */
      readonly namespace: string | undefined;
      readonly name: string;
    };

const KNOWN_KINDS = KINDS.map(({ kind }) => kind.toLowerCase()).join(', ');
const KIND_NAMES: readonly string[] = KINDS.flatMap(({ names }) => names);
const NAMESPACES: readonly string[] = ['namespace', 'namespaces', 'ns'];

const EXPECTED = 'expected [KIND/]NAME, KIND NAME, NAMESPACE/POD, namespace/NAME, or -f FILE and nothing else';

/** Other kinds that kubectl users write; none of them creates pods that archaware places. */
const OTHER_KINDS: readonly string[] = (
  'node nodes no service services svc configmap cm secret ' +
  'ingress ing pvc persistentvolumeclaim serviceaccount sa endpoints hpa'
).split(' ');

/** Returns what to add to the error about a namespace that does not exist, if a user may have meant a kind. */
export function kindHint(word: string): string {
  if (OTHER_KINDS.includes(word.toLowerCase())) return `; explain knows no ${word}, only ${KNOWN_KINDS}`;
  const long = KIND_NAMES.filter((name) => name.length > 3);
  const near = nearest(word, long);
  return near === undefined ? '' : `; did you mean the kind ${near}?`;
}

/**
 * Returns what the operands of `explain` name: `web-0`, `deployment/web`, `deploy web`, or `shop/web-0` with the namespace in front.
 *
 * @throws ConfigurationError
 */
export function explainTarget(
  operands: readonly string[],
  files: readonly string[],
  namespace: string | undefined,
): ExplainTarget {
  const refuse = () => new ConfigurationError([`explain: got ${JSON.stringify(operands.join(' '))}, ${EXPECTED}`]);
  if (files.length > 0) {
    if (files.includes('') || operands.length > 0) throw refuse();
    return { kind: 'files', files, namespace };
  }
  const words = operands.length === 2 ? operands : (operands[0] ?? '').split('/');
  if (operands.length > 2 || words.length > 2 || words.some((word) => word === '' || word.includes('/')))
    throw refuse();
  const [first = '', name] = words;
  if (name === undefined) return { kind: 'object', of: 'Pod', namespace, name: first };
  const [resource = ''] = first.toLowerCase().split('.', 1);
  if (NAMESPACES.includes(resource)) return { kind: 'namespace', name };
  const known = KINDS.find(({ names }) => names.includes(resource));
  if (known !== undefined) return { kind: 'object', of: known.kind, namespace, name };
  if (operands.length === 2) {
    const near = nearest(first, KIND_NAMES);
    const meant = near === undefined ? '' : `; did you mean ${near}?`;
    throw new ConfigurationError([
      `explain: got the kind ${JSON.stringify(first)}, expected one of ${KNOWN_KINDS}${meant}`,
    ]);
  }
  if (namespace !== undefined && namespace !== first) {
    throw new ConfigurationError([
      `explain: got ${first} as the namespace in ${operands[0]}, and ${namespace} in --namespace${kindHint(first)}`,
    ]);
  }
  return { kind: 'object', of: 'Pod', namespace: first, name };
}
