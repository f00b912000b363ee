import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { conformanceTables, SECTIONS } from './e2e/conformance/table.ts';

const DOCUMENT = new URL('../docs/conformance.md', import.meta.url);
const TITLE = /\bit\(\s*(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)"|`((?:\\.|[^`\\])*)`)/g;
const SUPPORT = /\bfrom '(\.\/support\/[^']+)'/g;

/** Whether a file of tests has one of this title: what a template leaves open has to stand there too, or in its tables. */
function hasTest(file: string, title: string): boolean {
  const place = new URL(file, import.meta.url);
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

describe('docs/conformance.md', () => {
  it('has the tables that the rows make: npx tsx hack/conformance.ts', () => {
    const document = readFileSync(DOCUMENT, 'utf8');
    expect(document.slice(document.indexOf('## '))).to.equal(conformanceTables());
  });

  it('has each behaviour once, and says why where we are not the same', () => {
    const all = Object.values(SECTIONS).flat();
    expect(new Set(all.map(({ behaviour }) => behaviour)).size).to.equal(all.length);
    for (const { behaviour, outcome, why } of all) expect(why === '', behaviour).to.equal(outcome === 'same');
  });

  it('names tests that exist', () => {
    const missing = Object.values(SECTIONS)
      .flat()
      .flatMap(({ behaviour, tests }) => {
        expect(tests, behaviour).to.not.be.empty;
        return tests.filter(([file, title]) => !hasTest(file, title)).map(([file, title]) => `${file}: ${title}`);
      });
    expect(missing).to.deep.equal([]);
    expect(hasTest('e2e/admission-affinity.e2e.ts', 'holds'), 'a part of a title').to.equal(false);
  });
});
