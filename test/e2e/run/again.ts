/** The outcome of a test, or of a hook that failed. */
export type Result = {
  readonly file: string;
  /** The titles of the suites around the test, then its own. */
  readonly path: readonly string[];
  readonly state: 'passed' | 'failed' | 'skipped';
  /** A hook has no result of its own unless it fails. */
  readonly isHook: boolean;
};

/** What is run once more: one test, or a suite whose tests go on with what the tests before them have left. */
export type Again = { readonly file: string; readonly path: readonly string[]; readonly isSuite: boolean };

/** The results of all runs, and the titles of the tests that failed first and passed alone. */
export type Verdict = {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly flaky: readonly string[];
};

/** More failures than this are no accident, and running each of them again would take too long. */
const MOST_AGAIN = 8;
/** So many flaky tests fail a run. */
export const TOO_FLAKY = 3;

/** The mark of a suite whose tests depend on the tests before them. */
const IN_ORDER = /\bin (this|their) order\b/;

/**
 * Returns what to run again, each once. A test is run alone. A suite whose title says "in this order" or "in their order" is run
 * whole, and so is a suite of which a hook failed. Empty if more than {@link MOST_AGAIN} would have to run.
 */
export function runAgain(results: readonly Result[]): Again[] {
  const again = results.filter(({ state }) => state === 'failed').map(againFor);
  const once = [...new Map(again.map((each) => [keyOf(each), each])).values()];
  // A test of a suite that is run again as a whole needs no run of its own.
  const needed = once.filter((each) => !once.some((other) => other !== each && other.isSuite && isWithin(each, other)));
  return needed.length > MOST_AGAIN ? [] : needed;
}

function againFor({ file, path, isHook }: Result): Again {
  const ordered = path.findIndex((title) => IN_ORDER.test(title));
  if (ordered !== -1) return { file, path: path.slice(0, ordered + 1), isSuite: true };
  // A hook's own title is the last one: its suite is what could not run.
  return isHook ? { file, path: path.slice(0, -1), isSuite: true } : { file, path, isSuite: false };
}

/** Returns the regular expression for Mocha's `--grep` that selects the test, or the tests of the suite. */
export function grepFor({ path, isSuite }: Again): string {
  const title = path.join(' ').replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
  return isSuite ? `^${title}` : `^${title}$`;
}

/** Puts the results of the second runs in the place of the first ones. */
export function verdictOn(first: readonly Result[], second: readonly (readonly [Again, readonly Result[]])[]): Verdict {
  const kept = first.filter((result) => !second.some(([again]) => isWithin(result, again)));
  const all = [...kept, ...second.flatMap(([again, results]) => (results.length > 0 ? results : [lost(again)]))];
  const count = (wanted: Result['state']) => all.filter(({ state }) => state === wanted).length;
  const flaky = second.filter(([, results]) => results.length > 0 && results.every(({ state }) => state !== 'failed'));
  return {
    passed: count('passed'),
    failed: count('failed'),
    skipped: count('skipped'),
    flaky: flaky.map(([again]) => titleOf(firstFailure(first, again) ?? again)),
  };
}

/** Returns the exit code for the verdicts on all suites: 1 if a test failed twice, or if too many were flaky. */
export function exitCodeOf(verdicts: readonly Pick<Verdict, 'failed' | 'flaky'>[]): 0 | 1 {
  const flaky = verdicts.reduce((sum, verdict) => sum + verdict.flaky.length, 0);
  return flaky >= TOO_FLAKY || verdicts.some(({ failed }) => failed > 0) ? 1 : 0;
}

/** Returns the title of a test as a reader sees it. */
export function titleOf({ path }: Pick<Result, 'path'>): string {
  return path.join(' › ');
}

/** A second run that left no result has failed. */
function lost({ file, path }: Again): Result {
  return { file, path, state: 'failed', isHook: false };
}

function firstFailure(results: readonly Result[], again: Again): Result | undefined {
  return results.find((result) => result.state === 'failed' && isWithin(result, again));
}

function isWithin(result: Pick<Result, 'file' | 'path'>, { file, path, isSuite }: Again): boolean {
  const isBelow = path.every((title, index) => result.path[index] === title);
  return result.file === file && isBelow && (isSuite || result.path.length === path.length);
}

function keyOf({ file, path }: Again): string {
  return JSON.stringify([file, path]);
}
