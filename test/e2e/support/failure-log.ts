import type { Context } from 'mocha';
import { logsOfRunning } from '../../support/controller-process.ts';

const LINES = 60;
const LONGEST = 400;

/** After a test that failed, prints the end of what the running controllers have logged: the second run may pass, and this is gone. */
export const mochaHooks = {
  afterEach(this: Context): void {
    if (this.currentTest?.state !== 'failed') return;
    for (const log of logsOfRunning) {
      const lines = log().trimEnd().split('\n').slice(-LINES);
      const shown = lines.map((line) => `    | ${line.slice(0, LONGEST)}`).join('\n');
      process.stderr.write(`    the log at the failure of "${this.currentTest.title}":\n${shown}\n`);
    }
  },
};
