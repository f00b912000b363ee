/** An input that grows: what is before, what is repeated, and what comes after. */
export type Pattern = { readonly before: string; readonly unit: string; readonly after: string };

/** Characters; the first size, and the last. */
const SMALLEST = 2 * 1024;
const LARGEST = 1024 * 1024;
/** Eight times the input in quadratic time costs eight times as much per character; in linear time, as much. */
const FACTOR = 8;
const TOLERATED = 4;
/** Milliseconds; what is faster is noise. */
const NOTICED = 3;
const ATTEMPTS = 5;

/** How much more a character costs in an input that is eight times as long, where that is too much. */
export function superlinear(pattern: Pattern, run: (text: string) => void): number | undefined {
  for (let size = SMALLEST; size * FACTOR <= LARGEST; size *= 4) {
    const ratio = measure(pattern, size, run);
    if (ratio === 'too fast') continue;
    if (ratio <= TOLERATED) return undefined;
    // Something else may have had the processor: only what is slow every time is slow.
    for (let attempt = 1; attempt < ATTEMPTS; attempt += 1) {
      const again = measure(pattern, size, run);
      if (again === 'too fast' || again <= TOLERATED) return undefined;
    }
    return ratio;
  }
  return undefined;
}

function measure(pattern: Pattern, size: number, run: (text: string) => void): number | 'too fast' {
  const longest = grow(pattern, size * FACTOR);
  if (timed(longest, run) < NOTICED) return 'too fast';
  const [shorter, longer] = [grow(pattern, size), longest].map((input) => fastest(input, run) / input.length);
  return (longer ?? 0) / Math.max(shorter ?? 0, 1e-9);
}

function fastest(input: string, run: (text: string) => void): number {
  return Math.min(timed(input, run), timed(input, run), timed(input, run));
}

/** Milliseconds. */
function timed(input: string, run: (text: string) => void): number {
  const started = performance.now();
  run(input);
  return performance.now() - started;
}

/** @param size in characters, of what is repeated */
export function grow({ before, unit, after }: Pattern, size: number): string {
  return before + unit.repeat(Math.ceil(size / Math.max(1, unit.length))) + after;
}
