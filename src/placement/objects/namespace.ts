import { type JsonObject, objectAt, stringAt, stringsAt } from '../../kit/json.ts';
import { PREFERRED } from '../../names.ts';

/** A namespace, reduced to the fields that archaware reads. */
export type Namespace = {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly preferred: string | undefined;
};

/** Reads a namespace from the API server's object. Never throws. */
export function readNamespace(object: JsonObject): Namespace {
  const metadata = objectAt(object, 'metadata');
  return {
    name: stringAt(metadata, 'name') ?? '',
    uid: stringAt(metadata, 'uid') ?? '',
    resourceVersion: stringAt(metadata, 'resourceVersion') ?? '',
    labels: stringsAt(metadata, 'labels'),
    preferred: stringAt(objectAt(metadata, 'annotations'), PREFERRED),
  };
}
