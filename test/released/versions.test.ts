import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { checkVersions } from '../../hack/release/versions.ts';
import { ROOT } from './release.ts';

describe('the version of the program', () => {
  it('is the same in every file of the repository that names it', async () => {
    const { version } = JSON.parse(await readFile(`${ROOT}package.json`, 'utf8'));
    expect(await checkVersions(ROOT, version)).to.deep.equal([]);
  });

  it('is missed where a file has another one', async () => {
    const problems = await checkVersions(ROOT, '9.9.9');
    expect(problems.some((problem) => problem.startsWith('package.json: version is '))).to.equal(true);
    expect(problems).to.include('CHANGELOG.md: no section "## 9.9.9"');
  });
});
