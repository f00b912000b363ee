/** Returns a time in milliseconds since the epoch as `2026-03-01T06:13:20.000Z`. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** Returns a time in milliseconds since the epoch as `06:13:20 UTC`. A fraction of a second counts as a whole one. */
export function utcTime(ms: number): string {
  return `${isoTime(Math.ceil(ms / 1000) * 1000).slice(11, 19)} UTC`;
}
