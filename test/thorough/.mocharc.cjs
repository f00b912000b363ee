// Tests that try every case, every offset or every history, or that start many processes: what `npm test` ignores.
const { existsSync } = require('node:fs');
const { ignore: spec, ...others } = require('../../.mocharc.json');

// Mocha only warns of a file that is not there.
const missing = spec.filter((file) => !existsSync(file.replace('.cache/test/', 'test/').replace('.mjs', '.ts')));
if (missing.length > 0) throw new Error(`.mocharc.json ignores what is no test: ${missing.join(', ')}`);

module.exports = { ...others, spec };
