// Tests that try every case, every offset or every history, or that start many processes: `npm run test:thorough` runs them.
module.exports = [
  'cli/standard-input',
  'cli/truth',
  'kube/broken-lists',
  'oci/parts',
  'oci/tenants',
  'placement/admission-properties',
  'regular-expressions',
  'released/npm',
  'simulation/simulation',
  'testimg/push',
  'testimg/update',
  'webhook/rotation-generations',
].map((name) => `.cache/test/${name}.test.mjs`);
