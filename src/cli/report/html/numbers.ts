import type { Summary, Tally } from '../../../placement/readiness/report.ts';

export type Measure = Summary['measure'];

const NUMBER = new Intl.NumberFormat('en-US', { maximumFractionDigits: 2 });

/** A space at which a line does not break. */
const SPACE = '\u00a0';

/** Returns a number with at most two decimals: `1,234.5`. A number above zero never becomes `0`. */
export function numberText(value: number): string {
  return value > 0 && value < 0.01 ? '<0.01' : NUMBER.format(value);
}

/** Returns a share as a percentage, rounded down: only what is complete is 100 %, and only what is nothing is 0 %. */
export function percent(share: number): string {
  if (share <= 0) return `0${SPACE}%`;
  // Sums of floating-point numbers may lie a hair below the whole number.
  const whole = Math.min(100, Math.floor(share * 100 + 1e-6));
  return whole === 0 ? `<1${SPACE}%` : `${whole}${SPACE}%`;
}

/** Returns a number with its noun: `1 workload`, `2 workloads`. */
export function count(value: number, noun: string): string {
  return `${numberText(value)}${SPACE}${noun}${value === 1 ? '' : 's'}`;
}

/** Returns what shares count: `5 cores` or `5 replicas`. */
export function amount(tally: Tally, measure: Measure): string {
  return measure === 'cpu' ? count(tally.cpu, 'core') : count(tally.replicas, 'replica');
}

/** Returns a number of bytes in the unit that suits it. */
export function memoryText(bytes: number): string {
  const units = ['KiB', 'MiB', 'GiB', 'TiB'];
  let [value, unit] = [bytes / 1024, 0];
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return bytes === 0 ? '0' : `${numberText(value)}${SPACE}${units[unit] ?? ''}`;
}

/** Returns names as a list in a sentence: `amd64, arm64 and s390x`. */
export function listText(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1) ?? ''}`;
}
