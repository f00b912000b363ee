import { expect } from 'chai';
import { changesPlacement } from '../../../src/controllers/loops/arrivals.ts';
import { readNamespace } from '../../../src/placement/objects/namespace.ts';

describe('a change of a namespace', () => {
  const namespace = (metadata: object = {}) =>
    readNamespace({ metadata: { name: 'shop', resourceVersion: '1', ...metadata } });
  const labelled = namespace({ labels: { team: 'a' } });
  const preferring = namespace({ annotations: { 'archaware.dev/preferred': 'arm64' } });
  const rows: [what: string, change: Parameters<typeof changesPlacement>[0], expected: boolean][] = [
    ['a new one', { key: 'shop', before: undefined, now: namespace() }, true],
    ['one that is gone', { key: 'shop', before: namespace(), now: undefined }, false],
    ['nothing that counts', { key: 'shop', before: namespace(), now: namespace({ resourceVersion: '2' }) }, false],
    ['its labels', { key: 'shop', before: namespace(), now: labelled }, true],
    ['its preference', { key: 'shop', before: namespace(), now: preferring }, true],
  ];
  for (const [what, change, expected] of rows)
    it(`${expected ? 'calls' : 'does not call'} for other decisions: ${what}`, () =>
      expect(changesPlacement(change)).to.equal(expected));
});
