import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { ClusterError, type Connection, connect } from '../../app/connect.ts';
import { readNodePools } from '../../app/read-node-pools.ts';
import { type Context, EXIT } from '../../app/surroundings.ts';
import {
  type ControllersOptions,
  findControllers,
  findWanted,
  leadText,
  liveLeases,
  type OwnControllers,
  RefusedError,
  refuseWanted,
  stopAdvice,
  stopDeployments,
  wantedOnes,
  wantText,
} from '../../clean/controllers.ts';
import { type HeldLeases, holdLeases, leasesToHold } from '../../clean/hold-leases.ts';
import { createLedger, type Item, type Ledger } from '../../clean/outcomes.ts';
import { PLAN_HEADER, planRows } from '../../clean/rows.ts';
import { cleanAll, record } from '../../clean/steps.ts';
import { type Inventory, type LookOptions, takeInventory } from '../../clean/traces.ts';
import { toSettings } from '../../config/settings.ts';
import { ConfigurationError } from '../../config/shown-problems.ts';
import { milliseconds } from '../../kit/duration.ts';
import { messageOf } from '../../kit/errors.ts';
import type { LeaseName } from '../../kube/installation/leases.ts';
import { cleanerIdentity } from '../../kube/lease.ts';
import { createRetryingClient } from '../../kube/retry.ts';
import { createWriter } from '../../kube/writer.ts';
import { DEFAULT_NAMESPACE } from '../../names.ts';
import { taintKind } from '../../placement/nodes/node.ts';
import { type TaintingPool, taintingPoolNotes, taintingPools } from '../../placement/nodes/tainting-pools.ts';
import type { Settings } from '../../placement/settings.ts';
import { passedOver } from '../command-context.ts';
import { table } from '../output.ts';
import { printOutcome } from './outcome.ts';

/** The flags of `clean`. */
export type CleanFlags = {
  readonly yes: boolean;
  readonly dryRun: boolean;
  /** Undefined: restart on a terminal, otherwise keep. */
  readonly pods: 'restart' | 'keep' | undefined;
  readonly stop: boolean;
};

type Run = {
  readonly context: Context;
  readonly flags: CleanFlags;
  readonly how: 'restart' | 'keep';
  readonly connection: Connection;
  /** What the search for controllers needs; its client tries failed requests again. */
  readonly search: ControllersOptions;
  readonly taints: Settings['taints'];
  readonly ledger: Ledger;
  /** Ends the run, because a Lease was lost. */
  readonly end: AbortController;
  leases: HeldLeases | undefined;
  /** The reading from which the work starts: nobody else writes any more. Undefined before that. */
  before: Inventory | undefined;
  /** The node pools whose next nodes may have the taint again. */
  pools: readonly TaintingPool[];
};

/** An archaware controller because of which `clean` refuses to work. */
type Refusal = { readonly item: Item; readonly reason: string };

/** How long a replica may take to end. The manifests give it half a minute. */
const FAREWELL_MS = 60_000;
/** How long a Lease is watched before the user is asked. A live holder renews it every two seconds. */
const GLANCE_MS = 5_000;

/**
 * Undoes what `run` did, in an order that disturbs no pod on the way. Exit code 0 if nothing of archaware is left, 2 if something
 * is. Throws if an archaware controller runs or should run, and any error that prevents the start or ends the work.
 */
export async function clean(context: Context, flags: CleanFlags): Promise<number> {
  const run = await prepare(context, flags);
  const { end, ledger, search } = run;
  try {
    const controllers = await find(run);
    if (controllers.strangers.length > 0) context.note(passedOver(controllers.strangers));
    context.keepHeapSmall();
    if (flags.dryRun) return await planOnly(run, controllers);
    const shown = flags.yes ? undefined : await askFirst(run, controllers);
    if (shown === 'no') return EXIT.failed;
    return await work(run, controllers, shown);
  } catch (error) {
    if (run.before !== undefined) printResult(run, ledger.outcome('not reached; run clean again'));
    if (context.signal.aborted) throw new ClusterError('interrupted; clean can be run again at any point');
    if (search.signal.aborted)
      throw new ClusterError('the lease was lost, another replica may lead: stop it and run clean again');
    throw error;
  } finally {
    end.abort();
    // The signal may be aborted already. The Leases are released nevertheless, so that the next leader need not wait.
    await run.leases?.release();
    await run.connection.close();
  }
}

async function prepare(context: Context, flags: CleanFlags): Promise<Run> {
  const { config, clock, note: say } = context;
  const connection = await connect(context);
  const { leaseNamespace: namespace } = connection;
  const { name, namespace: given } = config.leaderElection;
  const end = new AbortController();
  const signal = AbortSignal.any([context.signal, end.signal]);
  const client = createRetryingClient(connection.client, {
    clock,
    signal,
    onRetry: (error, inMs) => say(`${messageOf(error)}; trying again in ${(inMs / 1000).toFixed(1)} s`),
  });
  const lease = { namespace, name, stated: given !== '' || namespace !== DEFAULT_NAMESPACE };
  return {
    context,
    flags,
    how: flags.pods ?? (context.ask === undefined ? 'keep' : 'restart'),
    connection,
    search: { client, installation: context.installation, lease, signal },
    taints: toSettings(config).taints,
    ledger: createLedger(),
    end,
    leases: undefined,
    before: undefined,
    pools: [],
  };
}

/** Finds the controllers. A dry run goes on without the right to look for them, in one namespace. */
async function find({ flags, search, context: { note: say } }: Run): Promise<OwnControllers> {
  try {
    return await findControllers(search);
  } catch (error) {
    if (!flags.dryRun || !(error instanceof RefusedError)) throw error;
    say(`without --dry-run, clean refuses: ${error.message}`);
    return { deployments: [], leases: [], namespaces: [search.lease.namespace], strangers: [] };
  }
}

/** Reads the cluster, and prints the steps. */
async function showPlan(run: Run, controllers: OwnControllers): Promise<Inventory> {
  const { context, search, taints } = run;
  const { columns, note: say } = context;
  const inventory = await takeInventory(lookOptions(run, controllers));
  say(table(PLAN_HEADER, planRows(inventory, run.how), columns).trimEnd());
  run.pools = taintingPools(inventory.nodes, await readNodePools(search.client, say, search.signal), taints);
  for (const note of taintingPoolNotes(run.pools, taintKind(taints))) say(note);
  return inventory;
}

function lookOptions({ context, search, taints }: Run, { namespaces }: OwnControllers): LookOptions {
  const { enabled, certificates } = context.config.webhook;
  return {
    client: search.client,
    taints,
    webhook: enabled,
    ownCertificates: enabled && certificates === 'self',
    namespaces,
    signal: search.signal,
  };
}

/** Prints what a run would do, and why it would refuse. */
async function planOnly(run: Run, controllers: OwnControllers): Promise<number> {
  const { context, flags, ledger, taints } = run;
  const inventory = await showPlan(run, controllers);
  record(ledger, inventory, { taints, how: run.how, planned: true });
  for (const { item, reason } of await refusals(run, controllers, Number.POSITIVE_INFINITY)) {
    context.note(flags.stop ? `--stop would stop it first: ${reason}` : `without --dry-run, clean refuses: ${reason}`);
    if (!flags.stop) ledger.left('controllers', item, `clean refuses to run next to it: ${reason}`);
  }
  run.before = inventory;
  printResult(run, ledger.outcome('dry run'));
  return EXIT.done;
}

/** Shows the steps and asks whether to do them. Returns what it has shown, or the answer no. */
async function askFirst(run: Run, controllers: OwnControllers): Promise<Inventory | 'no'> {
  const { context, flags } = run;
  const { ask, signal, note: say } = context;
  if (!flags.stop && ask !== undefined) refuseWanted(wantedOnes(controllers));
  const inventory = await showPlan(run, controllers);
  if (ask === undefined) {
    throw new ConfigurationError(['--yes: required, because there is no terminal to ask on; nothing was done']);
  }
  const [refusal] = flags.stop ? [] : await refusals(run, controllers, GLANCE_MS);
  if (refusal !== undefined) throw new RefusedError(refusal.reason);
  if (await ask('Do all of this?', signal)) return inventory;
  say('nothing was done');
  return 'no';
}

/**
 * Stops the controllers, holds their Leases, and does the work. `shown`: the reading that the user saw; undefined if there was no
 * question.
 */
async function work(run: Run, controllers: OwnControllers, shown: Inventory | undefined): Promise<number> {
  const { context, flags, how, search, taints, ledger } = run;
  const { clock, note: say } = context;
  const { client, signal } = search;
  const wanted = wantedOnes(controllers);
  if (flags.stop) await stopDeployments(client, wanted, { say, signal });
  else refuseWanted(wanted);
  const isStopped = flags.stop && wanted.length > 0;
  if (context.config.leaderElection.enabled) run.leases = await hold(run, controllers, isStopped);
  // A replica that starts meanwhile would wait for the Leases, and would write everything again when `clean` releases them.
  refuseWanted(await findWanted(search));
  const mayWrite = () => run.leases?.fresh() ?? true;
  // From here on nobody else writes. What was shown is out of date only if a controller ran until now.
  const before = shown === undefined ? await showPlan(run, controllers) : shown;
  const look = lookOptions(run, controllers);
  run.before = shown !== undefined && isStopped ? await takeInventory(look) : before;
  await cleanAll(
    {
      steps: { client, write: createWriter(client, mayWrite), mayWrite, taints, ledger, signal },
      look,
      clock,
      how,
      nodesBefore: before.nodeUids,
      findWanted: () => findWanted(search),
      say,
    },
    run.before,
  );
  for (const lease of flags.stop ? ((await run.leases?.lookForLeaders(signal)) ?? []) : []) {
    const reason = `${leadText(lease)}, so it writes again what clean removed: end it, and run clean again`;
    ledger.left('controllers', { kind: 'Lease', namespace: lease.namespace, name: lease.name }, reason);
  }
  const outcome = ledger.outcome('not reached; run clean again');
  printResult(run, outcome);
  // With --stop, the controller is being uninstalled, and nobody will need the Leases.
  if (flags.stop && outcome.left.length === 0) await run.leases?.remove(signal);
  if (context.origin === 'unreadable' && isEmpty(run.before)) {
    say(
      "nothing was found, but the cluster's configuration could not be read and no object records what archaware wrote: " +
        'a taint or toleration with another key would not be found; give the configuration with --config',
    );
    return EXIT.found;
  }
  return outcome.left.length === 0 ? EXIT.done : EXIT.found;
}

function hold({ context, flags, connection, search, end }: Run, controllers: OwnControllers, isStopped: boolean) {
  const { clock, config, note: say } = context;
  const options = {
    client: connection.leaseClient,
    clock,
    identity: cleanerIdentity(`${hostname()}-${randomUUID()}`),
    durationMs: milliseconds(config.leaderElection.leaseDuration),
    waitMs: isStopped ? FAREWELL_MS : 0,
    stopping: flags.stop,
    say,
    signal: search.signal,
  };
  return holdLeases(leasesToHold(controllers, search.lease), options, () => end.abort());
}

/** Returns the controllers because of which `clean` would refuse now, and why. */
async function refusals({ context, search }: Run, controllers: OwnControllers, atMostMs: number): Promise<Refusal[]> {
  const { client, signal } = search;
  const live = await liveLeases(client, controllers.leases, { clock: context.clock, atMostMs, signal });
  const refusal = (kind: string, { namespace, name }: LeaseName, reason: string) => ({
    item: { kind, namespace, name },
    reason,
  });
  return [
    ...wantedOnes(controllers).map((deployment) => {
      const { namespace, name } = deployment;
      return refusal('Deployment', deployment, `${wantText(deployment)}: ${stopAdvice(namespace, name)}`);
    }),
    ...live.map((lease) => refusal('Lease', lease, `${leadText(lease)}: ${stopAdvice(lease.namespace)}`)),
  ];
}

function printResult({ context, flags, how, before, pools }: Run, outcome: Parameters<typeof printOutcome>[0]): void {
  const unlisted = how === 'keep' ? (before?.pods.length ?? 0) : 0;
  printOutcome(outcome, { unlisted, planned: flags.dryRun }, pools, context);
}

/** Whether a reading found no object that archaware wrote to. Policies and webhooks record no taint. */
function isEmpty({ gated, recorded, nodes, daemonSets, pods }: Inventory): boolean {
  return [gated, recorded, nodes, daemonSets, pods].every(({ length }) => length === 0);
}
