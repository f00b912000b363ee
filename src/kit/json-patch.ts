import { isObject } from './json.ts';

/** One operation of a JSON Patch (RFC 6902). */
export type Operation =
  | { readonly op: 'test' | 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

/**
 * Returns the operations of a JSON Patch (RFC 6902) that turn one JSON value into another. Each operation names the deepest path where the
 * values differ. A list that only grows at its end is appended to; any other changed list is replaced whole.
 */
export function difference(before: unknown, after: unknown, path = ''): Operation[] {
  if (before === after) return [];
  if (Array.isArray(before) && Array.isArray(after)) return differenceOfLists(before, after, path);
  if (!isObject(before) || !isObject(after)) {
    return before === undefined ? [{ op: 'add', path, value: after }] : [{ op: 'replace', path, value: after }];
  }
  const operations: Operation[] = [];
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const at = `${path}/${pointerPart(name)}`;
    if (after[name] !== undefined) operations.push(...difference(before[name], after[name], at));
    else if (before[name] !== undefined) operations.push({ op: 'remove', path: at });
  }
  return operations;
}

function differenceOfLists(before: readonly unknown[], after: readonly unknown[], path: string): Operation[] {
  if (after.length < before.length) return [{ op: 'replace', path, value: after }];
  return [
    ...before.flatMap((item, index) => difference(item, after[index], `${path}/${index}`)),
    ...after.slice(before.length).map((value): Operation => ({ op: 'add', path: `${path}/-`, value })),
  ];
}

/** Escapes a name for use as a part of a JSON Pointer (RFC 6901). */
export function pointerPart(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
