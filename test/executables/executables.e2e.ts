/** What `npm run executables` made: of every platform its structure, and of linux/amd64 that it runs. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import { at, listAt, textAt } from '../../hack/cluster/json.ts';
import { binaries } from '../../hack/cluster/spawn.ts';
import { machCommands } from '../../hack/executables/mach-o.ts';
import { archiveOf, nameOf, programOf, TARGETS, type Target } from '../../hack/executables/targets.ts';
import { run, runWith } from '../e2e/support/programs.ts';
import { folderForAll } from '../support/folder.ts';
import { type Product, startProduct } from '../support/product.ts';
import { readExecutable } from './read.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const DIRECTORY = join(ROOT, 'dist/executables');
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
const MEGABYTE = 1e6;

const pathOf = (target: Target) => join(DIRECTORY, nameOf(target), programOf(target));
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

for (const target of TARGETS) {
  describe(`the executable for ${nameOf(target)}`, () => {
    let file: Buffer;
    before(async () => {
      file = await readFile(pathOf(target));
    });

    it('is one for that platform, and holds the blob of the bundle', async () => {
      const { os, architecture, blob } = readExecutable(file);
      expect({ os, architecture }).to.deep.equal({ os: target.os, architecture: target.architecture });
      expect(blob?.equals(await readFile(join(DIRECTORY, 'blob')))).to.equal(true);
      expect(file.length / MEGABYTE).to.be.within(75, 150);
    });

    it('makes Node.js look for the blob', () => {
      expect([file.includes(`${FUSE}:1`), file.includes(`${FUSE}:0`)]).to.deep.equal([true, false]);
    });

    if (target.os === 'darwin') {
      it('is signed ad hoc: the hashes are those of its pages', () => expect(wrongPages(file)).to.deep.equal([]));
    }

    if (target.os === 'windows') {
      it('has no signature that does not fit any more', () => {
        const entry = file.readUInt32LE(0x3c) + 24 + 112 + 4 * 8;
        expect([file.readUInt32LE(entry), file.readUInt32LE(entry + 4)]).to.deep.equal([0, 0]);
      });
    }

    it('is in an archive, whose sum stands in SHA256SUMS and in the manifest of Krew', async () => {
      const archive = join(DIRECTORY, archiveOf(target));
      expect((await run(['tar'], '-tzf', archive)).split('\n')).to.deep.equal([
        programOf(target),
        'LICENSE',
        'LICENSE.node',
        '',
      ]);
      const sum = sha256(await readFile(archive));
      expect(await readFile(join(DIRECTORY, 'SHA256SUMS'), 'utf8')).to.include(`${sum}  ${archiveOf(target)}\n`);
      const manifest: unknown = parse(await readFile(join(DIRECTORY, 'archaware.yaml'), 'utf8'));
      const platform = listAt(manifest, 'spec', 'platforms').find((one) => textAt(one, 'sha256') === sum);
      expect(at(platform, 'selector', 'matchLabels')).to.deep.equal({ os: target.os, arch: target.architecture });
    });
  });
}

describe('kubectl archaware', function () {
  this.timeout(120_000);
  const own = join(DIRECTORY, 'linux-amd64');
  const kubectl = join(binaries(), 'kubectl');
  let product: Product;
  const home = folderForAll();

  before(async function () {
    if (process.platform !== 'linux' || process.arch !== 'x64') return this.skip();
    product = await startProduct();
  });
  after(() => product?.stop());

  const environment = () => ({
    HOME: home.at(),
    KUBECONFIG: product.cluster.kubeconfig,
    PATH: [own, binaries(), process.env.PATH].join(delimiter),
    ARCHAWARE_REGISTRIES__INSECURE: product.registry.host,
  });
  const program = (...args: string[]) => runWith(environment(), [join(own, 'kubectl-archaware')], ...args);

  it('starts alone, and has the version of the package', async () => {
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    expect(await program('--version')).to.equal(`${version}\n`);
  });

  it('looks up an image', async () => {
    const found: unknown = JSON.parse(await program('inspect', product.image('web', ['amd64', 'arm64']), '-o', 'json'));
    expect(listAt(found, 0, 'platforms').map((one) => textAt(one, 'architecture'))).to.deep.equal(['amd64', 'arm64']);
  });

  it('plans on a cluster', async () => {
    // 2: there are changes to make.
    const planned = await runWith(environment(), ['sh', '-c', 'kubectl-archaware plan -o json || [ $? = 2 ]']);
    const changes = listAt(JSON.parse(planned), 'changes').map((one) => [textAt(one, 'kind'), textAt(one, 'name')]);
    expect(changes).to.deep.include.members([
      ['Node', 'amd64-1'],
      ['Node', 'arm64-1'],
    ]);
  });

  it('is a command of kubectl, and calls itself so', async function () {
    if (!existsSync(kubectl)) return this.skip();
    const help = await runWith(environment(), ['kubectl', 'archaware', 'inspect'], '--help');
    expect(help).to.match(/^kubectl archaware inspect IMAGE…/);
    const found = await runWith(environment(), ['kubectl', 'archaware'], 'inspect', product.image('job', ['arm64']));
    expect(found).to.include('linux/arm64');
  });
});

/** The pages of a Mach-O file whose hash is not the one in its code directory. */
function wrongPages(file: Buffer): number[] {
  const { commands } = machCommands(file);
  const signature = commands.find(({ command }) => command === 0x1d);
  if (signature === undefined) throw new Error('no signature');
  const start = file.readUInt32LE(signature.offset + 8);
  expect(start + file.readUInt32LE(signature.offset + 12)).to.equal(file.length);
  const directory = start + file.readUInt32BE(start + 16);
  const [hashes, pages, limit] = [16, 28, 32].map((offset) => file.readUInt32BE(directory + offset));
  const size = 2 ** file.readUInt8(directory + 39);
  expect(limit).to.equal(start);
  return Array.from({ length: pages ?? 0 }, (_, page) => page).filter((page) => {
    const hash = directory + (hashes ?? 0) + page * 32;
    const bytes = file.subarray(page * size, Math.min((page + 1) * size, start));
    return sha256(bytes) !== file.toString('hex', hash, hash + 32);
  });
}
