import { expect } from 'chai';
import { underWay } from '../hack/cluster/audit.ts';

const NOW = Date.parse('2026-01-01T00:00:10Z');
const line = (stage: string, auditID = 'one', second = '09') =>
  JSON.stringify({ stage, auditID, requestReceivedTimestamp: `2026-01-01T00:00:${second}.000000Z` });

const cases: Readonly<Record<string, { readonly lines: readonly string[]; readonly expected: readonly string[] }>> = {
  'no requests': { lines: [''], expected: [] },
  'a request that was received': { lines: [line('RequestReceived')], expected: ['one'] },
  'a request that is over': { lines: [line('RequestReceived'), line('ResponseComplete')], expected: [] },
  'a request that crashed': { lines: [line('RequestReceived'), line('Panic')], expected: [] },
  'a watch that is open': { lines: [line('RequestReceived'), line('ResponseStarted')], expected: [] },
  'two requests of which one is over': {
    lines: [line('RequestReceived'), line('RequestReceived', 'two'), line('ResponseComplete')],
    expected: ['two'],
  },
  'a request to an API server that was killed': { lines: [line('RequestReceived', 'one', '01')], expected: [] },
  'a line that is still being written': { lines: [line('RequestReceived'), '{"stage":"Resp'], expected: ['one'] },
};

describe('the audit log, asked for the requests under way,', () => {
  for (const [what, { lines, expected }] of Object.entries(cases)) {
    it(`finds ${expected.join(' and ') || 'none'} in ${what}`, () => {
      expect([...underWay(lines.join('\n'), NOW)]).to.deep.equal(expected);
    });
  }
});
