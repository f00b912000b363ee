/** What archaware must not touch: every object without archaware's own marks, compared before and after a fault. */
import { FIELD_MANAGER } from '../../../src/names.ts';
import { at, equal, type JsonObject, object, objects, text } from '../../simulator/json.ts';

/** The objects of a cluster by `pods shop/web`, each without what archaware or Kubernetes itself changes. */
export type Foreign = ReadonlyMap<string, JsonObject>;

/** The key of the taints and tolerations in these tests; the default of the configuration. */
export const TAINT_KEY = 'supported-arch';

/** Kinds that archaware and Kubernetes write all the time, and that nobody else's wishes are in. */
const NOT_COMPARED: ReadonlySet<string> = new Set(['leases', 'events', 'controllerrevisions']);
export const isCompared = (plural: string): boolean => !NOT_COMPARED.has(plural);

const OF_KUBERNETES =
  /^(?:node\.alpha\.|node\.)?kubernetes\.io\/|^deployment\.kubernetes\.io\/|^deprecated\.daemonset\./;
const METADATA = ['name', 'namespace', 'uid', 'labels', 'ownerReferences', 'finalizers'] as const;

/** The name of an object in a comparison. */
export function keyOf(plural: string, item: JsonObject): string {
  const namespace = text(at(item, 'metadata', 'namespace'));
  return `${plural} ${namespace === '' ? '' : `${namespace}/`}${text(at(item, 'metadata', 'name'))}`;
}

/** The object without status, versions, archaware's marks, and what Kubernetes' own components set later. */
export function foreignOf(item: JsonObject): JsonObject {
  const { metadata, status: _status, kind: _kind, apiVersion: _version, ...rest } = item;
  const kept = Object.fromEntries(METADATA.map((field) => [field, at(metadata, field)]));
  const annotations = Object.fromEntries(
    Object.entries(object(at(metadata, 'annotations'))).filter(
      ([name]) => !name.startsWith('archaware.dev/') && !OF_KUBERNETES.test(name),
    ),
  );
  const spec = rest.spec === undefined ? {} : { spec: foreignSpec(object(rest.spec)) };
  return JSON.parse(JSON.stringify({ ...rest, ...spec, metadata: { ...kept, annotations } }));
}

/** A pod's, a node's or a workload's spec. */
function foreignSpec({ nodeName: _bound, template, ...spec }: JsonObject): JsonObject {
  const own = (list: unknown) =>
    objects(list).filter(({ key }) => key !== TAINT_KEY && !text(key).startsWith('node.kubernetes.io/'));
  const inner = template === undefined ? {} : { template: { ...object(template), spec: templateSpec(template) } };
  return { ...spec, ...inner, tolerations: own(spec.tolerations), taints: own(spec.taints) };
}

const templateSpec = (template: unknown) => foreignSpec(object(at(template, 'spec')));

/**
 * What became of others' objects: which are gone, which were changed and where, and which archaware made. `mayGo` names
 * the objects that the fault itself removes.
 */
export function differences(before: Foreign, after: Foreign, mayGo: (key: string) => boolean): string[] {
  const found: string[] = [];
  for (const [key, had] of before) {
    const has = after.get(key);
    if (has === undefined || !equal(at(had, 'metadata', 'uid'), at(has, 'metadata', 'uid'))) {
      if (!mayGo(key)) found.push(`${key} is gone`);
    } else if (!equal(had, has)) found.push(`${key}: ${changed(had, has).join(', ')}`);
  }
  return found;
}

/** The paths at which two objects differ, with both values. */
function changed(had: unknown, has: unknown, path = ''): string[] {
  if (equal(had, has)) return [];
  const [one, other] = [object(had), object(has)];
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])];
  if (names.length === 0) return [`${path} was ${JSON.stringify(had)}, is ${JSON.stringify(has)}`];
  return names.flatMap((name) => changed(one[name], other[name], `${path}.${name}`));
}

/** The one object that archaware makes for itself, beside Leases and Events. */
export const isOfStatus = (key: string): boolean => key === 'configmaps archaware/archaware-controller-status';

/** Whether archaware has written the object at some time. */
export function isMadeByUs(item: JsonObject): boolean {
  return objects(at(item, 'metadata', 'managedFields')).some(({ manager }) => manager === FIELD_MANAGER);
}
