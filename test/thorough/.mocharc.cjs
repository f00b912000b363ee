const { existsSync } = require('node:fs');
const { ignore: spec, ...others } = require('../../.mocharc.cjs');

// Mocha only warns of a file that is not there.
const missing = spec.filter((file) => !existsSync(file));
if (missing.length > 0) throw new Error(`test/thorough/files.cjs names what is no test: ${missing.join(', ')}`);

module.exports = { ...others, spec };
