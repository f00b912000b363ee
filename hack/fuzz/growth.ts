/** An input that grows: the text before, the repeated text, and the text after. */
export type Pattern = { readonly before: string; readonly unit: string; readonly after: string };

/** Characters; the first size and the last. */
const SMALLEST = 2 * 1024;
const LARGEST = 1024 * 1024;
/**
 * Input that is eight times as long costs eight times as much per character in quadratic time, and the same in linear
 * time.
 */
const FACTOR = 8;
const TOLERATED = 4;
/** Milliseconds; shorter times are noise. */
const NOTICED = 3;
const ATTEMPTS = 5;

/** Returns how much more a character costs in an input that is eight times as long, if that is too much. */
export function superlinear(pattern: Pattern, run: (text: string) => void): number | undefined {
  for (let size = SMALLEST; size * FACTOR <= LARGEST; size *= 4) {
    const ratio = measure(pattern, size, run);
    if (ratio === 'too fast') continue;
    if (ratio <= TOLERATED) return undefined;
    // Another program may have used the processor, so only input that is slow every time counts.
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

/** @param size of the repeated text, in characters */
export function grow({ before, unit, after }: Pattern, size: number): string {
  return before + unit.repeat(Math.ceil(size / Math.max(1, unit.length))) + after;
}
