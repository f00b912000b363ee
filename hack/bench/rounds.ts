import type { Who } from './subjects.ts';

/** A figure of each round. */
export type Rounds = Record<Who, number[]>;

/** Returns the middle value; of an even number of values the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  const [below, above] = [Math.floor((sorted.length - 1) / 2), Math.floor(sorted.length / 2)];
  return ((sorted[below] ?? Number.NaN) + (sorted[above] ?? Number.NaN)) / 2;
}

/** Returns ours divided by bare, for each round. */
export function ratios({ ours, bare }: Rounds): number[] {
  return ours.map((value, round) => value / (bare[round] ?? Number.NaN));
}

/** `0.95 (0.93, 0.95, 0.97)`: a ratio and those of the rounds. */
export function ratioText(ratio: number, rounds: readonly number[]): string {
  return `${ratio.toFixed(2)} (${listed(rounds, 2)})`;
}

/** `0.93, 0.95, 0.97` */
export function listed(values: readonly number[], digits: number): string {
  return values.map((value) => value.toFixed(digits)).join(', ');
}
