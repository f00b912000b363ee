import { expect } from 'chai';
import { createTelemetry } from '../../../src/app/replica/reported.ts';
import type { Outcome } from '../../../src/kube/control-loop.ts';
import { LeaseLostError } from '../../../src/kube/errors.ts';
import { createMetrics } from '../../../src/observability/metrics.ts';

describe('the log of reconciliations', () => {
  const rows: [what: string, outcome: Outcome | 'error', error: Error | undefined, level: string][] = [
    ['what was written', 'written', undefined, 'info'],
    ['what is held', 'held', undefined, 'info'],
    ['what needs nothing', 'unchanged', undefined, 'debug'],
    ['what waits', 'waiting', undefined, 'debug'],
    ['what failed', 'error', new Error('x'), 'warn'],
    // A line for each pod otherwise.
    ['what the lost Lease kept from being written', 'error', new LeaseLostError('x'), 'debug'],
  ];
  for (const [what, outcome, error, level] of rows) {
    it(`logs ${what} at ${level}`, () => {
      const lines: string[] = [];
      const log = { debug: () => lines.push('debug'), info: () => lines.push('info'), warn: () => lines.push('warn') };
      const counted: string[] = [];
      const metrics = {
        ...createMetrics('test', () => 0),
        reconciled: (controller: string, result: string) => void counted.push(`${controller} ${result}`),
      };
      const telemetry = createTelemetry(log, metrics, () => {});
      telemetry.outcome('pod', 'a/b', 1, outcome === 'error' ? { outcome, error } : { outcome });
      expect([lines, counted]).to.deep.equal([[level], [`pod ${outcome}`]]);
    });
  }

  it('says what was written, and why an object is held', () => {
    const lines: unknown[] = [];
    const log = { debug() {}, info: (fields: unknown) => lines.push(fields), warn() {} };
    const metrics = createMetrics('test', () => 0);
    const { outcome: report } = createTelemetry(log, metrics, () => {});
    report('pod', 'a/b', 1, { outcome: 'written', detail: 'tolerates amd64' });
    report('pod', 'a/c', 1, { outcome: 'held', detail: 'nothing in common' });
    expect(lines).to.deep.equal([
      { controller: 'pod', key: 'a/b', outcome: 'written', wrote: 'tolerates amd64' },
      { controller: 'pod', key: 'a/c', outcome: 'held', because: 'nothing in common' },
    ]);
  });
});
