// Runs assigned tests in this process, one file after the other, and writes what happened to a file. Started by runner.ts.
import { readFileSync, writeFileSync, writeSync } from 'node:fs';
import { resolve } from 'node:path';
import Mocha from 'mocha';
import {
  type AssignedFile,
  type Assignment,
  type Failure,
  LOADING,
  type Outcome,
  type RanFile,
  type RanTest,
  STEPS,
} from './protocol.ts';

const HOOKS = 30_000;
/** While a test is recorded, nothing is known of it. */
const UNKNOWN = 120_000;

/** The mutants that what runs now has reached. */
let reached = new Set<string>();

async function main(): Promise<void> {
  const { files, mutants, active, ending, result }: Assignment = JSON.parse(
    readFileSync(process.argv[2] ?? '', 'utf8'),
  );
  prepare(active, mutants.length > 0);
  const drawn = new Set(mutants);
  const failures: Failure[] = [];
  const ran: RanFile[] = [];
  for (const file of files) {
    ran.push(await run(file, drawn, ending === 'first failure', failures));
    if (failures.length > 0 && ending === 'first failure') break;
  }
  writeFileSync(result, JSON.stringify({ failures, files: ran } satisfies Outcome));
}

/** Defines what the instrumented code calls, by the names that Stryker gives it. */
function prepare(active: string | undefined, isRecording: boolean): void {
  const cover = (...ids: readonly string[]): void => {
    for (const id of ids) reached.add(id);
  };
  Object.assign(globalThis, {
    stryMutAct_9fa48: (id: string) => id === active,
    stryCov_9fa48: isRecording ? cover : () => undefined,
  });
}

async function run(
  { file, limit, tests: wanted }: AssignedFile,
  drawn: ReadonlySet<string>,
  bail: boolean,
  failures: Failure[],
): Promise<RanFile> {
  const started = performance.now();
  const atStart = new Set<string>();
  reached = atStart;
  announce(limit);
  const mocha = new Mocha({
    ui: 'bdd',
    timeout: wanted === undefined ? UNKNOWN : HOOKS,
    bail,
    reporter: Mocha.reporters.Base,
  });
  mocha.addFile(resolve(file.replace(/\.ts$/, '.js')));
  try {
    await mocha.loadFilesAsync();
  } catch (error) {
    failures.push({ file, test: LOADING, message: String(error), isTimeout: false });
    return { file, milliseconds: 0, tests: [], reached: [] };
  }
  const keys = keysOf(mocha.suite);
  if (wanted !== undefined) keep(mocha.suite, keys, new Map(wanted.map(({ key, limit: each }) => [key, each])));
  const ran: RanTest[] = [];
  await new Promise<void>((done) => {
    let testStarted = 0;
    const runner = mocha.run(() => done());
    const between = () => {
      reached = atStart;
      announce(HOOKS);
    };
    runner.on('suite', between);
    runner.on('suite end', between);
    runner.on('test', (test) => {
      testStarted = performance.now();
      announce(wanted === undefined ? UNKNOWN : test.timeout());
      reached = new Set();
    });
    runner.on('test end', (test) => {
      const milliseconds = performance.now() - testStarted;
      announce(HOOKS);
      const key = keys.get(test) ?? test.fullTitle();
      if (test.isPassed()) ran.push({ key, milliseconds, reached: [...reached].filter((id) => drawn.has(id)) });
    });
    runner.on('fail', (test, error) => {
      const isTimeout = error.code === 'ERR_MOCHA_TIMEOUT';
      const key = keys.get(test) ?? test.fullTitle();
      failures.push({ file, test: key, message: String(error.message).slice(0, 500), isTimeout });
    });
  });
  const inTests = ran.reduce((sum, { milliseconds }) => sum + milliseconds, 0);
  return {
    file,
    milliseconds: performance.now() - started - inTests,
    tests: ran,
    reached: [...atStart].filter((id) => drawn.has(id)),
  };
}

/** Each test's key: its full title, and a number from the second test on that has the same. */
function keysOf(suite: Mocha.Suite): ReadonlyMap<Mocha.Runnable, string> {
  const keys = new Map<Mocha.Runnable, string>();
  const seen = new Map<string, number>();
  suite.eachTest((test) => {
    const title = test.fullTitle();
    const count = (seen.get(title) ?? 0) + 1;
    seen.set(title, count);
    keys.set(test, count === 1 ? title : `${title} (${count})`);
  });
  return keys;
}

/** Takes out the tests that are not wanted, and gives the others their limits. */
function keep(
  suite: Mocha.Suite,
  keys: ReadonlyMap<Mocha.Runnable, string>,
  limits: ReadonlyMap<string, number>,
): void {
  suite.tests = suite.tests.filter((test) => limits.has(keys.get(test) ?? ''));
  for (const test of suite.tests) test.timeout(limits.get(keys.get(test) ?? '') ?? HOOKS);
  for (const child of suite.suites) keep(child, keys, limits);
}

/** Says how long the next step may take: an endless loop leaves no other way to end it than from outside. */
function announce(milliseconds: number): void {
  writeSync(STEPS, `${milliseconds}\n`);
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
