import { ConfigurationError } from '../../../config/shown-problems.ts';
import { messageOf } from '../../../kit/errors.ts';
import { isObject, type JsonObject, listAt, stringAt } from '../../../kit/json.ts';
import { parseDocuments } from '../../manifest-objects.ts';

/**
 * Returns the values of a YAML (or JSON) file, one for each document. Throws {@link ConfigurationError} if it cannot be
 * parsed.
 */
export function readDocuments(file: string, text: string): unknown[] {
  try {
    return parseDocuments(text).filter((value) => value !== null && value !== undefined);
  } catch (error) {
    throw new ConfigurationError([`${file}: ${messageOf(error).split('\n', 1)[0]}`]);
  }
}

/**
 * Returns the objects of manifests. The items of a `List` (or `PodPlacementConfigList`) become objects of their own,
 * with the list's kind if they lack one.
 */
export function flattenLists(documents: readonly unknown[]): JsonObject[] {
  return documents.filter(isObject).flatMap((object) => {
    const kind = stringAt(object, 'kind') ?? '';
    const items = listAt(object, 'items');
    if (!kind.endsWith('List') || items === undefined) return [object];
    const inherited = kind === 'List' ? {} : { apiVersion: object.apiVersion, kind: kind.slice(0, -'List'.length) };
    return items.map((item) => ({ ...inherited, ...item }));
  });
}
