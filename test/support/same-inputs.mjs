// Random inputs are the same in each run, so that `npm test` says the same of the same sources.
import fc from 'fast-check';

fc.configureGlobal({ seed: Number(process.env.PROPERTY_SEED ?? 1) });
// Each connection to a registry would read the authorities of this machine again, of which no test needs any.
delete process.env.NODE_EXTRA_CA_CERTS;
