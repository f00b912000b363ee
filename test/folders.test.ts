import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect } from 'chai';
import { filesBelow } from './support/platforms.ts';

/** How many names of files may stand in several folders: each command has the same parts, and so has each controller. */
const MOST_REPEATED = 10;

const files = filesBelow('src');

describe('the folders of src', () => {
  for (const readme of files.filter((file) => basename(file) === 'README.md').sort()) {
    it(`${readme} names only files that exist`, () => {
      const named = [...readFileSync(readme, 'utf8').matchAll(/`([\w./-]+\.ts)`/g)].map(([, name = '']) => name);
      const missing = named.filter((name) => !isThere(readme, name));
      expect(missing, `${readme} names files that are not there`).to.deep.equal([]);
    });
  }

  it(`repeat at most ${MOST_REPEATED} names of files`, () => {
    const folders = new Map<string, string[]>();
    for (const file of files.filter((each) => each.endsWith('.ts'))) {
      folders.set(basename(file), [...(folders.get(basename(file)) ?? []), dirname(file)]);
    }
    const repeated = [...folders].filter(([, { length }]) => length > 1).map(([name]) => name);
    expect(repeated.sort(), 'names that stand in several folders').to.have.length.of.at.most(MOST_REPEATED);
  });
});

/** Whether there is a file of this name below the README's folder, below `src`, or below the root of the repository. */
function isThere(readme: string, name: string): boolean {
  const isBelow = (file: string) => file.startsWith(dirname(readme)) && file.endsWith(`/${name}`);
  return (
    existsSync(join(dirname(readme), name)) || existsSync(name) || existsSync(join('src', name)) || files.some(isBelow)
  );
}
