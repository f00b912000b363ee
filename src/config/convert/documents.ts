import { parseAllDocuments } from 'yaml';
import { isObject, type JsonObject, listAt, stringAt } from '../../kit/json.ts';
import { ConfigurationError } from '../problems.ts';

/** The values of a YAML (or JSON) file, a document each. Throws {@link ConfigurationError} where it is none. */
export function readDocuments(file: string, text: string): unknown[] {
  try {
    return [...parseAllDocuments(text, { prettyErrors: false })]
      .map((document): unknown => {
        const [error] = document.errors;
        if (error !== undefined) throw error;
        return document.toJS({ maxAliasCount: 100 });
      })
      .filter((value) => value !== null && value !== undefined);
  } catch (error) {
    const message = error instanceof Error ? error.message.split('\n')[0] : String(error);
    throw new ConfigurationError([`${file}: ${message}`]);
  }
}

/** The objects of manifests, those of a `List` (or `PodPlacementConfigList`) one by one, with the list's kind if they lack one. */
export function flattenLists(documents: readonly unknown[]): JsonObject[] {
  return documents.filter(isObject).flatMap((object) => {
    const kind = stringAt(object, 'kind') ?? '';
    const items = listAt(object, 'items');
    if (!kind.endsWith('List') || items === undefined) return [object];
    const inherited = kind === 'List' ? {} : { apiVersion: object.apiVersion, kind: kind.slice(0, -'List'.length) };
    return items.map((item) => ({ ...inherited, ...item }));
  });
}
