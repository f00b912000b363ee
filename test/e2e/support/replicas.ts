/** The replicas of the built controller, each behind a proxy of its own. */

import { startController } from '../../support/controller-process.ts';
import { leads, type RunningController } from '../../support/running.ts';
import { type ApiProxy, startApiProxy, type Upstream } from './api-proxy.ts';

export type Replica = { readonly controller: RunningController; readonly proxy: ApiProxy };

export type ReplicaOptions = {
  readonly flags?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Returns the kubeconfig that the program gets; it is given the one that leads through the proxy. */
  readonly kubeconfig?: (throughProxy: string, proxy: ApiProxy) => Promise<string>;
};

export type Replicas = {
  /** Those that run. */
  all(): readonly Replica[];
  start(options?: ReplicaOptions): Promise<Replica>;
  /** Ends one with a signal and waits for its end; its proxy ends as well. */
  end(replica: Replica, signal?: NodeJS.Signals): Promise<number | null>;
  /** The one that says that it leads, if exactly one does. */
  leader(): Promise<Replica | undefined>;
  /** Ends those beyond `count`, or starts the missing ones. */
  keep(count: number): Promise<void>;
};

/** Creates no replica yet. `flags` are those that every replica gets. */
export function createReplicas(upstream: Upstream, kubeconfig: string, flags: readonly string[]): Replicas {
  let running: Replica[] = [];

  async function start(options: ReplicaOptions = {}): Promise<Replica> {
    const proxy = await startApiProxy(upstream);
    try {
      const through = await proxy.kubeconfig(kubeconfig);
      const file = (await options.kubeconfig?.(through, proxy)) ?? through;
      const { environment } = options;
      const given = ['--kubeconfig', file, ...flags, ...(options.flags ?? [])];
      const controller = await startController(given, environment ? { environment } : {});
      const replica = { controller, proxy };
      running.push(replica);
      return replica;
    } catch (error) {
      await proxy.close();
      throw error;
    }
  }

  async function end(replica: Replica, signal: NodeJS.Signals = 'SIGKILL'): Promise<number | null> {
    running = running.filter((other) => other !== replica);
    // A process that is stopped would take no other signal.
    replica.controller.kill('SIGCONT');
    const code = await replica.controller.stop(signal);
    await replica.proxy.close();
    return code;
  }

  return {
    all: () => running,
    start,
    end,
    async leader() {
      const states = await Promise.all(running.map(({ controller }) => leads(controller)));
      const leading = running.filter((_replica, index) => states[index]);
      return leading.length === 1 ? leading[0] : undefined;
    },
    async keep(count) {
      for (const replica of running.slice(count)) await end(replica, 'SIGTERM');
      while (running.length < count) await start();
    },
  };
}
