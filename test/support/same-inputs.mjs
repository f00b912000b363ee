// Random inputs are the same in each run, so that `npm test` says the same of the same sources.
import fc from 'fast-check';

fc.configureGlobal({ seed: Number(process.env.PROPERTY_SEED ?? 1) });
