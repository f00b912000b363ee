/** The machine of the replicas: clocks, names, disks. */
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import { type Control, createControl } from '../support/control.ts';
import type { Fault, Scene } from '../support/harness.ts';
import type { Lab } from '../support/lab.ts';
import type { ReplicaOptions } from '../support/replicas.ts';
import { amount, seconds } from '../support/ways.ts';

const API = 'api.faults.test';
const REGISTRY = 'registry.faults.test';
const NAMES = { [API]: '127.0.0.1', [REGISTRY]: '127.0.0.1' };
const MINUTE_MS = 60_000;

/** Two replicas whose clock and names can be moved; the returned function ends them. */
async function movable(lab: Lab, options: ReplicaOptions): Promise<{ control: Control; undo: () => Promise<void> }> {
  const control = await createControl({ names: NAMES });
  await lab.replicas.keep(0);
  const given = { ...options, environment: control.environment };
  await Promise.all([lab.replicas.start(given), lab.replicas.start(given)]);
  const undo = async () => {
    await lab.replicas.keep(0);
    await control.remove();
  };
  return { control, undo };
}

/** A fault whose replicas are movable. */
function moving(
  name: string,
  options: ReplicaOptions & { readonly more?: (lab: Lab) => ReplicaOptions; readonly host?: Fault['host'] },
  happen: (scene: Scene, control: Control) => Promise<string>,
): Fault {
  let control: Control | undefined;
  return {
    name,
    ...(options.host ? { host: options.host } : {}),
    async prepare(lab) {
      const made = await movable(lab, { ...options, ...options.more?.(lab) });
      control = made.control;
      return made.undo;
    },
    async happen(scene) {
      if (control === undefined) throw new Error('nothing was prepared');
      return happen(scene, control);
    },
  };
}

function clock(name: string, sign: 1 | -1): Fault {
  return moving(name, {}, async ({ lab, load, dice }, control) => {
    const minutes = dice.pick([1, 10, 60, 24 * 60, 365 * 24 * 60]);
    const all = lab.replicas.all();
    const leader = await lab.eventually('one leader', () => lab.replicas.leader());
    const victims = dice.pick([[leader], all]);
    const added = load.add(dice.whole(2, 6));
    await control.move(lab, victims, { names: NAMES, clockMs: sign * minutes * MINUTE_MS });
    await added;
    await load.add(1);
    return `by ${minutes} min, ${victims.length === 1 ? 'of the leader' : 'of both replicas'}`;
  });
}

/** The kubeconfig with another server. */
async function withServer(file: string, server: string): Promise<string> {
  const config: { clusters: { cluster: Record<string, unknown> }[] } = parse(await readFile(file, 'utf8'));
  for (const entry of config.clusters) entry.cluster = { ...entry.cluster, server };
  await writeFile(file, stringify(config));
  return file;
}

const portOf = (host: string) => host.split(':')[1] ?? '';

export const machine: readonly Fault[] = [
  clock('wall clock jumps forward', 1),
  clock('wall clock jumps back', -1),
  moving(
    'DNS gone: the name of the API server',
    { kubeconfig: (file, { host }) => withServer(file, `http://${API}:${portOf(host)}`) },
    async ({ lab, load, dice }, control) => {
      const { ms, count } = amount({ dice });
      await control.move(lab, lab.replicas.all(), { names: {} });
      for (const { proxy } of lab.replicas.all()) proxy.resetAll();
      await Promise.all([delay(ms), load.add(count)]);
      await control.move(lab, lab.replicas.all(), { names: NAMES });
      return `for ${seconds(ms)}`;
    },
  ),
  moving(
    'DNS gone: the name of the registry',
    {
      host: ({ registry }) => `${REGISTRY}:${portOf(registry.host)}`,
      more: ({ registry }) => ({
        flags: ['--registries.insecure', `${registry.host},${REGISTRY}:${portOf(registry.host)}`],
      }),
    },
    async ({ lab, load, dice }, control) => {
      const { ms, count } = amount({ dice });
      await control.move(lab, lab.replicas.all(), { names: {} });
      // Connections that are kept need no name.
      await lab.registry.down();
      await lab.registry.up();
      await Promise.all([delay(ms), load.add(count)]);
      await control.move(lab, lab.replicas.all(), { names: NAMES });
      return `for ${seconds(ms)}`;
    },
  ),
  diskFull(),
];

/** The file of the image cache on a file system of 64 KiB, which another file fills. */
function diskFull(): Fault {
  let directory = '';
  const file = () => join(directory, 'images.json');
  return {
    name: 'disk full: the file of the image cache',
    // A file system of its own is mounted.
    needsRoot: true,
    async prepare(lab) {
      directory = await mkdtemp(join(tmpdir(), 'archaware-disk-'));
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', directory]);
      await lab.replicas.keep(0);
      const flags = ['--images.cache.file', file()];
      await Promise.all([lab.replicas.start({ flags }), lab.replicas.start({ flags })]);
      return async () => {
        await lab.replicas.keep(0);
        execFileSync('umount', [directory]);
        await rmdir(directory);
      };
    },
    async happen({ lab, load, dice }) {
      await writeFile(join(directory, 'filler'), Buffer.alloc(64 * 1024)).catch((error: unknown) => {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
      });
      await load.add(dice.whole(3, 6));
      await lab.eventually('a warning that the file cannot be written', async () =>
        lab.replicas.all().some(({ controller }) => controller.logs().some((line) => line.includes('ENOSPC'))),
      );
      execFileSync('rm', [join(directory, 'filler')]);
      return 'until the first warning';
    },
    async check({ lab }) {
      // At its end a replica writes what it knows: a file that is whole.
      await lab.replicas.keep(0);
      const written: unknown = JSON.parse(await readFile(file(), 'utf8'));
      expect(written).to.be.an('object');
    },
  };
}
