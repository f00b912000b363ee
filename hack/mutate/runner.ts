/** Starts the processes that run tests: to record which test reaches which mutant, and with a mutant switched on. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type AssignedFile,
  type Assignment,
  type Failure,
  LOADING,
  limitFor,
  type Outcome,
  type RanFile,
} from './protocol.ts';

export type Verdict = 'killed' | 'killed by timeout' | 'survived' | 'not reached';

export type Judged = {
  readonly verdict: Verdict;
  /** The test that failed. */
  readonly by?: string;
  /** How many tests reach the mutant. */
  readonly tests: number;
  readonly milliseconds: number;
};

/** Longer than mocha's own limit, so that it comes first where the event loop still turns. */
const GRACE = 3000;
const STARTING = 30_000;

export type Recording = { readonly files: readonly RanFile[]; readonly failures: readonly Failure[] };

export type Runner = {
  /** Runs the files without a mutant, one process each, and finds which test reaches which of the mutants. */
  record(files: readonly string[], mutants: readonly string[], jobs: number): Promise<Recording>;
  /** Runs tests of several files in one process without a mutant, and gives those that fail there. */
  control(recorded: readonly RanFile[]): Promise<readonly Failure[]>;
  judge(mutant: string, recorded: readonly RanFile[]): Promise<Judged>;
};

export function createRunner(directory: string): Runner {
  let count = 0;

  /** Gives `hung` if a step took longer than its limit, and `crashed` if the process ended before its tests did. */
  async function run(assignment: Omit<Assignment, 'result'>): Promise<Outcome | { hung: true } | { crashed: string }> {
    count += 1;
    const input = join(directory, `.assignment-${count}.json`);
    const result = join(directory, `.result-${count}.json`);
    writeFileSync(input, JSON.stringify({ ...assignment, result } satisfies Assignment));
    const child = spawn(process.execPath, ['hack/mutate/run-tests.js', input], {
      cwd: directory,
      // The title of the simulation's test has its seed. `npm test` plays fewer histories.
      env: { ...process.env, SIMULATION_SEED: '13', SIMULATION_RUNS: '150' },
      stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    });
    const { hung, errors } = await watch(child);
    if (hung) return { hung };
    if (!existsSync(result)) return { crashed: errors };
    return JSON.parse(readFileSync(result, 'utf8'));
  }

  return {
    async record(files, mutants, jobs) {
      const recorded: RanFile[] = [];
      const failures: Failure[] = [];
      await inParallel(jobs, files, async (file) => {
        const outcome = await run({ ending: 'all tests', mutants, files: [{ file, limit: 60_000 }] });
        if ('hung' in outcome || 'crashed' in outcome) {
          const message = 'hung' in outcome ? 'takes too long' : `ends the process: ${outcome.crashed}`;
          failures.push({ file, test: 'one of them', message, isTimeout: 'hung' in outcome });
          return;
        }
        failures.push(...outcome.failures);
        recorded.push(...outcome.files);
      });
      return { files: recorded, failures };
    },

    async control(recorded) {
      const files = recorded.map((file) => assign(file, file.tests));
      const outcome = await run({ ending: 'all tests', mutants: [], files });
      if ('hung' in outcome) throw new Error('the tests hang without a mutant');
      if ('crashed' in outcome) throw new Error(`the tests end the process without a mutant: ${outcome.crashed}`);
      return outcome.failures;
    },

    async judge(mutant, recorded) {
      const files = recorded
        .map((file) => {
          const atStart = file.reached.includes(mutant);
          return { file, tests: atStart ? file.tests : file.tests.filter(({ reached }) => reached.includes(mutant)) };
        })
        .filter(({ tests }) => tests.length > 0)
        .sort((one, other) => costOf(one) - costOf(other));
      const tests = files.reduce((sum, file) => sum + file.tests.length, 0);
      if (tests === 0) return { verdict: 'not reached', tests, milliseconds: 0 };
      const assigned = files.map(({ file, tests: reaching }) => assign(file, reaching));
      const started = performance.now();
      const outcome = await run({ ending: 'first failure', active: mutant, mutants: [], files: assigned });
      const milliseconds = Math.round(performance.now() - started);
      if ('hung' in outcome) return { verdict: 'killed by timeout', by: 'an endless loop', tests, milliseconds };
      if (neverBegan(outcome)) {
        // Every mutant would look killed if the copy lost its packages, for example.
        const without = await run({ ending: 'first failure', mutants: [], files: assigned });
        if ('hung' in without || neverBegan(without)) {
          throw new Error('tests cannot be loaded any more, without a mutant either: was something deleted meanwhile?');
        }
      }
      if ('crashed' in outcome) return { verdict: 'killed', by: 'the process ended', tests, milliseconds };
      const [failure] = outcome.failures;
      if (failure === undefined) return { verdict: 'survived', tests, milliseconds };
      const by = `${failure.file}: ${failure.test}`;
      return { verdict: failure.isTimeout ? 'killed by timeout' : 'killed', by, tests, milliseconds };
    },
  };
}

/** Whether the process ended before its tests did, or could not load them. */
function neverBegan(outcome: Outcome | { crashed: string }): boolean {
  return 'crashed' in outcome || outcome.failures.some(({ test }) => test === LOADING);
}

function assign({ file, milliseconds }: RanFile, tests: RanFile['tests']): AssignedFile {
  const limited = tests.map((test) => ({ key: test.key, limit: limitFor(test.milliseconds) }));
  return { file, limit: limitFor(milliseconds), tests: limited };
}

function costOf({ file, tests }: { file: RanFile; tests: RanFile['tests'] }): number {
  return tests.reduce((sum, { milliseconds }) => sum + milliseconds, file.milliseconds);
}

/** Waits for the end of the process, and ends it when a step takes too long. */
async function watch(child: ChildProcess): Promise<{ hung: boolean; errors: string }> {
  let hung = false;
  let errors = '';
  const end = () => {
    hung = true;
    child.kill('SIGKILL');
  };
  let timer = setTimeout(end, STARTING);
  child.stderr?.on('data', (text) => {
    errors = (errors + text).slice(-2000);
  });
  child.stdio[3]?.on('data', (lines) => {
    const limit = Number(String(lines).trim().split('\n').at(-1));
    clearTimeout(timer);
    timer = setTimeout(end, limit + GRACE);
  });
  await new Promise<void>((done, fail) => {
    child.once('error', fail);
    child.once('exit', () => done());
  });
  clearTimeout(timer);
  return { hung, errors };
}

/** The files without the tests that failed, and without each file that failed in a hook. */
export function without(failures: readonly Failure[], files: readonly RanFile[]): readonly RanFile[] {
  return files.flatMap((file) => {
    const failed = new Set(failures.filter((failure) => failure.file === file.file).map(({ test }) => test));
    const tests = file.tests.filter(({ key }) => !failed.has(key));
    return tests.length + failed.size > file.tests.length ? [] : { ...file, tests };
  });
}

export async function inParallel<T>(
  jobs: number,
  items: readonly T[],
  work: (item: T) => Promise<void>,
): Promise<void> {
  const left = [...items];
  const worker = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await work(next);
  };
  await Promise.all(Array.from({ length: jobs }, worker));
}
