import { parseArgs } from 'node:util';
import fc from 'fast-check';
import { type History, histories, play } from '../test/simulation/history.ts';

/**
 * Plays random histories for some minutes, and prints each rule that one of them broke with the shortest script that
 * breaks it.
 */
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000_000) },
    steps: { type: 'string', default: '80' },
    rule: { type: 'string', default: '' },
  },
});
const [minutes, steps] = [Number(values.minutes), Number(values.steps)];
/** Other rules may be broken, for example in old code. */
const rule = new RegExp(values.rule);
const until = Date.now() + minutes * 60_000;
let seed = Number(values.seed);
let [played, states] = [0, 0];
const found = new Map<string, number>();

/** Returns a rule without the names of one history. */
const nameOf = (broken: string) =>
  broken.replace(/\b[rpd][0-9]+\b|registry\.example\.com\S+/g, '*').replace(/\/[a-z]+-1/g, '/*');

async function search(): Promise<void> {
  const from = seed++;
  const property = fc.asyncProperty(histories(steps), async (history) => {
    const verdict = await play(history);
    played++;
    states += verdict.states;
    if (verdict.broken === undefined || !rule.test(verdict.broken) || (found.get(nameOf(verdict.broken)) ?? 0) >= 2)
      return true;
    throw new Error(verdict.broken);
  });
  const result = await fc.check(property, {
    seed: from,
    numRuns: 200,
    interruptAfterTimeLimit: Math.max(1, until - Date.now()),
    markInterruptAsFailure: false,
  });
  const [history] = result.counterexample ?? [];
  if (!result.failed || history === undefined) return;
  const { broken, trace } = await play(history);
  const name = nameOf(broken ?? 'passes when played again');
  found.set(name, (found.get(name) ?? 0) + 1);
  print(from, broken, history, trace);
}

function print(from: number, broken: string | undefined, history: History, trace: readonly string[]): void {
  const { steps: script, ...world } = history;
  console.log(`\nBROKEN (seed ${from}): ${broken}\n  ${JSON.stringify(world)}`);
  for (const step of script) console.log(`  ${JSON.stringify(step)}`);
  const told = trace.filter((line) => !line.includes('/leases/') && !line.includes(' watch '));
  for (const line of told.slice(-25)) console.log(`    ${line}`);
}

while (Date.now() < until) await search();
console.log(`\nsimulation: ${played} histories, ${states} states, seeds ${values.seed} to ${seed - 1}`);
for (const [name, count] of found) console.log(`  broken ${count} time(s): ${name}`);
process.exitCode = found.size === 0 ? 0 : 1;
