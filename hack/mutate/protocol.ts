/** What the runner and the process that runs tests say to each other. */

/** Where the tests of a process come from, and which of them to run. */
export type Assignment = {
  /** Where the result goes. */
  readonly result: string;
  readonly ending: 'first failure' | 'all tests';
  /** The mutant that is switched on, if one is. */
  readonly active?: string;
  /** The mutants to record. */
  readonly mutants: readonly string[];
  readonly files: readonly AssignedFile[];
};

export type AssignedFile = {
  /** Relative to the directory of the copy. */
  readonly file: string;
  /** Milliseconds until the file is loaded. */
  readonly limit: number;
  /** The tests to run, with milliseconds; all of them when left out. */
  readonly tests?: readonly { readonly key: string; readonly limit: number }[];
};

export type Outcome = {
  readonly failures: readonly Failure[];
  readonly files: readonly RanFile[];
};

export type Failure = {
  readonly file: string;
  /** Its key, or the title of a hook. */
  readonly test: string;
  readonly message: string;
  readonly isTimeout: boolean;
};

/** Stands for a test when a file cannot be loaded. */
export const LOADING = 'when the file is loaded';

export type RanFile = {
  readonly file: string;
  /** To load it and to run the hooks of its suites. */
  readonly milliseconds: number;
  readonly tests: readonly RanTest[];
  /** The mutants that were reached while it was loaded or while a suite was set up. */
  readonly reached: readonly string[];
};

export type RanTest = {
  /** The titles of its suites and its own, with a number where two have the same. */
  readonly key: string;
  readonly milliseconds: number;
  readonly reached: readonly string[];
};

/** A test that takes longer than this has hung: the machine may be busy, and a mutant may make more work. */
export function limitFor(milliseconds: number): number {
  return Math.round(10_000 + 5 * milliseconds);
}

/** The file descriptor on which the process says, in a line, how many milliseconds its next step may take. */
export const STEPS = 3;
