const UNITS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1e3,
  m: 60e3,
  h: 3600e3,
};
/** The form of a duration. */
export const DURATION = /^(?:[0-9]+(?:\.[0-9]+)?(?:ms|h|m|s))+$/;

/** Returns the milliseconds of a duration of the configuration (`30s`, `1h30m`), or undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  return text.length <= 40 && DURATION.test(text) ? parseGoDuration(text) : undefined;
}

/** Returns the milliseconds of a duration as Go writes and reads it (`12h0m5s`, `-1.5us`, `0`); undefined for any other text. */
export function parseGoDuration(text: string): number | undefined {
  const [, sign = '', rest = ''] = /^([+-]?)(.{1,100})$/.exec(text) ?? [];
  if (rest === '0') return 0;
  if (!/^(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/.test(rest)) return undefined;
  let total = 0;
  for (const [, amount = '', unit = ''] of rest.matchAll(/(?<![\d.])([\d.]+)([^\d.]+)/g)) {
    total += Number(amount) * (UNITS[unit] ?? 0);
  }
  return sign === '-' ? -total : total;
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
