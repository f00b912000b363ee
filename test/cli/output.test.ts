import { expect } from 'chai';
import { table } from '../../src/cli/output.ts';

const DIGEST = `sha256:${'0123456789abcdef'.repeat(4)}`;
const LONG = 'a-deployment-with-a-long-name-86968b8b44-x22m5';
const WORDS = Array.from({ length: 20 }, (_, index) => `word${index}`).join(' ');

describe('a table', () => {
  const rows = [
    ['Pod', 'shop', LONG, WORDS],
    ['Pod', 'x', 'y', `web@${DIGEST}`],
  ];
  const header = ['KIND', 'NAMESPACE', 'NAME', 'IMAGES'];

  it('is whole without a terminal, one line for each row', () => {
    const lines = table(header, rows).trimEnd().split('\n');
    expect(lines).to.have.lengthOf(3);
    expect(lines[1]).to.include(LONG).and.to.include(WORDS);
    expect(lines[2]).to.include(DIGEST);
  });

  for (const columns of [60, 80, 120]) {
    it(`fits a terminal of ${columns} columns`, () => {
      for (const line of table(header, rows, columns).split('\n')) expect(line.length, line).to.be.at.most(columns);
    });
  }

  it('wraps the last column, cuts names in the middle and shortens digests at a terminal', () => {
    const text = table(header, rows, 72);
    expect(text).to.match(/^Pod {3}shop {7}a-deploymen\S*…\S*-x22m5 {2}word0 word1/m);
    expect(text).to.match(/^ +word\d+ word\d+/m);
    expect(table(['A', 'B'], [['two words '.repeat(10), 'x '.repeat(30)]], 60)).to.match(
      /^two words two words .*x x x$/m,
    );
    expect(text).to.include('web@sha256:0123456789ab…\n');
  });

  it('keeps a long word of the last column whole, so that it can be copied', () => {
    const word = 'registry.example.com/'.repeat(6);
    expect(table(['A', 'B'], [['x', word]], 80)).to.include(word);
  });

  it('leaves short columns as wide as they are', () =>
    expect(table(['A', 'B'], [['one', 'two']], 80)).to.equal('A    B\none  two\n'));
});
