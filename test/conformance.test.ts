import { readFileSync } from 'node:fs';
import { expect } from 'chai';

const DOCUMENT = new URL('../docs/conformance.md', import.meta.url);
const TITLE = /\bit\(\s*(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)"|`((?:\\.|[^`\\])*)`)/g;
const SUPPORT = /\bfrom '(\.\/support\/[^']+)'/g;

/** Whether a file has a test of this title: what a template leaves open has to stand there too, or in its tables. */
function hasTest(file: string, title: string): boolean {
  const place = new URL(file, DOCUMENT);
  const text = readFileSync(place, 'utf8');
  const tables = () => [...text.matchAll(SUPPORT)].map(([, to = '']) => readFileSync(new URL(to, place), 'utf8'));
  return [...text.matchAll(TITLE)].some(([, single, double, template = '']) => {
    const plain = single ?? double;
    if (plain !== undefined) return plain.replaceAll(/\\(.)/g, '$1') === title;
    const parts = template.split(/\$\{[^}]*\}/).map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
    const filled = title.match(new RegExp(`^${parts.join('(.+)')}$`))?.slice(1);
    return filled?.every((open) => [text, ...tables()].some((source) => source.includes(open))) === true;
  });
}

/** The rows of all tables: behaviour, from, outcome, why, shown by. */
const rows = readFileSync(DOCUMENT, 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| ') && !/^\| (?:behaviour|---) /.test(line))
  .map((line) => line.slice(2, -2).split(/ ?(?<!\\)\| /));

describe('docs/conformance.md', () => {
  it('has each behaviour once, and says why where archaware does something else', () => {
    expect(new Set(rows.map(([behaviour]) => behaviour)).size).to.equal(rows.length);
    for (const [behaviour, from, outcome, why] of rows) {
      expect(from, behaviour).to.match(/^(?:M|N|M, N|neither)$/);
      expect(outcome, behaviour).to.be.oneOf(['same', 'better', 'different on purpose']);
      expect(why === '', behaviour).to.equal(outcome === 'same');
    }
  });

  it('names for each a test that exists', () => {
    const missing = rows.flatMap(([behaviour, , , , shown = '']) => {
      const named = shown.replaceAll('\\|', '|').split('<br>');
      return named
        .filter((one) => {
          const [, file, title] = /^\[[^\]]+\]\(([^)]+)\) “(.+)”$/.exec(one) ?? [];
          return file === undefined || title === undefined || !hasTest(file, title);
        })
        .map((one) => `${behaviour}: ${one}`);
    });
    expect(missing).to.deep.equal([]);
    expect(hasTest('../test/e2e/admission-affinity.e2e.ts', 'holds'), 'a part of a title').to.equal(false);
  });
});
