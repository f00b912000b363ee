/**
 * Runs end-to-end suites one after another, each by its Mocha configuration: `tsx test/e2e/run/main.ts CONFIG...`
 *
 * A file with a test that fails is run once more, alone, in a process of its own, so on a fresh world. A test that passes then counts as
 * passed, and is named as `flaky: TITLE` after the closing line. Exit code 1 if a test failed twice, or if three or more were flaky.
 *
 * Where ARCHAWARE_WITHOUT_NODE says why a run does without a real node, that reason stands after the closing line, too.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const REPORTER = fileURLToPath(new URL('reporter.cjs', import.meta.url));
const MOCHA = fileURLToPath(new URL('../../../node_modules/mocha/bin/mocha.js', import.meta.url));
/** More files with failures than this are no accident, and running each of them again would take too long. */
const MOST_AGAIN = 5;
/** So many flaky tests fail a run. */
const TOO_FLAKY = 3;

/** The outcome of a test, or of a hook that failed; `path`: the titles of the suites around it, then its own. */
type Result = {
  readonly file: string;
  readonly path: readonly string[];
  readonly state: 'passed' | 'failed' | 'skipped';
};

const isFailed = ({ state }: Result) => state === 'failed';
const titleOf = ({ path }: Result) => path.join(' › ');

const directory = mkdtempSync(join(tmpdir(), 'archaware-e2e-'));
process.once('exit', () => rmSync(directory, { recursive: true, force: true }));

let [flaky, failed] = [0, false];
for (const config of process.argv.slice(2)) {
  const suite = await runSuite(config);
  flaky += suite.flaky;
  failed ||= suite.failed;
}
if (flaky >= TOO_FLAKY) console.log(`${flaky} tests were flaky; from ${TOO_FLAKY} on, the run fails`);
process.exitCode = failed || flaky >= TOO_FLAKY ? 1 : 0;

/** Runs a suite and prints its closing line. */
async function runSuite(config: string): Promise<{ flaky: number; failed: boolean }> {
  const { results: first, code } = await mocha(['--config', config]);
  const files = [...new Set(first.filter(isFailed).map(({ file }) => file))];
  let results = first;
  for (const file of files.length > MOST_AGAIN ? [] : files) {
    console.log(`\nonce more, alone: ${relative(process.cwd(), file)}`);
    const second = await mocha(alone(file, config));
    // A second run that left no result has failed.
    if (second.results.length > 0) results = [...results.filter((result) => result.file !== file), ...second.results];
  }
  const count = (wanted: Result['state']) => results.filter(({ state }) => state === wanted).length;
  console.log(`\n${count('passed')} passed, ${count('failed')} failed, ${count('skipped')} skipped`);
  const without = process.env.ARCHAWARE_WITHOUT_NODE ?? '';
  if (count('skipped') > 0 && without !== '') console.log(`skipped where a real node is needed: ${without}`);
  const failing = new Set(results.filter(isFailed).map(titleOf));
  const flaky = first
    .filter(isFailed)
    .map(titleOf)
    .filter((title) => !failing.has(title));
  for (const title of flaky) console.log(`flaky: ${title}`);
  const wasBrokenOff = code !== 0 && files.length === 0;
  if (wasBrokenOff) console.log(`${config}: Mocha ended with ${code ?? 'a signal'} although no test failed`);
  return { flaky: flaky.length, failed: wasBrokenOff || failing.size > 0 };
}

/** What a second run needs, too, of the configuration. */
function alone(file: string, config: string): string[] {
  const { 'node-option': options, timeout }: { 'node-option': string[]; timeout: number } = JSON.parse(
    readFileSync(config, 'utf8'),
  );
  const loaded = options.flatMap((option) => ['--node-option', option]);
  return ['--no-config', ...loaded, '--timeout', String(timeout), '--exit', relative(process.cwd(), file)];
}

async function mocha(args: readonly string[]): Promise<{ results: readonly Result[]; code: number | null }> {
  const file = join(mkdtempSync(join(directory, 'run-')), 'results');
  writeFileSync(file, '');
  const child = spawn(process.execPath, [MOCHA, '--reporter', REPORTER, ...args], {
    stdio: 'inherit',
    env: { ...process.env, ARCHAWARE_RESULTS: file },
  });
  await once(child, 'exit');
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return { code: child.exitCode, results: lines.map((line): Result => JSON.parse(line)) };
}
