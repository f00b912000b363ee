import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { applyLayer, contentsOf, readDebian, readSystem } from '../../../hack/release/image/contents.ts';
import { tarEntries } from '../../../hack/release/image/tar.ts';
import { folderForAll } from '../../support/folder.ts';

const PLATFORM = { os: 'linux', architecture: 'amd64', digest: `sha256:${'a'.repeat(64)}` };

describe('what is in an image', () => {
  const folder = folderForAll();

  /** A layer with these files, by the tar of this machine. */
  function layerOf(files: Readonly<Record<string, string>>, ...flags: readonly string[]): Buffer {
    const root = mkdtempSync(folder.at('layer-'));
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    execFileSync('tar', ['-C', root, ...flags, '-cf', `${root}.tar`, '.']);
    return readFileSync(`${root}.tar`);
  }
  const filesOf = (...layers: readonly Buffer[]) => {
    const files = new Map<string, Buffer>();
    for (const layer of layers) applyLayer(files, layer);
    return files;
  };

  for (const format of ['ustar', 'pax', 'gnu']) {
    it(`is read from archives of the format ${format}, with long names`, () => {
      const path = `usr/lib/node_modules/${'x'.repeat(90)}/${'y'.repeat(60)}/package.json`;
      const entries = [...tarEntries(layerOf({ [path]: '{}', short: 'é' }, `--format=${format}`))];
      const texts = Object.fromEntries(
        entries.filter(({ bytes }) => bytes.length > 0).map((one) => [one.path, `${one.bytes}`]),
      );
      expect(texts).to.deep.equal({ [path]: '{}', short: 'é' });
    });
  }

  it('is refused if a layer is cut', () => {
    const layer = layerOf({ 'app/dist/main.js': 'x'.repeat(3000) });
    const at = layer.indexOf('xxx');
    expect(() => [...tarEntries(layer.subarray(0, at + 512))]).to.throw('Truncated input');
  });

  it('names Node.js, the packages of Debian and npm, and our bundle', () => {
    const files = filesOf(
      layerOf({
        'etc/os-release': 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nVERSION_ID="13"\nID=debian\n',
        'var/lib/dpkg/status':
          'Package: libc6\nStatus: install ok installed\nSource: glibc\nArchitecture: amd64\nVersion: 2.41-12\n',
        'usr/local/bin/node': `\0\0https://nodejs.org/download/release/v24.21.0/node-v24.21.0-headers.tar.gz\0`,
        'usr/local/lib/node_modules/npm/package.json': '{"name":"npm","version":"11.6.0","license":"Artistic-2.0"}',
        'usr/local/lib/node_modules/npm/node_modules/@a/b/package.json': '{"name":"@a/b","version":"1.0.0"}',
        'usr/local/lib/node_modules/npm/node_modules/@a/b/dist/package.json': '{"type":"module"}',
      }),
      layerOf({ 'app/dist/main.js': 'our bundle', 'app/package.json': '{"name":"archaware-controller"}' }),
    );
    const { system, node, debian, npm, bundle } = contentsOf(PLATFORM, files);
    expect(system).to.deep.equal({ id: 'debian', version: '13', name: 'Debian GNU/Linux 13 (trixie)' });
    expect(node?.version).to.equal('24.21.0');
    expect(node?.sha256).to.match(/^[0-9a-f]{64}$/);
    expect(debian).to.deep.equal([{ name: 'libc6', version: '2.41-12', architecture: 'amd64', source: 'glibc' }]);
    expect(npm).to.have.deep.members([
      { name: 'npm', version: '11.6.0', license: 'Artistic-2.0' },
      { name: '@a/b', version: '1.0.0', license: undefined },
    ]);
    expect(`${bundle}`).to.equal('our bundle');
  });

  it('is not what a later layer replaced or removed', () => {
    const npm = (name: string) => `usr/lib/node_modules/${name}/package.json`;
    const text = (name: string, version: string) => JSON.stringify({ name, version });
    const files = filesOf(
      layerOf({ [npm('a')]: text('a', '1.0.0'), [npm('b')]: text('b', '1.0.0'), [npm('c')]: text('c', '1.0.0') }),
      layerOf({ [npm('a')]: text('a', '2.0.0'), 'usr/lib/node_modules/.wh.b': '' }),
    );
    expect(contentsOf(PLATFORM, files).npm.map(({ name, version }) => `${name} ${version}`)).to.have.members([
      'a 2.0.0',
      'c 1.0.0',
    ]);
    applyLayer(files, layerOf({ 'usr/lib/node_modules/.wh..wh..opq': '', [npm('d')]: text('d', '1.0.0') }));
    expect(contentsOf(PLATFORM, files).npm.map(({ name }) => name)).to.deep.equal(['d']);
  });

  describe('packages of Debian', () => {
    const paragraph = (...lines: readonly string[]) =>
      ['Package: a', 'Architecture: all', 'Version: 1', ...lines].join('\n');
    const rows: readonly (readonly [string, string, readonly (string | undefined)[]])[] = [
      ['installed', paragraph('Status: install ok installed'), [undefined]],
      ['without a status, as in images without dpkg', paragraph(), [undefined]],
      ['removed, with its configuration left', paragraph('Status: deinstall ok config-files'), []],
      ['with a source of another name', paragraph('Source: glibc'), ['glibc']],
      ['with a source of another version', paragraph('Source: glibc (2.41-1)'), ['glibc@2.41-1']],
      ['two of them', `${paragraph()}\n\n${paragraph('Source: b')}\n`, [undefined, 'b']],
    ];
    for (const [title, text, sources] of rows) {
      it(title, () => expect(readDebian(text).map(({ source }) => source)).to.deep.equal(sources));
    }
  });

  it('has no operating system without a name of one', () => expect(readSystem('NAME=x\n')).to.equal(undefined));
});
