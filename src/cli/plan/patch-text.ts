import { isObject } from '../../kit/json.ts';
import type { Operation } from '../../kit/json-patch.ts';
import { ARCHITECTURE_GATE } from '../../names.ts';

const LABELS = '/metadata/labels';

/**
 * Returns what a patch adds and removes, without its tests: `supported-arch=amd64:NoSchedule`, `-example.com/gpu`,
 * `kubernetes.io/arch in (amd64)`.
 */
export function describePatch(patch: readonly Operation[]): string {
  const texts = patch.flatMap((operation) => {
    if (operation.op === 'test') return [];
    if (operation.path.startsWith(LABELS)) return describeLabels(operation);
    if (operation.path.startsWith('/metadata/')) return [];
    if (operation.path.startsWith('/spec/schedulingGates')) return `-${ARCHITECTURE_GATE}`;
    return operation.op === 'remove' ? [] : describeValue(operation.value);
  });
  return texts.join(' ') || 'removes what archaware wrote';
}

/** Returns `example.com/gpu=true`, or `-example.com/gpu` for a removed label; several if the node had no labels before. */
function describeLabels(operation: Exclude<Operation, { op: 'test' }>): string[] {
  const label = operation.path.slice(LABELS.length + 1).replaceAll('~1', '/');
  if (operation.op === 'remove') return [`-${label}`];
  const labels = isObject(operation.value) ? operation.value : { [label]: operation.value };
  return Object.entries(labels).map(([name, value]) => `${name}=${value}`);
}

function describeValue(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(describeValue);
  if (!isObject(value)) return [];
  const { key, effect, values } = value;
  if (Array.isArray(values)) return [`${key} in (${values.join(', ')})`];
  if (effect === undefined && key === undefined) return Object.values(value).flatMap(describeValue);
  return [`${key ?? '*'}${value.value ? `=${value.value}` : ''}${effect ? `:${effect}` : ''}`];
}
