import { setMaxListeners } from 'node:events';
import { holdLease } from '../../src/clean/hold-lease.ts';
import { type CleanOutcome, createLedger } from '../../src/clean/outcomes.ts';
import { findController } from '../../src/clean/own-controller.ts';
import { cleanAll } from '../../src/clean/steps.ts';
import { takeInventory } from '../../src/clean/traces.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/config/schema.ts';
import { toSettings } from '../../src/config/settings.ts';
import { createImageSource } from '../../src/controllers/image-source.ts';
import { createLoops, type Loops } from '../../src/controllers/loops/loops.ts';
import { createWatches, kindsFor, type Watches } from '../../src/controllers/watches.ts';
import { milliseconds } from '../../src/kit/duration.ts';
import type { Occurrence } from '../../src/kube/events.ts';
import { installationIn } from '../../src/kube/installation.ts';
import { createLease, type Lease } from '../../src/kube/lease.ts';
import { createRetryingClient } from '../../src/kube/retry.ts';
import { createDoubt } from '../../src/kube/watch/doubt.ts';
import { createWriter } from '../../src/kube/writer.ts';
import { obstaclesTo, readDemands } from '../../src/placement/fit.ts';
import { NO_RULES } from '../../src/placement/nodes/label-rules.ts';
import { readNode } from '../../src/placement/nodes/node.ts';
import { readDaemonSet } from '../../src/placement/objects/daemonset.ts';
import { readNamespace } from '../../src/placement/objects/namespace.ts';
import { readPod } from '../../src/placement/objects/pod.ts';
import { readRecord } from '../../src/placement/objects/template-record.ts';
import { type JsonObject, object, objects } from '../simulator/json.ts';
import { jsonOf } from '../simulator/objects/store.ts';
import type { ModelServer } from './api-server.ts';
import type { ModelRegistry, ModelResolver } from './registry.ts';
import type { World } from './world.ts';

// The simulation starts and asks the program in this file only, except for the resolver (registry.ts) and the client of the API server
// (api-server.ts, watch-streams.ts).

/** A replica: all parts of `run`, without its sockets. */
export type Replica = {
  readonly name: string;
  readonly watches: Watches;
  readonly resolver: ModelResolver;
  readonly lease: Lease;
  /** Whether it leads, or believes so. */
  leads(): boolean;
  /** The number of its terms so far. */
  terms(): number;
  /** What was decided about each pod in this term, by its key: `place`, `skip`, … */
  decided(): ReadonlyMap<string, string>;
  /** Counts the objects whose changes somebody else keeps undoing. */
  contested(): number;
  /** Reads its configuration again. */
  reload(config: Config): void;
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
    onAnswered: client.renew,
  });
  const watches = createWatches({ client, clock, kinds: kindsFor(config) });
  const resolver = registry.resolverFor(name, (image) => options.onAsked(name, image));
  const images = createImageSource(resolver);
  let settings = toSettings(config);
  let loops: Loops | undefined;
  let terms = 0;
  resolver.onSettled((canonical) => loops?.lookupEnded(canonical));

  const onConflict = createDoubt({
    ...{ client, clock, versionOf: watches.versionOf, onDead: client.renew, signal: end.signal },
  });

  async function term(over: AbortSignal): Promise<void> {
    terms++;
    loops = createLoops({
      watches,
      settings: () => settings,
      labelRules: () => NO_RULES,
      loops: config.loops,
      workers: 4,
      bootstrapMs: milliseconds(config.bootstrap.timeout),
      images,
      serviceAccountSecrets: async () => [],
      write: createWriter(client, lease.mayWrite, 'metadata', onConflict),
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
    await lease.lead(term, stop.signal, () => {});
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
    leads: () => loops !== undefined,
    terms: () => terms,
    decided: () =>
      new Map([...(loops?.podStates ?? [])].flatMap(([key, { decision }]) => (decision ? [[key, decision.kind]] : []))),
    contested: () => loops?.contested() ?? 0,
    reload(next) {
      settings = toSettings(next);
      loops?.settingsChanged();
    },
    stop: () => stop.abort(),
    kill,
    isOver: () => isOver,
  };
}

/** A process of `clean`: it takes the Lease, undoes everything, and releases the Lease. */
export type Cleaner = {
  /** Its result; undefined while it runs, and after an interruption. */
  outcome(): CleanOutcome | undefined;
  isOver(): boolean;
  kill(): void;
};

/** Starts a `clean`. */
export function startCleaner(options: { name: string; world: World; server: ModelServer; config: Config }): Cleaner {
  const { name, world, server, config } = options;
  const clock = world.clockFor(name);
  const end = new AbortController();
  setMaxListeners(0, end.signal);
  const direct = server.clientFor(name);
  const client = createRetryingClient(direct, { clock, signal: end.signal, onRetry() {} });
  const { taints } = toSettings(config);
  const leaseName = config.leaderElection.name;
  const ledger = createLedger();
  let outcome: CleanOutcome | undefined;
  let isOver = false;

  async function run(): Promise<void> {
    const { signal } = end;
    const look = { client, taints, webhook: false, ownCertificates: false, namespace: LEASE_NAMESPACE, signal };
    const say = () => {};
    const installation = installationIn(LEASE_NAMESPACE);
    const leaseTo = { namespace: LEASE_NAMESPACE, name: leaseName };
    const timing = { durationMs: 60_000, waitMs: 600_000, stopping: true };
    const lease = await holdLease(
      leaseTo,
      { client: direct, clock, stopAdvice: () => '', identity: name, ...timing, say, signal: end.signal },
      () => end.abort(),
    );
    const search = { client, installation, lease: leaseTo, signal: end.signal };
    await findController(search);
    const mayWrite = () => lease?.mayWrite() ?? false;
    const before = await takeInventory(look);
    await cleanAll(
      {
        ...look,
        ...{ write: createWriter(client, mayWrite), mayWrite, ledger, clock, how: 'keep' },
        nodesBefore: before.nodeUids,
        findDeployment: async () => (await findController(search)).deployment,
        say,
      },
      before,
    );
    outcome = ledger.outcome('not reached');
    await lease?.release();
  }
  void run()
    // An interrupted `clean` is run again.
    .catch(() => {})
    .finally(() => {
      isOver = true;
    });
  return {
    outcome: () => outcome,
    isOver: () => isOver,
    kill() {
      world.kill(name);
      end.abort();
    },
  };
}

const configs = new Map<string, Config>();

/** Returns the configuration that these flags give. */
export function configOf(flags: Readonly<Record<string, string>>): Config {
  const key = JSON.stringify(flags);
  const config = configs.get(key) ?? loadConfig({ file: undefined, environment: {}, flags }).config;
  configs.set(key, config);
  return config;
}

const READERS: Readonly<Record<Kept, (item: JsonObject) => object>> = {
  pods: (item) => readPod(item),
  nodes: readNode,
  namespaces: readNamespace,
  daemonSets: readDaemonSet,
};

/** The kinds that a replica keeps. */
export type Kept = 'pods' | 'nodes' | 'namespaces' | 'daemonSets';

/** Returns what a replica must have in its store for an object of the API server. */
export function expectedOf(kind: Kept, item: JsonObject): object {
  const parsed: unknown = JSON.parse(jsonOf(item));
  return READERS[kind](object(parsed));
}

/** Whether the scheduler may place a pod with this spec on a node. */
export function fits(spec: JsonObject, node: JsonObject): boolean {
  const demands = readDemands({ ...spec, tolerations: objects(spec.tolerations) });
  return obstaclesTo(demands, readNode(node)).length === 0;
}

/** What archaware's record on a DaemonSet lists, and whether archaware is entered as an owner of fields, or of those of the spec. */
export function recordOf(daemonSet: JsonObject): { listed: string[]; ownsAny: boolean; ownsSpec: boolean } {
  const { recorded, entry } = readDaemonSet(daemonSet);
  const listed = readRecord(recorded).tolerations.map(({ value }) => value);
  return { listed, ownsAny: entry !== undefined, ownsSpec: entry?.ownsSpec === true };
}
