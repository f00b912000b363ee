import { expect } from 'chai';
import { createSpread } from '../../../src/oci/lookup/headless.ts';

describe('what spreads from repositories', () => {
  const path = (repository: string) => [repository, repository.split('/', 1)[0] ?? '', 'host'];
  type Row = [what: string, met: [repository: string, until: number][], key: string, whole: number];
  const rows: Row[] = [
    ['nothing', [], 'a', 0],
    ['one repository: not the project', [['a/x', 50]], 'a', 0],
    [
      'the same repository twice: not the project',
      [
        ['a/x', 50],
        ['a/x', 60],
      ],
      'a',
      0,
    ],
    [
      'two repositories: the project, as long as both',
      [
        ['a/x', 50],
        ['a/y', 30],
      ],
      'a',
      30,
    ],
    [
      'three repositories: as long as two of them',
      [
        ['a/x', 50],
        ['a/y', 30],
        ['a/z', 40],
      ],
      'a',
      40,
    ],
    [
      'two repositories, one of which is over: not the project',
      [
        ['a/x', 50],
        ['a/y', 10],
      ],
      'a',
      0,
    ],
    [
      'two repositories of one project: not the host',
      [
        ['a/x', 50],
        ['a/y', 50],
      ],
      'host',
      0,
    ],
    [
      'two projects: the host, as long as both',
      [
        ['a/x', 50],
        ['b/x', 40],
      ],
      'host',
      40,
    ],
    [
      'many repositories of one project: not the host',
      Array.from({ length: 99 }, (_, index) => [`a/${index}`, 50]),
      'host',
      0,
    ],
  ];
  for (const [what, met, key, whole] of rows) {
    it(`is met by ${what}`, () => {
      const spread = createSpread(() => 20);
      for (const [repository, until] of met) spread.add(path(repository), until);
      expect(spread.whole(key)).to.equal(whole);
    });
  }

  it('is over for the repository itself at its own time, and for all that is wider when it proves otherwise', () => {
    let time = 0;
    const spread = createSpread(() => time);
    for (const repository of ['a/x', 'a/y', 'b/x']) spread.add(path(repository), 50);
    spread.remove(path('a/x'));
    expect(['a/x', 'a/y'].map((key) => spread.first(key))).to.deep.equal([0, 50]);
    expect(['a', 'host'].map((key) => spread.whole(key))).to.deep.equal([0, 0]);
    time = 50;
    expect(spread.first('a/y')).to.equal(0);
  });

  it('is forgotten by bytes, the oldest first', () => {
    const spread = createSpread(() => 0);
    spread.add(['first'], 50);
    for (let index = 0; index < 20_000; index += 1) spread.add([`${'y'.repeat(500)}${index}`], 50);
    expect(spread.first('first')).to.equal(0);
    expect(spread.first(`${'y'.repeat(500)}19999`)).to.equal(50);
  });
});
