import { chmod, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { stringify } from 'yaml';
import type { Authority } from '../../../hack/cluster/certificates.ts';
import { type Registry, startRegistry } from '../../../hack/cluster/registry.ts';
import type { RegistryOptions } from '../../../hack/cluster/registry-config.ts';
import { mount } from '../../support/mounted.ts';
import { type ApiProxy, startApiProxy } from './api-proxy.ts';
import type { LiveWorld } from './world.ts';

/** What a file of tests arranges in addition to its world: registries, names for them, and files of the operator's. */
export type Places = {
  readonly directory: string;
  /** Starts one that holds what the world's registry holds, unless it is a mirror. Not named as insecure. */
  registry(options: RegistryOptions): Promise<Registry>;
  /** One more name for the world's registry, not configured as insecure. HTTPS with a certificate of the authority, for these names too. */
  front(authority?: Authority, ...names: readonly string[]): Promise<ApiProxy>;
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
  const fronts: ApiProxy[] = [];

  world.atEnd(() =>
    Promise.all([
      ...fronts.map((front) => front.close()),
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
    async front(authority, ...names) {
      const pair = authority?.issue('front', ['127.0.0.1', 'localhost', ...names]);
      const front = await startApiProxy({ server: world.registry.url }, pair);
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
