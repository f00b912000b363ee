import * as zlib from 'node:zlib';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { settleFor } from '../../../src/oci/deep/find-program.ts';
import { type Allowance, createStep, PER_PLATFORM, readLayer } from '../../../src/oci/deep/layer-reader.ts';
import { createLayerTree } from '../../../src/oci/deep/layer-tree.ts';
import { digestOf } from '../../../testimg/build.ts';
import { archive, elf, type LayerEntry } from '../../../testimg/layers.ts';

const APP: LayerEntry = { name: 'app', bytes: elf('arm64') };

/** Reads layers, the top one first, and returns why that ended. */
async function read(
  layers: readonly Buffer[],
  allowance: Partial<Allowance> = {},
): Promise<{ why: string; finding: string }> {
  const allowed = { ...PER_PLATFORM, ...allowance };
  const tree = createLayerTree({ step: createStep(allowed, () => undefined) });
  let why = 'whole';
  try {
    for (const [index, layer] of layers.entries()) {
      tree.begin();
      await readLayer(inChunks(layer), digestOf(layer), { tree, allowance: allowed, isEnough: () => false });
      tree.end(index === layers.length - 1);
    }
  } catch (error) {
    why = error instanceof Error ? error.message : String(error);
  }
  const process = { argv: ['/app'], path: [], workingDirectory: '/' };
  const { verdict, reason } = settleFor({ platform: { os: 'linux', architecture: 'arm64' }, process, tree }, why);
  return { why, finding: reason ?? verdict };
}

async function* inChunks(bytes: Buffer): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 1000) yield bytes.subarray(at, at + 1000);
}

describe('reading a layer', () => {
  it('ends at a limit of compressed bytes', async () => {
    const { finding } = await read([archive([{ name: 'a', bytes: Buffer.alloc(50_000) }, APP])], {
      compressed: 10_000,
    });
    expect(finding).to.equal('/app was not reached within 512 MiB');
  });

  it('ends at a limit of decompressed bytes, for a bomb', async () => {
    const bomb = gzipSync(archive([{ name: 'a', bytes: Buffer.alloc(20_000_000) }, APP]));
    const { finding } = await read([bomb], { decompressed: 1_000_000 });
    expect(finding).to.equal('/app was not reached within 4096 MiB of decompressed layers');
  });

  it('ends at a limit of entries', async () => {
    const entries = Array.from({ length: 3000 }, (_, index) => ({ name: `link-${index}`, target: 'a' }));
    const { finding } = await read([gzipSync(archive([...entries, APP]))], { memory: 100_000 });
    expect(finding).to.equal('/app was not reached: the layers have too many entries');
  });

  it('keeps nothing of files that cannot be executed', async () => {
    const entries = Array.from({ length: 3000 }, (_, index) => ({ name: `file-${index}`, mode: '644' }));
    const { finding } = await read([gzipSync(archive([...entries, APP]))], { memory: 100_000 });
    expect(finding).to.equal('agrees');
  });

  it('skips extended headers that are too large', async () => {
    const { finding } = await read([gzipSync(archive([{ ...APP, pax: { comment: 'x'.repeat(300_000) } }]))]);
    expect(finding).to.match(/^\/app was not found: a layer is not a valid tar archive/);
  });

  const compress: unknown = Reflect.get(zlib, 'zstdCompressSync');
  const zstd = (bytes: Buffer): Buffer => {
    const packed: unknown = typeof compress === 'function' ? compress(bytes) : undefined;
    return Buffer.isBuffer(packed) ? packed : Buffer.alloc(0);
  };
  const skippable = Buffer.from('502a4d180300000061626300', 'hex').subarray(0, 11);
  const tar = archive([{ name: 'a', bytes: Buffer.alloc(200_000, 'a') }, APP]);
  const frames: readonly (readonly [title: string, parts: () => readonly Buffer[]])[] = [
    ['one frame', () => [zstd(tar)]],
    ['frames', () => [zstd(tar.subarray(0, 600)), zstd(tar.subarray(600, 150_000)), zstd(tar.subarray(150_000))]],
    ['empty frames', () => [skippable, zstd(tar.subarray(0, 600)), skippable, zstd(tar.subarray(600)), skippable]],
  ];
  for (const [title, parts] of frames) {
    it(`reads zstd: ${title}`, async function () {
      if (typeof compress !== 'function') this.skip();
      expect((await read([Buffer.concat(parts())])).finding).to.equal('agrees');
    });
  }

  it('says that Node.js 20 has no zstd', async function () {
    if (typeof compress === 'function') this.skip();
    const { finding } = await read([Buffer.from('28b52ffd0000000000', 'hex')]);
    expect(finding).to.match(
      /^\/app was not found: a layer is compressed with zstd, which Node\.js v20\.[0-9.]+ cannot/,
    );
  });
});
