import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { filesBelow } from '../support/platforms.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Their blocks are run by test/release/parts. */
const REHEARSED = ['README.md', 'docs/verify.md'];

function blocksOf(page: string): string[] {
  const text = readFileSync(ROOT + page, 'utf8');
  return [...text.matchAll(/^```sh tested-on-release\n([\s\S]*?)^```$/gm)].map(([, script = '']) => script);
}

describe('a block of a document that needs a release', () => {
  it('stands on a page that the rehearsal reads, or is the same as one there', () => {
    const rehearsed = new Set(REHEARSED.flatMap(blocksOf));
    expect(rehearsed.size).to.be.above(2);
    const pages = filesBelow('docs').filter((file) => file.endsWith('.md'));
    for (const page of pages) {
      for (const block of blocksOf(page)) expect(rehearsed.has(block), `${page}: ${block}`).to.equal(true);
    }
  });
});
