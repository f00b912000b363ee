import { isSame, type JsonObject, stringAt } from '../../kit/json.ts';

/** The fields of a taint that archaware decides by. The API server's object may have more. */
export type Taint = { readonly key: string; readonly value: string; readonly effect: string };

/** A toleration in the form that archaware writes: operator `Equal`, one architecture as value. */
export type Toleration = {
  readonly key: string;
  readonly operator: 'Equal';
  readonly value: string;
  readonly effect: string;
};

/** Returns one toleration per architecture, in the order given. */
export function tolerationsFor(
  taint: { readonly key: string; readonly effect: string },
  architectures: readonly string[],
): Toleration[] {
  return architectures.map((value) => ({ key: taint.key, operator: 'Equal', value, effect: taint.effect }));
}

/** Returns a toleration as `key=value:effect`, as kubectl writes the taint that it is for. */
export function tolerationText({ key, value, effect }: Toleration): string {
  return `${key}=${value}:${effect}`;
}

/** Whether a toleration, as read from the API server, tolerates a taint (core/v1 `Toleration.ToleratesTaint`). */
export function tolerates(toleration: JsonObject, taint: Taint): boolean {
  const effect = stringAt(toleration, 'effect') ?? '';
  if (effect !== '' && effect !== taint.effect) return false;
  const key = stringAt(toleration, 'key') ?? '';
  const operator = stringAt(toleration, 'operator') || 'Equal';
  if (key === '') return operator === 'Exists';
  if (key !== taint.key) return false;
  return operator === 'Exists' || (operator === 'Equal' && (stringAt(toleration, 'value') ?? '') === taint.value);
}

/** Returns the wanted tolerations that are missing: no present toleration covers their taint. */
export function lacking(present: readonly JsonObject[], wanted: readonly Toleration[]): Toleration[] {
  return wanted.filter((toleration) => !present.some((other) => tolerates(other, toleration)));
}

/** Returns the toleration if it has archaware's form and this taint's key and effect, else undefined. */
export function asOurs(
  toleration: JsonObject,
  taint: { readonly key: string; readonly effect: string },
): Toleration | undefined {
  const { key, effect } = taint;
  const value = stringAt(toleration, 'value');
  const ours: Toleration = { key, operator: 'Equal', value: value ?? '', effect };
  return value !== undefined && isSame(toleration, ours) ? ours : undefined;
}
