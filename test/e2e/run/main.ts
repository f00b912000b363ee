/**
 * Runs end-to-end suites one after another, each by its Mocha configuration: `tsx test/e2e/run/main.ts CONFIG...`
 *
 * A test that fails is run once more, alone, in a process of its own, so on a fresh world. If it passes then, it counts as passed
 * and is named as `flaky: TITLE` after the closing line. Exit code 1 if a test failed twice, or if three or more were flaky.
 *
 * Where ARCHAWARE_WITHOUT_NODE says why a run does without a real node, that reason stands after the closing line, too.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type Again,
  exitCodeOf,
  grepFor,
  type Result,
  runAgain,
  TOO_FLAKY,
  titleOf,
  type Verdict,
  verdictOn,
} from './again.ts';

const REPORTER = fileURLToPath(new URL('reporter.cjs', import.meta.url));
const MOCHA = fileURLToPath(new URL('../../../node_modules/mocha/bin/mocha.js', import.meta.url));

/** The part of a Mocha configuration that a second run needs, too. */
type Configuration = { readonly 'node-option': readonly string[]; readonly timeout: number };

/** The results of a run of Mocha, and whether the run came to its end. */
type Run = { readonly results: readonly Result[]; readonly code: number | null };

const directory = mkdtempSync(join(tmpdir(), 'archaware-e2e-'));
process.once('exit', () => rmSync(directory, { recursive: true, force: true }));

const verdicts: (Verdict & { readonly wasBrokenOff: boolean })[] = [];
for (const config of process.argv.slice(2)) verdicts.push(await suite(config));
const flaky = verdicts.flatMap((verdict) => verdict.flaky).length;
if (flaky >= TOO_FLAKY) console.log(`${flaky} tests were flaky; from ${TOO_FLAKY} on, the run fails`);
process.exitCode = verdicts.some(({ wasBrokenOff }) => wasBrokenOff) ? 1 : exitCodeOf(verdicts);

/** Runs a suite and prints its closing line. */
async function suite(config: string): Promise<Verdict & { readonly wasBrokenOff: boolean }> {
  const first = await mocha(['--config', config]);
  const again = runAgain(first.results);
  const second: [Again, readonly Result[]][] = [];
  for (const each of again) {
    console.log(`\nonce more, ${each.isSuite ? 'the suite ' : ''}alone: ${titleOf(each)}`);
    second.push([each, (await mocha(alone(each, read(config)))).results]);
  }
  const verdict = verdictOn(first.results, second);
  console.log(`\n${verdict.passed} passed, ${verdict.failed} failed, ${verdict.skipped} skipped`);
  const without = process.env.ARCHAWARE_WITHOUT_NODE ?? '';
  if (verdict.skipped > 0 && without !== '') console.log(`skipped where a real node is needed: ${without}`);
  for (const title of verdict.flaky) console.log(`flaky: ${title}`);
  const wasBrokenOff = first.code !== 0 && !first.results.some(({ state }) => state === 'failed');
  if (wasBrokenOff) console.log(`${config}: Mocha ended with ${first.code ?? 'a signal'} although no test failed`);
  return { ...verdict, wasBrokenOff };
}

function read(config: string): Configuration {
  const configuration: Configuration = JSON.parse(readFileSync(config, 'utf8'));
  return configuration;
}

function alone(again: Again, { 'node-option': nodeOptions, timeout }: Configuration): string[] {
  const options = nodeOptions.flatMap((option) => ['--node-option', option]);
  const file = relative(process.cwd(), again.file);
  return ['--no-config', ...options, '--timeout', String(timeout), '--exit', '--grep', grepFor(again), file];
}

async function mocha(args: readonly string[]): Promise<Run> {
  const file = join(mkdtempSync(join(directory, 'run-')), 'results');
  writeFileSync(file, '');
  const child = spawn(process.execPath, [MOCHA, '--reporter', REPORTER, ...args], {
    stdio: 'inherit',
    env: { ...process.env, ARCHAWARE_RESULTS: file },
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  });
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
  return { code, results: lines.map((line): Result => JSON.parse(line)) };
}
