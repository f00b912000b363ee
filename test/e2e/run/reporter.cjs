// Mocha's spec reporter. It also writes every result to the file that ARCHAWARE_RESULTS names, one JSON text a line, for
// test/e2e/run/main.ts, which prints the closing line.
const { appendFileSync } = require('node:fs');
const { reporters } = require('mocha');

module.exports = class Results extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    const write = (state) => (test) => {
      const result = { file: test.file, path: test.titlePath(), state };
      appendFileSync(process.env.ARCHAWARE_RESULTS, `${JSON.stringify(result)}\n`);
    };
    runner.on('pass', write('passed'));
    runner.on('fail', write('failed'));
    runner.on('pending', write('skipped'));
  }
};
