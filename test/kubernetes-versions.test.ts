import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { foundIn, MENTIONS } from '../hack/cluster/versions/mentions.ts';
import { stagingVersion } from '../hack/cluster/versions/module.ts';
import { PAGE, withSupportTable } from '../hack/cluster/versions/table.ts';
import {
  formatRecord,
  moduleFolder,
  parseRecord,
  RECORD,
  readVersions,
  triedOf,
} from '../hack/cluster/versions/versions.ts';

const ROOT = new URL('../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8');

describe('the versions of Kubernetes', () => {
  const versions = readVersions(ROOT);
  const tried = triedOf(versions);

  it('stand in the table of docs/support.md as in versions.json and in the modules', () => {
    expect(read(PAGE), 'npm run generate:versions').to.equal(withSupportTable(read(PAGE), versions));
  });

  for (const { file, text } of MENTIONS) {
    it(`are in ${file}: ${text(tried)}`, () => {
      expect(foundIn(read(file), text(tried)), `${file} has no "${text(tried)}"`).not.to.equal(undefined);
    });
  }

  it('have a module where the tests run on them, and every module has a version', () => {
    const folders = readdirSync(new URL('hack/cluster/tools', ROOT)).filter((name) => name.startsWith('kubernetes-'));
    expect(folders).to.have.members(tried.older.map(({ minor }) => `kubernetes-${minor}`));
    for (const { minor, patch } of [tried.main, ...tried.older]) expect(patch).to.match(new RegExp(`^${minor}[.]`));
  });

  it('have no gap, and the oldest one is the oldest that archaware accepts', () => {
    const minors = versions.minors.map(({ minor }) => Number(minor.split('.')[1]));
    const [newest = 0] = minors;
    expect(minors).to.deep.equal(minors.map((_, index) => newest - index));
    const [, least] = /LEAST_MINOR = (\d+);/.exec(read('src/app/connect.ts')) ?? [];
    expect(versions.minors.at(-1)?.minor).to.equal(`1.${least}`);
    expect(versions.minors.at(-1)?.patch, 'the tests run on the oldest one').to.be.a('string');
    expect(versions.minors[1]?.patch, 'the tests run on the one before the main line').to.be.a('string');
  });

  for (const { minor, patch } of [tried.main, ...tried.older]) {
    it(`have every staging module of ${patch} at its version`, () => {
      const goMod = read(`${moduleFolder(minor, minor === tried.main.minor)}/go.mod`);
      const replaced = [...goMod.matchAll(/^\t(\S+) => (\S+) v(\S+)$/gm)];
      expect(replaced).to.have.length.above(20);
      for (const [, from, to, version] of replaced) expect([to, version]).to.deep.equal([from, stagingVersion(patch)]);
    });
  }

  it('are recorded as the formatter of the script writes them', () => {
    expect(formatRecord(parseRecord(read(RECORD)))).to.equal(read(RECORD));
  });
});
