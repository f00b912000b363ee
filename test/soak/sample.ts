/** What a process holds at one moment. Linux only: most of it comes from /proc. */
import { readdir, readFile, readlink } from 'node:fs/promises';
import { cpuOf, residentOf } from '../../hack/bench/process.ts';
import { at } from '../../hack/cluster/json.ts';
import { waitFor } from '../../hack/cluster/wait.ts';

/** The things that must not grow. */
export const MEASURES = ['rss', 'heap', 'external', 'files', 'sockets', 'timers', 'handles'] as const;
export type Measure = (typeof MEASURES)[number];

export type Sample = {
  /** Since the start of the soak. */
  readonly seconds: number;
  /** Processor time that the process has used so far. Seconds. */
  readonly cpu: number;
  /** Memory in MiB, the others as counts. */
  readonly values: Readonly<Record<Measure, number>>;
};

const MIB = 2 ** 20;

/** Takes samples of a process that runs with `probe.mjs`, which writes into `file`. */
export function createSampler(pid: number, file: string, secondsNow: () => number): () => Promise<Sample> {
  let seen = 0;

  async function probe(): Promise<unknown> {
    process.kill(pid, 'SIGUSR2');
    const held = await waitFor('the process to say what it holds', async () => {
      const found: unknown = JSON.parse(await readFile(file, 'utf8'));
      return Number(at(found, 'number')) > seen && found;
    });
    seen = Number(at(held, 'number'));
    return held;
  }

  return async () => {
    const [held, open] = await Promise.all([probe(), openFiles(pid)]);
    const number = (name: string) => Number(at(held, name));
    return {
      seconds: secondsNow(),
      cpu: cpuOf(pid) / 1000,
      values: {
        rss: residentOf(pid),
        heap: number('heapUsed') / MIB,
        external: number('external') / MIB,
        files: open.length,
        sockets: open.filter((target) => target.startsWith('socket:')).length,
        timers: number('timers'),
        handles: number('others'),
      },
    };
  };
}

/** What each open file descriptor leads to. */
async function openFiles(pid: number): Promise<string[]> {
  const directory = `/proc/${pid}/fd`;
  const names = await readdir(directory);
  // One may be closed in between.
  const targets = await Promise.all(names.map((name) => readlink(`${directory}/${name}`).catch(() => '')));
  return targets.filter((target) => target !== '');
}
