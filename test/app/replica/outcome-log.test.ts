import { expect } from 'chai';
import { outcomeLog } from '../../../src/app/replica/outcome-log.ts';
import type { Outcome } from '../../../src/kube/controller.ts';
import { LeaseLostError } from '../../../src/kube/errors.ts';

describe('the log of reconciliations', () => {
  const rows: [what: string, outcome: Outcome | 'error', error: Error | undefined, level: string][] = [
    ['what was written', 'written', undefined, 'info'],
    ['what is held', 'held', undefined, 'info'],
    ['what needs nothing', 'unchanged', undefined, 'debug'],
    ['what waits', 'waiting', undefined, 'debug'],
    ['what failed', 'error', new Error('x'), 'warn'],
    [
      'what the lost Lease kept from being written, a line for each pod otherwise',
      'error',
      new LeaseLostError('x'),
      'debug',
    ],
  ];
  for (const [what, outcome, error, level] of rows) {
    it(`logs ${what} at ${level}`, () => {
      const lines: string[] = [];
      const log = { debug: () => lines.push('debug'), info: () => lines.push('info'), warn: () => lines.push('warn') };
      const counted: string[] = [];
      const count = {
        reconciled: (controller: string, result: string) => void counted.push(`${controller} ${result}`),
      };
      outcomeLog(log, count)('pod', 'a/b', outcome, 1, error);
      expect([lines, counted]).to.deep.equal([[level], [`pod ${outcome}`]]);
    });
  }
});
