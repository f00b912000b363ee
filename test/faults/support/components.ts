/** The processes of a real control plane, killed and started again with the arguments that they had. */
import { readFile } from 'node:fs/promises';
import { request as send } from 'undici';
import type { Cluster } from '../../../hack/cluster/cluster.ts';
import { type Component, startComponent } from '../../../hack/cluster/spawn.ts';

export type Components = {
  /** Ends it at once; it can be started again. */
  end(name: string): Promise<void>;
  /** Starts what was ended, and waits until it is ready where that can be asked. */
  start(name: string): Promise<void>;
  /** Ends what was started here; the cluster ends the others. */
  stop(): Promise<void>;
};

/** For the components of `cluster` apart from kube-apiserver, which the cluster itself starts again. */
export function createComponents(cluster: Cluster): Components {
  const started = new Map<string, Component>();
  const known = new Map<string, string[]>();
  const present = (name: string) => started.get(name) ?? cluster.component(name);

  return {
    async end(name) {
      const component = present(name);
      if (component.running && !known.has(name)) known.set(name, await argumentsOf(component.pid));
      await component.stop();
    },
    async start(name) {
      const args = known.get(name);
      if (args === undefined) throw new Error(`${name} was not ended here`);
      const url = args.find((arg) => arg.startsWith('--listen-client-urls='))?.split('=')[1];
      const ready = async () => url === undefined || (await send(`${url}/readyz`)).statusCode === 200;
      started.set(name, await startComponent({ name, args, directory: cluster.directory, ready }));
    },
    async stop() {
      await Promise.all([...started.values()].map((component) => component.stop()));
    },
  };
}

/** What a process was started with, without its own name. */
async function argumentsOf(pid: number): Promise<string[]> {
  const line = await readFile(`/proc/${pid}/cmdline`, 'utf8');
  return line.split('\0').slice(1, -1);
}
