import { spawnSync } from 'node:child_process';
import { expect } from 'chai';
import { ROOT } from './release.ts';

describe('npm run version:set', () => {
  const rows: readonly [args: readonly string[], code: number, says: RegExp][] = [
    [[], 3, /^usage: npm run version:set -- X\.Y\.Z/],
    [['v1.2.3'], 3, /^version: "v1\.2\.3" is not a version/],
    [['--help'], 0, /^usage:/],
  ];
  for (const [args, code, says] of rows) {
    it(`ends with ${code}: ${args.join(' ') || 'without a version'}`, () => {
      const ended = spawnSync(process.execPath, ['--import', 'tsx', 'hack/version.ts', ...args], {
        cwd: ROOT,
        encoding: 'utf8',
      });
      expect(ended.status).to.equal(code);
      expect(code === 0 ? ended.stdout : ended.stderr).to.match(says);
    });
  }
});
