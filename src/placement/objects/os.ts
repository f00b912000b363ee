import { type JsonObject, listAt, objectAt, stringAt } from '../../kit/json.ts';
import { OS_LABEL } from '../../names.ts';

/**
 * The OS that a pod's spec asks for: `spec.os.name`, else its node selector, else the one value that every required term of its
 * node affinity gives, else `linux`.
 */
export function readOs(spec: JsonObject): string {
  const selected = stringAt(objectAt(spec, 'nodeSelector'), OS_LABEL);
  return stringAt(objectAt(spec, 'os'), 'name') || selected || osOfTerms(spec) || 'linux';
}

/** Terms are alternatives, so that only what all of them say is certain. */
function osOfTerms(spec: JsonObject): string | undefined {
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
    if (typeof value === 'string' && value !== '') return value;
  }
  return undefined;
}
