import fc from 'fast-check';
import { Parser } from 'tar/parse';
import { settleFor } from '../../src/oci/deep/find-program.ts';
import { createArchive, createStep, LayerProblem } from '../../src/oci/deep/layer-reader.ts';
import { createLayerTree } from '../../src/oci/deep/layer-tree.ts';
import { archive, elf, type LayerEntry } from '../../testimg/layers.ts';
import { isShowable, must, type Target } from './target.ts';

const name = fc.oneof(
  fc.constantFrom('bin/app', './bin/app', '/bin/app', '../bin/app', 'bin', 'usr/bin', 'usr/bin/app', 'bin/.wh.app'),
  fc.constantFrom('.wh.bin', 'bin/.wh..wh..opq', '.wh..wh..opq', '.wh.', '.', '..', 'a/'.repeat(60)),
  fc.string({ maxLength: 200 }),
);
const text = (bytes: Buffer): string => bytes.toString('latin1');
const program = fc.constantFrom(
  elf('amd64'),
  elf('arm64').subarray(0, 19),
  Buffer.from('#!/bin/app'),
  Buffer.from('#! /usr/bin/env -S app'),
  Buffer.from('MZ'.padEnd(60, '\0').concat('\xff\xff\xff\xff'), 'latin1'),
  Buffer.alloc(0),
);
const entry: fc.Arbitrary<LayerEntry> = fc.oneof(
  fc.record({ name, bytes: program, mode: fc.constantFrom('755', '644', '7777777') }),
  fc.record({ name, target: name }),
  fc.record({ name, target: name, type: fc.constant('1') }),
  fc.record({ name, type: fc.constantFrom('5', '3', 'S', 'g', 'x', 'L', 'K', 'N', '\0', '7', 'D', '?') }),
  fc.record({ name, bytes: program, type: fc.constantFrom('x', 'g', 'L', 'K') }),
  fc.record({ name, bytes: program, size: fc.constantFrom(0, 1, 511, 512, 513, 0o77777777777) }),
  fc.record({ name, bytes: program, pax: fc.dictionary(fc.constantFrom('path', 'linkpath', 'size', 'a'), name) }),
);
const blocks = (entries: readonly LayerEntry[]): string => text(archive(entries, { isOpen: true }));
const PIECES = [
  blocks([{ name: 'bin/app', bytes: elf('arm64') }]),
  blocks([{ name: 'bin/app', target: 'app' }]),
  blocks([{ name: 'bin', target: 'bin' }]),
  blocks([{ name: 'bin', target: '../bin/../bin' }]),
  blocks([{ name: 'bin/app', target: 'bin/app', type: '1' }]),
  blocks([{ name: 'a/'.repeat(50), type: '5' }]),
  blocks([{ name: 'bin/.wh.app' }]),
  blocks([{ name: 'x', type: 'x', bytes: Buffer.from('20 path=bin/app/../x\n') }]),
  blocks([{ name: 'x', type: 'L', bytes: Buffer.from(`${'long/'.repeat(100)}\0`) }]),
  '\0'.repeat(512),
  '\xff'.repeat(512),
  '0'.repeat(512),
];
/** The pieces in which an archive arrives. */
const CHUNK = 700;
/** Few, so that some inputs need more. */
const STEPS = 300;
const PLATFORM = { os: 'linux', architecture: 'arm64' };
const ARGV = [['app'], ['/bin/app', '--'], ['/usr/bin/env', 'app'], ['bin/../bin/app']];

/** Layers of images, as tar archives; the text has a character for each byte. The same archive is two layers. */
export const layers: Target = {
  name: 'layers',
  valid: fc.array(entry, { maxLength: 8 }).map((entries) => text(archive(entries))),
  pieces: PIECES,
  run(input) {
    const bytes = Buffer.from(input, 'latin1');
    const allowance = { compressed: 1e9, decompressed: 1e9, memory: 1e6, steps: STEPS };
    const tree = createLayerTree({ step: createStep(allowance, () => undefined) });
    const process = { path: ['/usr/bin', '/bin'], workingDirectory: '/' };
    const ask = (): void => {
      for (const argv of ARGV) {
        const finding = settleFor({ platform: PLATFORM, process: { ...process, argv }, tree }, 'was not reached');
        must(isShowable(JSON.stringify(finding), 3000), `a finding can be shown: ${JSON.stringify(finding)}`);
      }
    };
    try {
      for (const isLast of [false, true]) {
        tree.begin();
        const reader = createArchive(Parser, { tree, allowance });
        for (let at = 0; at < bytes.length; at += CHUNK) reader.write(bytes.subarray(at, at + CHUNK));
        reader.end();
        tree.end(isLast);
        ask();
      }
      return true;
    } catch (error) {
      if (!(error instanceof LayerProblem)) throw error;
      must(isShowable(error.message), `a message can be shown: ${JSON.stringify(error.message)}`);
      ask();
      return false;
    } finally {
      must(allowance.memory > -1e6, 'the memory for names is bounded');
      must(allowance.steps > -STEPS, 'the look-ups are bounded');
    }
  },
};
