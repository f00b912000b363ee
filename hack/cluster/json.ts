import { at, list } from '../../test/simulator/json.ts';

export { at };

/** Returns the text at the path. Throws if there is none, so that a test fails right there. */
export function textAt(value: unknown, ...path: readonly (string | number)[]): string {
  const found = at(value, ...path);
  if (typeof found !== 'string') throw new Error(`no text at ${path.join('.')} in ${JSON.stringify(value)}`);
  return found;
}

/** Returns the list at the path; empty if there is none. */
export function listAt(value: unknown, ...path: readonly (string | number)[]): readonly unknown[] {
  return list(at(value, ...path));
}
