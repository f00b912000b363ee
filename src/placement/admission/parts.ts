import { isObject, type JsonObject } from '../../kit/json.ts';

/** The fields of a pod's metadata and of its spec that admission reads or writes, in full. */
const METADATA = new Set(['name', 'generateName', 'labels', 'annotations', 'deletionTimestamp']);
const SPEC = new Set([
  ...['tolerations', 'affinity', 'schedulingGates', 'nodeSelector', 'nodeName', 'os', 'runtimeClassName'],
  ...['priorityClassName', 'imagePullSecrets'],
]);

/**
 * Returns the parts of a pod that admission reads or writes. The other fields are most of a pod, and some of them differ between
 * the pods of one template: the names of volumes for tokens, the times of managed fields. So all pods of one template usually have
 * the same parts, and one answer serves them all.
 */
export function partsOf(pod: JsonObject): JsonObject {
  return {
    ...('metadata' in pod ? { metadata: objectOr(pod.metadata, metadataOf) } : {}),
    ...('spec' in pod ? { spec: objectOr(pod.spec, specOf) } : {}),
    ...('status' in pod ? { status: objectOr(pod.status, ({ phase }) => ({ phase })) } : {}),
  };
}

function metadataOf(metadata: JsonObject): JsonObject {
  const parts = chosen(metadata, METADATA);
  const { ownerReferences: owners } = metadata;
  if (Array.isArray(owners)) {
    parts.ownerReferences = owners
      .filter(isObject)
      .map(({ apiVersion, kind, controller }) => ({ apiVersion, kind, controller }));
  }
  return parts;
}

function specOf(spec: JsonObject): JsonObject {
  const parts = chosen(spec, SPEC);
  for (const field of ['initContainers', 'containers']) {
    const containers = spec[field];
    if (!Array.isArray(containers)) continue;
    parts[field] = containers.filter(isObject).map(({ image, imagePullPolicy }) => ({ image, imagePullPolicy }));
  }
  const { volumes } = spec;
  const images = Array.isArray(volumes) ? volumes.filter(isImageVolume) : [];
  if (images.length > 0) parts.volumes = images.map(({ name, image }) => ({ name, image }));
  return parts;
}

function isImageVolume(volume: unknown): volume is JsonObject {
  return isObject(volume) && isObject(volume.image);
}

/** Returns the chosen fields in the order in which they are in the object: a patch names them in the same order. */
function chosen(object: JsonObject, names: ReadonlySet<string>): Record<string, unknown> {
  const parts: Record<string, unknown> = {};
  for (const name in object) if (names.has(name)) parts[name] = object[name];
  return parts;
}

/** A value of another type stays as it is, because a patch would replace it. */
function objectOr(value: unknown, read: (object: JsonObject) => JsonObject): unknown {
  return isObject(value) ? read(value) : value;
}
