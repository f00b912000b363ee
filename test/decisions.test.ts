import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';

const FOLDER = new URL('../docs/decisions/', import.meta.url);
const files = readdirSync(FOLDER)
  .filter((file) => file !== 'README.md')
  .sort();

describe('docs/decisions', () => {
  it('are numbered once, and each title has the number of its file', () => {
    const numbers = files.map((file) => Number(file.slice(0, 3)));
    expect(new Set(numbers).size).to.equal(numbers.length);
    for (const file of files) expect(readFileSync(new URL(file, FOLDER), 'utf8'), file).to.match(titleOf(file));
  });

  it('stand in the index in their order, each with its title', () => {
    const rows = readFileSync(new URL('README.md', FOLDER), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('| ['));
    const wanted = files.map((file) => {
      const [title = ''] = readFileSync(new URL(file, FOLDER), 'utf8').split('\n');
      return `| [${file.slice(0, 3)}](${file}) | ${title.slice(7)} |`;
    });
    expect(rows).to.deep.equal(wanted);
  });

  it('refer to nothing outside of the repository', () => {
    for (const file of files) {
      expect(readFileSync(new URL(file, FOLDER), 'utf8'), file).not.to.match(/\b(the (design|facts|issue)|Issue \d)\b/);
    }
  });
});

function titleOf(file: string): RegExp {
  return new RegExp(`^# ${file.slice(0, 3)}: \\S`);
}
