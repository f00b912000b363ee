import { expect } from 'chai';
import {
  awaited,
  keepsRecord,
  rolloutOf,
  takenBack,
  withRollout,
} from '../../../src/placement/objects/template-record.ts';

describe('what a record says of a rollout', () => {
  const rows: [entry: string | undefined, generation: number, meaning: string | undefined][] = [
    [awaited(7), 7, 'awaited'],
    [awaited(7), 8, undefined],
    [takenBack(7), 7, 'taken-back'],
    [takenBack(7), 8, undefined],
    ['', 7, undefined],
    [undefined, 7, undefined],
  ];
  for (const [entry, generation, meaning] of rows)
    it(`"${entry}" at generation ${generation}: ${meaning ?? 'nothing'}`, () =>
      expect(rolloutOf(entry, generation)).to.equal(meaning));

  it('is written before the tolerations, and taken out again', () => {
    const record = '{"images":["a"],"subject":"1","tolerations":[]}';
    const marked = withRollout(record, awaited(7));
    expect(marked).to.equal('{"images":["a"],"subject":"1","rollout":"awaited 7","tolerations":[]}');
    expect(withRollout(marked, undefined)).to.equal(record);
    expect([withRollout('[]', awaited(7)), withRollout(undefined, awaited(7))]).to.deep.equal(['[]', undefined]);
  });

  it('keeps a record without tolerations if the change was taken back', () =>
    expect([takenBack(7), awaited(7), undefined].map(keepsRecord)).to.deep.equal([true, false, false]));
});
