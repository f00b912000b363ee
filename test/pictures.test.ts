import { readdir, readFile, stat } from 'node:fs/promises';
import { expect } from 'chai';
import { pagesOf, plain } from '../hack/pictures/recording.ts';
import { PICTURES, pictures, RECORDING } from '../hack/pictures.ts';

/** `WRITE_PICTURES=1 npm run test:browser` writes them. */
const SCREENSHOTS: readonly string[] = ['report-summary.png', 'report-workloads.png'];

describe('docs/pictures', () => {
  it('has what hack/pictures.ts makes, and nothing else (else: npm run generate)', async () => {
    const made = await pictures();
    const drawings = (await readdir(PICTURES)).filter((file) => !SCREENSHOTS.includes(file));
    expect(drawings.sort()).to.deep.equal([...made.keys()].sort());
    for (const [file, text] of made) expect(await readFile(`${PICTURES}${file}`, 'utf8'), file).to.equal(text);
  });

  it('has the screenshots of docs/report.md, none larger than 150 KB', async () => {
    const page = await readFile(new URL('../docs/report.md', import.meta.url), 'utf8');
    for (const file of SCREENSHOTS) {
      expect(page).to.include(`](pictures/${file})`);
      expect((await stat(`${PICTURES}${file}`)).size, file).to.be.below(150_000);
    }
  });

  it('has the demo as it was recorded, and README.md has its two tables', async () => {
    const recording = await readFile(RECORDING, 'utf8');
    const tables = recording
      .split('\n')
      .map(plain)
      .join('\n')
      .split('\n\n')
      .filter((part) => part.startsWith('  WORKLOAD '));
    expect(tables).to.have.length(2);
    const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
    for (const table of tables) expect(readme).to.include(table.replace(/^ {2}/gm, ''));
    expect(pagesOf(recording).flat().map(plain)).to.include(
      '  2  Without archaware: the scheduler does not ask what an image runs on',
    );
  });
});
