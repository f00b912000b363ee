import { setMaxListeners } from 'node:events';
import type { Config } from '../../src/config/schema.ts';
import { toSettings } from '../../src/config/settings.ts';
import { createImageSource } from '../../src/controllers/images.ts';
import { createLoops, type Loops } from '../../src/controllers/loops/loops.ts';
import { createNodeFetcher, createWatches, kindsFor, type Watches } from '../../src/controllers/watches.ts';
import { milliseconds } from '../../src/kit/duration.ts';
import type { Occurrence } from '../../src/kube/events.ts';
import { createLease, type Lease, leadInTurns } from '../../src/kube/lease.ts';
import { createWriter } from '../../src/kube/writer.ts';
import { NO_RULES } from '../../src/placement/nodes/label-rules.ts';
import type { ModelServer } from './api-server.ts';
import type { ModelRegistry, ModelResolver } from './registry.ts';
import type { World } from './world.ts';

/** A replica: all parts of `run`, without its sockets. */
export type Replica = {
  readonly name: string;
  readonly watches: Watches;
  readonly resolver: ModelResolver;
  loops(): Loops | undefined;
  readonly lease: Lease;
  /** Ends the replica as after SIGTERM. */
  stop(): void;
  /** Ends the replica as after SIGKILL. */
  kill(): void;
  isOver(): boolean;
};

export type ReplicaOptions = {
  readonly name: string;
  readonly world: World;
  readonly server: ModelServer;
  readonly registry: ModelRegistry;
  readonly config: Config;
  readonly onEvent: (replica: string, occurrence: Occurrence) => void;
  readonly onAsked: (replica: string, image: string) => void;
  /** Called with errors that should not happen in a process. */
  readonly onError: (error: unknown) => void;
};

/** The namespace of the Lease. */
export const LEASE_NAMESPACE = 'archaware';

/** Starts a replica. */
export function startReplica(options: ReplicaOptions): Replica {
  const { name, world, server, registry, config } = options;
  const clock = world.clockFor(name);
  const client = server.clientFor(name);
  const end = new AbortController();
  const stop = new AbortController();
  setMaxListeners(0, end.signal, stop.signal);
  let isOver = false;
  const lease = createLease({
    client,
    namespace: LEASE_NAMESPACE,
    name: config.leaderElection.name,
    identity: name,
    durationMs: milliseconds(config.leaderElection.leaseDuration),
    clock,
  });
  const watches = createWatches({ client, clock, kinds: kindsFor(config) });
  const resolver = registry.resolverFor(name, (image) => options.onAsked(name, image));
  const images = createImageSource(resolver, clock, () => undefined);
  const settings = toSettings(config);
  let loops: Loops | undefined;
  resolver.onSettled((canonical) => loops?.lookupEnded(canonical));

  async function term(over: AbortSignal): Promise<void> {
    loops = createLoops({
      watches,
      settings: () => settings,
      labelRules: () => NO_RULES,
      loops: config.loops,
      workers: 4,
      bootstrapMs: milliseconds(config.bootstrap.timeout),
      images,
      serviceAccountSecrets: async () => [],
      fetchNode: createNodeFetcher(client),
      write: createWriter(client, lease.fresh),
      events: {
        emit(occurrence) {
          options.onEvent(name, occurrence);
          return true;
        },
      },
      clock,
      telemetry: {},
    });
    setMaxListeners(0, over);
    await loops.run(AbortSignal.any([stop.signal, over]), over);
    loops = undefined;
  }

  async function run(): Promise<void> {
    const watching = watches.run(end.signal);
    await Promise.race([watches.whenSynced(), watching]);
    await leadInTurns(lease, term, stop.signal, () => {});
    await lease.release(end.signal);
    isOver = true;
    end.abort();
  }
  function kill(): void {
    isOver = true;
    world.kill(name);
    // All signals are aborted, because Node.js keeps signals that never abort in memory.
    end.abort();
    stop.abort();
  }
  run().catch((error: unknown) => {
    if (isOver) return;
    kill();
    options.onError(error);
  });

  return {
    name,
    watches,
    resolver,
    lease,
    loops: () => loops,
    stop: () => stop.abort(),
    kill,
    isOver: () => isOver,
  };
}
