import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const SCRIPT = fileURLToPath(new URL('../hack/release.sh', import.meta.url));

/** Stands in for npm and for node: writes down its words and what it got from the environment. */
const PROGRAM = `#!/usr/bin/env bash
echo "\${0##*/} $* LC_ALL=$LC_ALL GIT_DIR=\${GIT_DIR-}" >> said
`;

describe('hack/release.sh', () => {
  let root: string;

  beforeEach(function () {
    if (process.platform === 'win32') this.skip();
    root = mkdtempSync(join(tmpdir(), 'archaware-release-'));
    mkdirSync(join(root, 'hack'));
    mkdirSync(join(root, 'bin'));
    cpSync(SCRIPT, join(root, 'hack/release.sh'));
    for (const name of ['npm', 'node']) writeFileSync(join(root, 'bin', name), PROGRAM, { mode: 0o755 });
  });

  afterEach(() => rmSync(root, { recursive: true, force: true }));

  it('starts with the packages of development, and with nothing of the language and of a hook of git', () => {
    const env = {
      PATH: `${join(root, 'bin')}${delimiter}${process.env.PATH}`,
      LC_ALL: 'da_DK.UTF-8',
      GIT_DIR: '/elsewhere',
      NODE_ENV: 'production',
    };
    const { status } = spawnSync('bash', [join(root, 'hack/release.sh'), '0.2.0'], { env });
    expect(status).to.equal(0);
    expect(readFileSync(join(root, 'said'), 'utf8').trim().split('\n')).to.deep.equal([
      'npm ci --include=dev --ignore-scripts --no-audit --no-fund LC_ALL=C GIT_DIR=',
      'node --import tsx hack/release/main.ts 0.2.0 LC_ALL=C GIT_DIR=',
    ]);
  });
});
