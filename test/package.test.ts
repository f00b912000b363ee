import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { krewManifest, PLACEHOLDER_SUM } from '../hack/executables/krew.ts';
import { PLACEHOLDER } from '../hack/release/names.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const text = (path: string) => readFileSync(ROOT + path, 'utf8');
const packageJson = JSON.parse(text('package.json'));

describe('the first screen of the README', () => {
  it('names the two commands that .ci/run runs first on a clean checkout', () => {
    const screen = text('README.md').split('\n').slice(0, 24).join('\n');
    const commands = /```sh\n([^`]*)```/.exec(screen)?.[1]?.trim().split('\n');
    expect(commands).to.deep.equal(['npm ci && npm run demo', 'npm ci && npm test']);
    expect(text('.ci/run')).to.include('hack/verify.sh --install');
    for (const command of commands ?? []) expect(text('hack/verify.sh')).to.include(`'${command}'`);
  });
});

describe('the package that npm makes', () => {
  it('holds the bundle, and what npm always adds', () => {
    const packed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
      cwd: ROOT,
      // There npm is a script of cmd.exe.
      shell: process.platform === 'win32',
    });
    const [{ files }] = JSON.parse(packed.toString());
    const paths = files.map(({ path }: { path: string }) => path);
    expect(paths).to.have.members(['LICENSE', 'README.md', 'dist/main.js', 'package.json']);
  });

  it('is not published by mistake', () => expect(packageJson.private).to.equal(true));
});

describe('the bundle', () => {
  it('is ASCII, so that its text needs one byte for each character in memory', () => {
    expect(/[^\0-\x7f]/.exec(text('dist/main.js'))?.[0]).to.equal(undefined);
  });

  it('sets the compiler of WebAssembly before it loads anything else', () => {
    for (const path of ['src/main.ts', 'hack/executables/main.ts']) {
      expect(/^import '?(.*)'?;$/m.exec(text(path))?.[1], path).to.match(/app\/wasm\.ts'$/);
    }
  });
});

describe("Krew's manifest", () => {
  it('is what npm run generate:krew writes', () => {
    const generated = krewManifest(
      packageJson.version,
      { url: PLACEHOLDER.downloads, homepage: PLACEHOLDER.source },
      () => PLACEHOLDER_SUM,
    );
    expect(text('manifests/krew/archaware.yaml')).to.equal(generated);
  });
});
