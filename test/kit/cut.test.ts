import { expect } from 'chai';
import { strangersText } from '../../src/kit/cut.ts';

describe('what the program looks at of a text that a stranger wrote', () => {
  const rows: [given: string, text: string, expected: string][] = [
    ['an empty text', '', ''],
    ['1024 characters', 'x'.repeat(1024), 'x'.repeat(1024)],
    ['one more: the beginning and the end', `a${'x'.repeat(1023)}z`, `a${'x'.repeat(511)}…${'x'.repeat(510)}z`],
    ['a megabyte', `a${'x'.repeat(1e6)}z`, `a${'x'.repeat(511)}…${'x'.repeat(510)}z`],
    ['pairs of surrogates', '😀'.repeat(1000), `${'😀'.repeat(256)}…\uFFFD${'😀'.repeat(255)}`],
  ];
  for (const [given, text, expected] of rows) {
    it(`${given}: at most 1024 characters`, () => {
      expect(strangersText(text)).to.equal(expected);
      expect(expected).to.have.length.at.most(1024);
    });
  }
});
