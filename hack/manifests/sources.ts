/** kustomize drops comments and sorts fields; this restores both from the files of the objects. */
import { readdir, readFile } from 'node:fs/promises';
import { Document, isMap, isScalar, isSeq, type Node, Pair, parseAllDocuments, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import type { ManifestObject } from './kustomize.ts';

/** The parsed files. */
export type Sources = {
  /** By kind and name. */
  readonly objects: ReadonlyMap<string, { readonly node: Node; readonly comment: string | undefined }>;
  /** The values that patches add, by their content. */
  readonly added: ReadonlyMap<string, Node>;
};

/** The order of fields without a source. */
const USUAL: readonly unknown[] = ['apiVersion', 'kind', 'metadata', 'name', 'namespace', 'labels'];

/** Reads every file of objects and every JSON Patch below a directory. */
export async function readSources(directory: URL): Promise<Sources> {
  const objects: Map<string, { node: Node; comment: string | undefined }> = new Map();
  const added = new Map<string, Node>();
  const files = await readdir(directory, { recursive: true });
  for (const file of files.filter((name) => name.endsWith('.yaml')).sort()) {
    if (/(kustomization|config)\.yaml$/.test(file)) continue;
    for (const document of parseAllDocuments(await readFile(new URL(file, directory), 'utf8'))) {
      const { contents } = document;
      if (isSeq(contents)) readPatch(contents, document.commentBefore, added);
      if (!isMap(contents)) continue;
      const comment = document.commentBefore ?? contents.commentBefore ?? undefined;
      contents.commentBefore = null;
      objects.set(keyOf(document.toJS()), { node: contents, comment });
    }
  }
  return { objects, added };
}

/** Writes the objects as YAML, with the order and comments of their sources. */
export function writeObjects(all: readonly ManifestObject[], { objects, added }: Sources): string {
  const documents = all.map((object) => {
    const source = objects.get(keyOf(object));
    const document = new Document(written(object, source?.node, added));
    document.commentBefore = source?.comment ?? null;
    return document.toString({ lineWidth: 0, indentSeq: false, flowCollectionPadding: false });
  });
  return documents.join('---\n');
}

function readPatch(operations: YAMLSeq, head: string | null, added: Map<string, Node>): void {
  operations.items.forEach((operation, index) => {
    const value = isMap(operation) ? operation.get('value', true) : undefined;
    if (!isMap(operation) || !isMap(value)) return;
    const comment = operation.commentBefore ?? (index === 0 ? (operations.commentBefore ?? head) : null);
    if (comment) value.commentBefore = comment;
    added.set(contentOf(value.toJSON()), value);
  });
}

/**
 * Returns the value as a node: the source's own if they are equal, otherwise with the source's order, style and
 * comments.
 */
function written(value: unknown, source: Node | undefined, added: Sources['added']): Node {
  const same = source !== undefined && contentOf(jsonOf(source)) === contentOf(value) ? source : undefined;
  const found = same ?? (source === undefined ? added.get(contentOf(value)) : undefined);
  if (found !== undefined) return copyOf(found);
  if (Array.isArray(value)) return writtenList(value, isSeq(source) ? source : undefined, added);
  if (typeof value === 'object' && value !== null) {
    return writtenMap(Object.entries(value), isMap(source) ? source : undefined, added);
  }
  const scalar = new Scalar(value);
  if (typeof value === 'string' && value.includes('\n')) scalar.type = Scalar.BLOCK_LITERAL;
  return scalar;
}

function writtenList(items: readonly unknown[], source: YAMLSeq | undefined, added: Sources['added']): YAMLSeq {
  const list = new YAMLSeq();
  if (source?.commentBefore) list.commentBefore = source.commentBefore;
  const before = (source?.items ?? []).filter(isNode);
  for (const item of items) {
    const same = before.find((node) => contentOf(jsonOf(node)) === contentOf(item));
    const named = before.find((node) => isMap(node) && node.get('name') === nameOf(item) && nameOf(item) !== undefined);
    list.items.push(written(item, same ?? named, added));
  }
  // The style of an empty list says nothing.
  list.flow = source === undefined || source.items.length === 0 ? list.items.every(isScalar) : (source.flow ?? false);
  return list;
}

function writtenMap(
  entries: readonly (readonly [string, unknown])[],
  source: YAMLMap | undefined,
  added: Sources['added'],
): YAMLMap {
  const map = new YAMLMap();
  if (source?.commentBefore) map.commentBefore = source.commentBefore;
  const known = (source?.items ?? []).flatMap(({ key }) => (isScalar(key) ? key : []));
  const order = source === undefined ? USUAL : known.map(({ value }) => value);
  const place = (name: string) => order.indexOf(name) + 1 || order.length + 1;
  for (const [name, value] of [...entries].sort(([one], [other]) => place(one) - place(other))) {
    const key = known.find((node) => node.value === name);
    const child = source?.get(name, true);
    map.items.push(new Pair(key === undefined ? new Scalar(name) : key.clone(), written(value, child, added)));
  }
  return map;
}

function isNode(value: unknown): value is Node {
  return isMap(value) || isSeq(value) || isScalar(value);
}

function copyOf(node: Node): Node {
  const copy: unknown = node.clone();
  if (!isNode(copy)) throw new Error('a copy of a node is not a node');
  return copy;
}

function jsonOf(node: Node): unknown {
  return node.toJSON();
}

function nameOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'name' in value ? value.name : undefined;
}

function keyOf(object: { kind?: unknown; metadata?: { name?: unknown } }): string {
  return `${object.kind}/${object.metadata?.name}`;
}

/** JSON with sorted fields. */
function contentOf(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([one], [other]) => (one < other ? -1 : 1)))
      : inner,
  );
}
