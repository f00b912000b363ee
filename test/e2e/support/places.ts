import { chmod, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { type Registry, startRegistry } from '../../../hack/cluster/registry.ts';
import type { RegistryOptions } from '../../../hack/cluster/registry-config.ts';
import { mount } from '../../support/mounted.ts';
import { type Front, type FrontOptions, startFront } from './registry-front.ts';
import type { LiveWorld } from './world.ts';

/** What a file of tests arranges in addition to its world: registries, names for them, and files of the operator's. */
export type Places = {
  readonly directory: string;
  /** Starts one that holds what the world's registry holds, unless it is a mirror. Not named as insecure. */
  registry(options: RegistryOptions): Promise<Registry>;
  /** One more name for a registry (default: the world's). Not configured as insecure. */
  front(options?: Partial<FrontOptions>): Promise<Front>;
  /** Writes a file at this path below the directory, in one step; returns its path. Anything but a text becomes YAML. */
  file(path: string, content: unknown, mode?: number): Promise<string>;
  /** A directory as the kubelet mounts a Secret; called again, it swaps what is mounted. Returns its path. */
  mount(path: string, files: Readonly<Record<string, string>>): Promise<string>;
};

export const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** Everything goes when the world stops. */
export async function arrange(world: LiveWorld): Promise<Places> {
  const directory = await mkdtemp(join(tmpdir(), 'archaware-places-'));
  const registries: Registry[] = [];
  const fronts: Front[] = [];

  world.atEnd(() =>
    Promise.all([
      ...fronts.map((front) => front.stop()),
      ...registries.map((registry) => registry.remove()),
      rm(directory, { recursive: true, force: true }),
    ]),
  );

  async function file(path: string, content: unknown, mode = 0o600): Promise<string> {
    const target = join(directory, path);
    await mkdir(dirname(target), { recursive: true });
    const next = join(dirname(target), `.${basename(path)}.next`);
    await writeFile(next, typeof content === 'string' ? content : stringify(content));
    await chmod(next, mode);
    await rename(next, target);
    return target;
  }

  return {
    directory,
    async registry(options) {
      const registry = await startRegistry(options.mirrorOf ? options : { contentsOf: world.registry, ...options });
      registries.push(registry);
      return registry;
    },
    async front(options) {
      const front = await startFront({ registry: world.registry, ...options });
      fronts.push(front);
      return front;
    },
    file,
    async mount(path, files) {
      const root = join(directory, path);
      await mount(root, files);
      return root;
    },
  };
}
