import { isObject } from './json.ts';

/** One operation of a JSON Patch (RFC 6902). */
export type Operation =
  | { readonly op: 'test' | 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

/**
 * The operations of a JSON Patch (RFC 6902) that make one JSON value of another, at the deepest path where they differ:
 * what grows at its end is appended to, other lists are changed as a whole.
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
  if (after.length < before.length) {
    return [{ op: 'replace', path, value: after }];
  }
  return [
    ...before.flatMap((item, index) => difference(item, after[index], `${path}/${index}`)),
    ...after.slice(before.length).map((value): Operation => ({ op: 'add', path: `${path}/-`, value })),
  ];
}

/** A name as a part of a JSON pointer (RFC 6901). */
export function pointerPart(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
