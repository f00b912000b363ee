import { type Clock, systemClock } from '../../src/kit/clock.ts';
import { type ClusterAccess, findCluster } from '../../src/kube/access.ts';
import { type ApiClient, type ClientOptions, createClient } from '../../src/kube/api-client.ts';
import { type EmbeddedCluster, type EmbeddedOptions, startEmbeddedCluster } from '../simulator/embedded-cluster.ts';

/** An embedded API server that nobody else uses, and a client of the program with all rights. */
export type Server = {
  readonly cluster: EmbeddedCluster;
  readonly client: ApiClient;
  /** The requests of the client whose path contains this text. */
  asked(path: string): string[];
  stop(): Promise<void>;
};

const AGENT = 'test-of-kube';

export async function startServer(options: EmbeddedOptions = {}): Promise<Server> {
  const cluster = await startEmbeddedCluster({ scheduler: false, workloads: false, ...options });
  const access = findCluster({ kubeconfig: cluster.kubeconfig });
  const client = createClient({ access, connections: 8, userAgent: AGENT, now: () => 0 });
  return {
    cluster,
    client,
    asked: (path) =>
      cluster
        .requests()
        .filter((request) => request.userAgent === AGENT && request.path.includes(path))
        .map((request) => `${request.method} ${request.path}`),
    async stop() {
      await client.close();
      await cluster.stop();
    },
  };
}

/** A client of a server that asks for no login, unless `access` says more. */
export function clientAt(server: string, access: Partial<ClusterAccess> = {}, more: Partial<ClientOptions> = {}) {
  const open = { server, inCluster: false, namespace: undefined, tls: () => ({}), authenticate: async () => ({}) };
  return createClient({ access: { ...open, ...access }, connections: 1, userAgent: 'test', now: () => 0, ...more });
}

/** Both times of a clock, set by hand. A wait ends at once; its length is recorded. */
export type SetClock = Clock & { now: { monotonic: number; wall: number }; readonly delays: number[] };

export function createSetClock(): SetClock {
  const clock: SetClock = {
    now: { monotonic: 0, wall: Date.UTC(2030, 0, 1) },
    delays: [],
    monotonic: () => clock.now.monotonic,
    wall: () => clock.now.wall,
    steady: () => Date.UTC(2030, 0, 1) + clock.now.monotonic,
    random: () => 0.5,
    after: systemClock.after,
    async delay(ms) {
      clock.delays.push(ms);
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
  return clock;
}
