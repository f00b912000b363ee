import { isDeepStrictEqual } from 'node:util';
import { isObject } from '../../kit/json.ts';
import type { Operation } from '../../kit/json-patch.ts';
import { ARCHITECTURE_GATE } from '../../names.ts';

const LABELS = '/metadata/labels';

type PatchedChange = Exclude<Operation, { op: 'test' }>;

/**
 * Returns what a patch adds and removes: `supported-arch=amd64:NoSchedule`, `-example.com/gpu`, `kubernetes.io/arch in (amd64)`. A
 * patch that replaces a list tests the old one first, so the text has only what differs. `kind`: of the object that is patched.
 */
export function describePatch(patch: readonly Operation[], kind: string): string {
  const before = new Map(
    patch.flatMap((operation) => (operation.op === 'test' ? [[operation.path, operation.value]] : [])),
  );
  const changes = patch.flatMap((operation): PatchedChange[] => (operation.op === 'test' ? [] : [operation]));
  const texts = changes.flatMap((change) => {
    if (change.path.startsWith(LABELS)) return describeLabels(change);
    if (change.path.startsWith('/metadata/')) return [];
    if (change.path.startsWith('/spec/schedulingGates')) return `-${ARCHITECTURE_GATE}`;
    return describeLists(before.get(change.path), change.op === 'remove' ? undefined : change.value);
  });
  if (texts.length > 0) return texts.join(' ');
  if (changes.some(({ path }) => !path.startsWith('/metadata/'))) return 'removes what archaware wrote';
  const verb = changes.every(({ op }) => op === 'remove') ? 'removes' : 'updates';
  return `${verb} archaware's record${kind === 'DaemonSet' ? ', no rollout' : ''}`;
}

/** Returns `example.com/gpu=true`, or `-example.com/gpu` for a removed label; several if the node had no labels before. */
function describeLabels(change: PatchedChange): string[] {
  const label = change.path.slice(LABELS.length + 1).replaceAll('~1', '/');
  if (change.op === 'remove') return [`-${label}`];
  const labels = isObject(change.value) ? change.value : { [label]: change.value };
  return Object.entries(labels).map(([name, value]) => `${name}=${value}`);
}

function describeLists(before: unknown, after: unknown): string[] {
  if (!Array.isArray(before)) return describeValue(after);
  const now: readonly unknown[] = Array.isArray(after) ? after : [];
  const isIn = (list: readonly unknown[]) => (entry: unknown) => list.some((other) => isDeepStrictEqual(entry, other));
  const added = now.filter((entry) => !isIn(before)(entry));
  const gone = before.filter((entry) => !isIn(now)(entry));
  return [...added.flatMap(describeValue), ...gone.flatMap(describeValue).map((text) => `-${text}`)];
}

function describeValue(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(describeValue);
  if (!isObject(value)) return [];
  const { key, effect, values } = value;
  if (Array.isArray(values)) return [`${key} in (${values.join(', ')})`];
  if (effect === undefined && key === undefined) return Object.values(value).flatMap(describeValue);
  return [`${key ?? '*'}${value.value ? `=${value.value}` : ''}${effect ? `:${effect}` : ''}`];
}
