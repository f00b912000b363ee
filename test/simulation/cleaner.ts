import { setMaxListeners } from 'node:events';
import { findControllers } from '../../src/clean/controllers.ts';
import { takeInventory } from '../../src/clean/inventory.ts';
import { holdLeases } from '../../src/clean/leases.ts';
import { type CleanOutcome, createLedger } from '../../src/clean/ledger.ts';
import { cleanAll } from '../../src/clean/steps.ts';
import type { Config } from '../../src/config/schema.ts';
import { toSettings } from '../../src/config/settings.ts';
import { createRetryingClient } from '../../src/kube/retry.ts';
import { createWriter } from '../../src/kube/writer.ts';
import type { ModelServer } from './api-server.ts';
import { LEASE_NAMESPACE } from './replica.ts';
import type { World } from './world.ts';

/** A process of `clean --pods keep`: it takes the Lease, undoes everything, and releases the Lease. */
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
    const look = {
      client,
      taints,
      webhook: false,
      ownCertificates: false,
      namespaces: [LEASE_NAMESPACE],
      allPods: false,
      signal: end.signal,
    };
    const say = () => {};
    const places = [{ namespace: LEASE_NAMESPACE, name: leaseName }];
    const durationMs = 60_000;
    const leases = await holdLeases(
      places,
      { client: direct, clock, identity: name, durationMs, waitMs: 600_000, stopping: true, say, signal: end.signal },
      () => end.abort(),
    );
    const lookForControllers = () =>
      findControllers({
        client,
        installation: undefined,
        lease: { namespace: LEASE_NAMESPACE, name: leaseName, stated: true },
        signal: end.signal,
      });
    await lookForControllers();
    const mayWrite = () => leases.fresh();
    const before = await takeInventory(look);
    await cleanAll(
      {
        steps: { client, write: createWriter(client, mayWrite), mayWrite, taints, ledger, signal: end.signal },
        look,
        clock,
        how: 'keep',
        timeoutMs: 600_000,
        nodesBefore: before.nodeUids,
        findControllers: lookForControllers,
        mayReplace: async () => true,
        say,
      },
      before,
    );
    outcome = ledger.outcome('not reached');
    await leases.release(new AbortController().signal);
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
