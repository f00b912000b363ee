import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const LOAD = fileURLToPath(new URL('../support/load.mjs', import.meta.url));
const HEAP = new URL('../../src/cli/process-surroundings.ts', import.meta.url).href;

/** Counts the forced collections of young garbage in a process of its own: flags of V8 are for the whole process. */
const COUNT = `
  import { constants, PerformanceObserver } from 'node:perf_hooks';
  import { setImmediate as turn } from 'node:timers/promises';
  import { createHeap } from '${HEAP}';
  let count = 0;
  new PerformanceObserver((list) => {
    for (const { detail: { kind, flags } } of list.getEntries())
      if (kind === constants.NODE_PERFORMANCE_GC_MINOR && flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) count += 1;
  }).observe({ entryTypes: ['gc'] });
  const heap = createHeap();
  const counts = [];
  const MIB = 1024 * 1024;
  for (const step of [() => heap.received(9 * MIB), heap.keepSmall, () => heap.received(3 * MIB), () => heap.received(MIB), () => heap.received(MIB)]) {
    step();
    for (let turns = 0; turns < 10; turns += 1) await turn();
    counts.push(count);
  }
  console.log(JSON.stringify(counts));
`;

describe('the heap of the process', () => {
  it('collects young garbage after every 4 MiB that arrive over watches, once it is kept small', () => {
    const args = ['--import', LOAD, '--input-type=module', '--eval', COUNT];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    expect(stderr).to.equal('');
    expect(stdout.trim()).to.equal('[0,0,0,1,1]');
  });
});
