/** Moves the clock of replicas and answers their DNS lookups; see `moved.mjs`. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Replica } from '../../e2e/support/replicas.ts';
import type { Lab } from './lab.ts';

export type Moves = {
  /** Added to the wall clock. Milliseconds. */
  readonly clockMs?: number;
  /** Addresses by names that end in `.faults.test`; others do not resolve. */
  readonly names?: Readonly<Record<string, string>>;
};

export type Control = {
  /** What a replica needs, so that it is moved. */
  readonly environment: Readonly<Record<string, string>>;
  /** Applies to these replicas from the time when this resolves. */
  move(lab: Lab, replicas: readonly Replica[], moves: Moves): Promise<void>;
  remove(): Promise<void>;
};

const MODULE = new URL('./moved.mjs', import.meta.url);
const isRead = (line: string) => line.includes('"msg":"control read"');

/** Creates the file that steers replicas; `moves` hold from their start. */
export async function createControl(moves: Moves): Promise<Control> {
  const directory = await mkdtemp(join(tmpdir(), 'archaware-control-'));
  const file = join(directory, 'control.json');
  await writeFile(file, JSON.stringify(moves));
  return {
    environment: { NODE_OPTIONS: `--import ${MODULE.href}`, FAULTS_CONTROL: file },
    async move(lab, replicas, now) {
      await writeFile(file, JSON.stringify(now));
      for (const { controller } of replicas) {
        const count = () => controller.logs().filter(isRead).length;
        const before = count();
        controller.kill('SIGUSR2');
        await lab.eventually('the process to be moved', async () => count() > before);
      }
    },
    remove: () => rm(directory, { recursive: true }),
  };
}
