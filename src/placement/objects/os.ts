import { cut } from '../../kit/cut.ts';
import { type JsonObject, listAt, objectAt, stringAt } from '../../kit/json.ts';
import { OS_LABEL } from '../../names.ts';

/**
 * Reads the OS that a pod's spec asks for: `spec.os.name`, else the node selector, else the one value that all required terms of
 * the node affinity agree on, else `linux`.
 */
export function readOs(spec: JsonObject): string {
  const selected = stringAt(objectAt(spec, 'nodeSelector'), OS_LABEL);
  return stringAt(objectAt(spec, 'os'), 'name') || selected || osOfTerms(spec) || 'linux';
}

/** The longest value of a label. Older API servers accept longer values in an affinity, which fit no node. */
const LONGEST_OS = 63;

/** Terms are alternatives, so an OS is certain only if every term names it. */
function osOfTerms(spec: JsonObject): string | undefined {
  // Nearly no pod has an affinity, and this runs for each pod.
  if (spec.affinity === undefined) return undefined;
  const affinity = objectAt(objectAt(spec, 'affinity'), 'nodeAffinity');
  const terms = listAt(objectAt(affinity, 'requiredDuringSchedulingIgnoredDuringExecution'), 'nodeSelectorTerms') ?? [];
  const [first, ...others] = terms.map(osOfTerm);
  return others.every((os) => os === first) ? first : undefined;
}

function osOfTerm(term: JsonObject): string | undefined {
  for (const expression of listAt(term, 'matchExpressions') ?? []) {
    const { key, operator, values } = expression;
    if (key !== OS_LABEL || operator !== 'In' || !Array.isArray(values) || values.length !== 1) continue;
    const [value]: unknown[] = values;
    if (typeof value === 'string' && value !== '') return cut(value, LONGEST_OS);
  }
  return undefined;
}
