const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
/** The form of a duration. */
export const DURATION = /^(?:[0-9]+(?:\.[0-9]+)?(?:ms|h|m|s))+$/;

/**
 * Returns the milliseconds of a duration as Go and Kubernetes write it (`30s`, `1h30m`), or undefined for anything
 * else.
 */
export function parseDuration(text: string): number | undefined {
  if (text.length > 40 || !DURATION.test(text)) return undefined;
  let total = 0;
  for (const [, amount = '', unit = ''] of text.matchAll(/(?<![0-9.])([0-9.]+)(ms|h|m|s)/g)) {
    total += Number(amount) * (UNITS[unit] ?? 0);
  }
  return total;
}

/** Returns the milliseconds of a duration that the schema has accepted. Throws for any other text. */
export function milliseconds(text: string): number {
  const parsed = parseDuration(text);
  if (parsed === undefined) throw new Error(`"${text}" is not a valid duration`);
  return parsed;
}

/** Returns a time in milliseconds since the epoch as `2026-03-01T06:13:20.000Z`. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** Returns a time in milliseconds since the epoch as `06:13:20 UTC`. A fraction of a second counts as a whole one. */
export function utcTime(ms: number): string {
  return `${isoTime(Math.ceil(ms / 1000) * 1000).slice(11, 19)} UTC`;
}
