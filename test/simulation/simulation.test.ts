import { expect } from 'chai';
import fc from 'fast-check';
import { histories, play } from './history.ts';

/** So long `npm run simulate` plays histories, until one breaks a rule. */
const MINUTES = Number(process.env.SIMULATION_MINUTES ?? 0);
/** The same by default, so that `npm test` says the same of the same sources. hack/verify.sh draws another one. */
const SEED = Number(process.env.SIMULATION_SEED ?? (MINUTES > 0 ? Date.now() % 1_000_000_000 : 1));
const RUNS = MINUTES > 0 ? 1e9 : Number(process.env.SIMULATION_RUNS ?? 25);
const LIMIT = MINUTES > 0 ? { interruptAfterTimeLimit: MINUTES * 60_000 } : {};

describe('a simulation of replicas, an API server and a registry', () => {
  it(`breaks no rule, if requests and events are delayed, reordered, repeated or lost (SIMULATION_SEED=${SEED})`, async () => {
    await fc.assert(
      fc.asyncProperty(histories(60), async (history) => {
        const { broken, trace } = await play(history);
        expect(
          broken,
          `${broken}\n${trace
            .filter((line) => !line.includes('/leases/'))
            .slice(-60)
            .join('\n')}`,
        ).to.equal(undefined);
      }),
      { seed: SEED, numRuns: RUNS, endOnFailure: false, verbose: 0, ...LIMIT },
    );
  }).timeout((MINUTES + 5) * 60_000);

  it('plays the same history for the same seed', async () => {
    const [history] = fc.sample(histories(60), { seed: SEED, numRuns: 1 });
    if (history === undefined) throw new Error('no history');
    expect((await play(history)).trace).to.deep.equal((await play(history)).trace);
  });
});
