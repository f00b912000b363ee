import { type JsonObject, stringAt } from '../../kit/json.ts';

/** The fields of a taint that decide; objects of the API server are kept whole beside it. */
export type Taint = { readonly key: string; readonly value: string; readonly effect: string };

/** A toleration as we write it: one architecture, `Equal`. */
export type Toleration = {
  readonly key: string;
  readonly operator: 'Equal';
  readonly value: string;
  readonly effect: string;
};

/** The tolerations that let a pod onto nodes with these architectures, in the order given. */
export function tolerationsFor(
  taint: { readonly key: string; readonly effect: string },
  architectures: readonly string[],
): Toleration[] {
  return architectures.map((value) => ({ key: taint.key, operator: 'Equal', value, effect: taint.effect }));
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

/** Those of the wanted tolerations whose taint none of the present ones tolerates. */
export function lacking(present: readonly JsonObject[], wanted: readonly Toleration[]): Toleration[] {
  return wanted.filter((toleration) => !present.some((other) => tolerates(other, toleration)));
}

/** Whether a toleration has exactly the fields and values of one of ours. */
export function isSameToleration(toleration: JsonObject, ours: Toleration): boolean {
  return (
    toleration.key === ours.key &&
    toleration.operator === ours.operator &&
    toleration.value === ours.value &&
    toleration.effect === ours.effect &&
    Object.keys(toleration).length === 4
  );
}

/** The toleration as one of the form that we write, or undefined where it has another form, key or effect. */
export function asOurs(
  toleration: JsonObject,
  taint: { readonly key: string; readonly effect: string },
): Toleration | undefined {
  const { key, effect } = taint;
  const value = stringAt(toleration, 'value');
  const ours: Toleration = { key, operator: 'Equal', value: value ?? '', effect };
  return value !== undefined && isSameToleration(toleration, ours) ? ours : undefined;
}
