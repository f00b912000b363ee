// Feeds the parsers of text from outside with unusual inputs, and with inputs that grow. Usage: npm run fuzz [--
// --seconds 30] [--seed N] [target…]; a failure prints the options that repeat it.
import { parseArgs } from 'node:util';
import { runInThisContext } from 'node:vm';
import fc from 'fast-check';
import { docker, providerConfig, registriesConf, toml } from './fuzz/configurations.ts';
import { type Pattern, superlinear } from './fuzz/growth.ts';
import { challenge, proxy } from './fuzz/headers.ts';
import { labelRules } from './fuzz/label-rules.ts';
import { layers } from './fuzz/layers.ts';
import { config, manifest } from './fuzz/manifests.ts';
import { endpoint, match, reference } from './fuzz/names.ts';
import { reviews } from './fuzz/reviews.ts';
import type { Target } from './fuzz/target.ts';
import { escaped, inputsFor } from './fuzz/texts.ts';

const TARGETS: readonly Target[] = [
  reference,
  endpoint,
  match,
  challenge,
  proxy,
  manifest,
  config,
  layers,
  registriesConf,
  toml,
  docker,
  providerConfig,
  reviews,
  labelRules,
];
/** The part of a target's time that its growing inputs get. */
const GROWING = 0.35;
/** Milliseconds beyond its time after which an input counts as hanging. */
const PATIENCE = 10_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '30' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    /** As a failure prints it; with one target, for example `reference/mutated`. */
    path: { type: 'string' },
  },
});

type Result = { readonly inputs: number; readonly taken: number; readonly patterns: number; readonly failure?: string };

/** The current input, to report it if it never ends. */
let current = '';

function main(): number {
  const seconds = Number(values.seconds);
  const seed = Number(values.seed);
  const unknown = positionals.find((name) => !TARGETS.some((target) => target.name === name.split('/')[0]));
  if (!(seconds > 0) || !Number.isInteger(seed) || unknown !== undefined) {
    console.error(
      `usage: npm run fuzz -- [--seconds 30] [--seed N] [--path P] [${TARGETS.map(({ name }) => name).join('|')}]…`,
    );
    return 3;
  }
  console.log(`seed ${seed}`);
  let [passed, failed] = [0, 0];
  const chosen = TARGETS.filter(
    ({ name }) => positionals.length === 0 || positionals.some((each) => each.split('/')[0] === name),
  );
  for (const target of chosen) {
    const { inputs, taken, patterns, failure } = fuzz(target, seed, (seconds * 1000) / chosen.length);
    console.log(
      `${failure === undefined ? 'ok  ' : 'FAIL'} ${target.name}: ${inputs} inputs, ${taken} of them taken; ${patterns} that grow`,
    );
    if (failure !== undefined) console.log(failure);
    if (failure === undefined) passed += 1;
    else failed += 1;
  }
  console.log(`${passed} passed, ${failed} failed, ${TARGETS.length - chosen.length} skipped`);
  return failed === 0 ? 0 : 1;
}

function fuzz(target: Target, seed: number, milliseconds: number): Result {
  let [inputs, taken, patterns] = [0, 0, 0];
  const run = (text: string): void => {
    current = text;
    inputs += 1;
    if (target.run(text)) taken += 1;
  };
  const runGrowing = (text: string): void => {
    current = text;
    target.run(text);
  };
  const wanted = positionals.map((name) => name.split('/')).find(([name]) => name === target.name)?.[1];
  const isWanted = (name: string): boolean => wanted === undefined || wanted === name;
  const arbitraries = Object.entries(inputsFor(target)).filter(([name]) => isWanted(name));
  try {
    for (const [name, arbitrary] of arbitraries) {
      const share = (milliseconds * (1 - GROWING)) / arbitraries.length;
      const failed = guarded(share, () => check(arbitrary, run, seed, share));
      if (failed !== undefined) {
        return { inputs, taken, patterns, failure: describe(failed, `${target.name}/${name}`) };
      }
    }
    if (!isWanted('growing')) return { inputs, taken, patterns };
    const end = performance.now() + milliseconds * GROWING;
    const failure = guarded(milliseconds * GROWING, () => {
      for (const pattern of patternsFor(target, seed)) {
        if (performance.now() > end) return undefined;
        patterns += 1;
        const ratio = superlinear(pattern, runGrowing);
        if (ratio !== undefined) return describeGrowth(pattern, ratio, seed, target.name);
      }
      return undefined;
    });
    return { inputs, taken, patterns, ...(failure === undefined ? {} : { failure }) };
  } catch (error) {
    // The error of a growing input, or of the guard for an input that never ends.
    const problem = error instanceof Error ? error.stack : String(error);
    const failure = [
      `  ${problem}`,
      `  input: ${escaped(current)}`,
      `  again: npm run fuzz -- --seed ${seed} ${target.name}`,
    ];
    return { inputs, taken, patterns, failure: failure.join('\n') };
  }
}

function check(arbitrary: fc.Arbitrary<string>, run: (text: string) => void, seed: number, milliseconds: number) {
  const details = fc.check(fc.property(arbitrary, run), {
    seed,
    ...(values.path === undefined ? {} : { path: values.path }),
    numRuns: 1e9,
    interruptAfterTimeLimit: milliseconds,
    markInterruptAsFailure: false,
  });
  return details.failed ? details : undefined;
}

function describe(details: fc.RunDetailsCommon<[string]>, name: string): string {
  const error = details.errorInstance;
  return [
    `  ${error instanceof Error ? error.stack : String(error)}`,
    `  input: ${escaped(details.counterexample?.[0] ?? '')}`,
    `  again: npm run fuzz -- --seed ${details.seed} --path ${details.counterexamplePath} ${name}`,
  ].join('\n');
}

/** Patterns from the target's pieces: each piece alone, and then random combinations. */
function patternsFor({ pieces, openings = [] }: Target, seed: number): Pattern[] {
  const singles = ['', ...openings].flatMap((before) => pieces.map((unit) => ({ before, unit, after: '' })));
  const joined = fc.record({
    before: fc.constantFrom('', ...openings, ...pieces),
    unit: fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 3 }).map((parts) => parts.join('')),
    after: fc.constantFrom('', '\0', '!', ...pieces),
  });
  const [shuffled = []] = fc.sample(fc.shuffledSubarray(singles, { minLength: singles.length }), { seed, numRuns: 1 });
  return [...shuffled, ...fc.sample(joined, { seed, numRuns: 10_000 })];
}

function describeGrowth(pattern: Pattern, ratio: number, seed: number, name: string): string {
  const shown = Object.entries(pattern).map(([part, text]) => `${part} ${escaped(text)}`);
  return [
    `  not linear: a character of an input eight times as long costs ${ratio.toFixed(1)} times as much`,
    `  input: ${shown.join(', ')}`,
    `  again: npm run fuzz -- --seed ${seed} ${name}/growing`,
  ].join('\n');
}

/**
 * Runs synchronous work, and ends it if it hangs.
 *
 * @throws what the work throws, and `ERR_SCRIPT_EXECUTION_TIMEOUT` for work that never ends
 */
function guarded<T>(milliseconds: number, work: () => T): T | undefined {
  let result: T | undefined;
  Object.assign(globalThis, { guardedWork: () => (result = work()) });
  runInThisContext('guardedWork()', { timeout: Math.ceil(milliseconds + PATIENCE) });
  return result;
}

process.exitCode = main();
