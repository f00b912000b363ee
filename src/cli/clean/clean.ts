import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { readNodePool } from '../../analysis/nodes/node-pools.ts';
import { type TaintingPool, taintingPoolNotes, taintingPools } from '../../analysis/nodes/tainting-pools.ts';
import { ClusterError, type Connection, connect } from '../../app/connect.ts';
import { statusPath } from '../../app/leader-status.ts';
import { type Context, EXIT } from '../../app/surroundings.ts';
import { type HeldLease, holdLease } from '../../clean/hold-lease.ts';
import { type CleanOutcome, createLedger, type Item, type OutcomeLedger } from '../../clean/outcomes.ts';
import {
  findController,
  isLive,
  leadText,
  type OwnController,
  type OwnControllerOptions,
  RefusedError,
  refuseWanted,
  stopAdvice,
  stopDeployment,
  wantText,
} from '../../clean/own-controller.ts';
import {
  LEFT_HEADER,
  leftRows,
  PLAN_HEADER,
  PLANNED_HEADER,
  planRows,
  RESULT_HEADER,
  type Rows,
  resultRows,
} from '../../clean/rows.ts';
import { cleanAll, record } from '../../clean/steps.ts';
import { type LookOptions, type TraceInventory, takeInventory } from '../../clean/traces.ts';
import { toSettings } from '../../config/settings.ts';
import { ConfigurationError } from '../../config/shown-problems.ts';
import { milliseconds } from '../../kit/duration.ts';
import { messageOf } from '../../kit/errors.ts';
import { ApiError, isGone } from '../../kube/errors.ts';
import type { LeaseName } from '../../kube/installation.ts';
import { cleanerIdentity } from '../../kube/lease.ts';
import { createRetryingClient } from '../../kube/retry.ts';
import { createWriter } from '../../kube/writer.ts';
import { STATUS_CONFIG_MAP } from '../../names.ts';
import { taintKind } from '../../placement/nodes/node.ts';
import { counted, paragraphs, table, titled, valueText } from '../output.ts';
import { createPaint, type Tone } from '../paint.ts';
import { readNodePools } from '../survey/survey.ts';

/** The flags of `clean`. */
export type CleanFlags = {
  readonly yes: boolean;
  readonly dryRun: boolean;
  /** Undefined: restart on a terminal, otherwise keep. */
  readonly pods: 'restart' | 'keep' | undefined;
  readonly stop: boolean;
};

type CleanRun = {
  readonly context: Context;
  readonly flags: CleanFlags;
  readonly how: 'restart' | 'keep';
  readonly connection: Connection;
  /** What the search for the controller needs; its client tries failed requests again. */
  readonly search: OwnControllerOptions;
  readonly look: LookOptions;
  readonly ledger: OutcomeLedger;
  /** Ends the run, because a Lease was lost. */
  readonly end: AbortController;
  lease: HeldLease | undefined;
  /** The reading from which the work starts: nobody else writes any more. Undefined before that. */
  before: TraceInventory | undefined;
  /** The node pools whose next nodes may have the taint again. */
  pools: readonly TaintingPool[];
};

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
    const controller = await find(run);
    context.keepHeapSmall();
    if (flags.dryRun) return await planOnly(run, controller);
    const shown = flags.yes ? undefined : await askFirst(run, controller);
    if (shown === 'no') return EXIT.failed;
    return await work(run, controller, shown);
  } catch (error) {
    if (run.before !== undefined) printResult(run, ledger.outcome('not reached; run clean again'), true);
    if (context.signal.aborted) throw new ClusterError('interrupted; clean can be run again at any point');
    if (search.signal.aborted)
      throw new ClusterError('the lease was lost, another replica may lead: stop it and run clean again');
    throw error;
  } finally {
    end.abort();
    // The signal may be aborted already. The Lease is released nevertheless, so that the next leader need not wait.
    await run.lease?.release();
    await run.connection.close();
  }
}

async function prepare(context: Context, flags: CleanFlags): Promise<CleanRun> {
  const { config, clock, note: say } = context;
  const connection = await connect(context);
  const { installation, leaseNamespace: namespace } = connection;
  const { enabled, name } = config.leaderElection;
  const end = new AbortController();
  const signal = AbortSignal.any([context.signal, end.signal]);
  const client = createRetryingClient(connection.client, {
    clock,
    signal,
    onRetry: (error, inMs) => say(`${messageOf(error)}; trying again in ${(inMs / 1000).toFixed(1)} s`),
  });
  const { enabled: webhook, certificates } = config.webhook;
  const ownCertificates = webhook && certificates === 'self';
  return {
    context,
    flags,
    how: flags.pods ?? (context.ask === undefined ? 'keep' : 'restart'),
    connection,
    search: { client, installation, lease: enabled ? { namespace, name } : undefined, signal },
    look: { client, taints: toSettings(config).taints, webhook, ownCertificates, namespace, signal },
    ledger: createLedger(),
    end,
    lease: undefined,
    before: undefined,
    pools: [],
  };
}

/** Finds the controller. A dry run goes on without the right to look for it. */
async function find({ flags, search, context: { note: say } }: CleanRun): Promise<OwnController> {
  try {
    return await findController(search);
  } catch (error) {
    if (!flags.dryRun || !(error instanceof RefusedError)) throw error;
    say(`without --dry-run, clean refuses: ${error.message}`);
    return { deployment: undefined, lease: undefined };
  }
}

/** Reads the cluster, and prints the steps, which a dry run prints below its verdict. */
async function showPlan(run: CleanRun): Promise<TraceInventory> {
  const { context, flags, look } = run;
  const { columns, output, note: say } = context;
  const { client, taints, signal } = look;
  const inventory = await takeInventory(look);
  const rows = table(PLAN_HEADER, planRows(inventory, run.how), columns).trimEnd();
  if (!flags.dryRun || output !== 'table') for (const row of rows.split('\n')) say(row);
  run.pools = taintingPools(inventory.nodes, await readNodePools(client, readNodePool, say, signal), taints);
  for (const note of taintingPoolNotes(run.pools, taintKind(taints))) say(note);
  return inventory;
}

/** Prints what a run would do, and why it would refuse. */
async function planOnly(run: CleanRun, controller: OwnController): Promise<number> {
  const { context, flags, ledger, look } = run;
  const inventory = await showPlan(run);
  record(ledger, inventory, { taints: look.taints, how: run.how, planned: true });
  const stops = flags.stop && wantText(controller.deployment) !== undefined;
  for (const { item, reason } of await refusals(run, controller, Number.POSITIVE_INFINITY)) {
    context.note(stops ? `--stop would stop it first: ${reason}` : `without --dry-run, clean refuses: ${reason}`);
    if (!stops) ledger.left('controllers', item, `clean refuses to run next to it: ${reason}`);
  }
  run.before = inventory;
  printResult(run, ledger.outcome('dry run'));
  return EXIT.done;
}

/** Shows the steps and asks whether to do them. Returns what it has shown, or the answer no. */
async function askFirst(run: CleanRun, controller: OwnController): Promise<TraceInventory | 'no'> {
  const { context, flags } = run;
  const { ask, signal, note: say } = context;
  if (!flags.stop && ask !== undefined) refuseWanted(controller.deployment);
  const inventory = await showPlan(run);
  if (ask === undefined) {
    throw new ConfigurationError(['--yes: required, because there is no terminal to ask on; nothing was done']);
  }
  const [refusal] = flags.stop ? [] : await refusals(run, controller, GLANCE_MS);
  if (refusal !== undefined) throw new RefusedError(refusal.reason);
  if (await ask('Do all of this?', signal)) return inventory;
  say('nothing was done');
  return 'no';
}

/** Stops the controller, holds its Lease, and does the work. `shown`: the reading that the user saw; undefined if there was no question. */
async function work(run: CleanRun, { deployment }: OwnController, shown: TraceInventory | undefined): Promise<number> {
  const { context, flags, how, search, look, ledger } = run;
  const { clock, note: say } = context;
  const { client, signal } = search;
  const isStopped = flags.stop && deployment !== undefined && deployment.wanted > 0;
  if (isStopped) await stopDeployment(client, deployment, { say, signal });
  else refuseWanted(deployment);
  run.lease = await hold(run, deployment, isStopped);
  // A replica that starts meanwhile would wait for the Lease, and would write everything again when `clean` releases it.
  refuseWanted((await findController(search)).deployment);
  const mayWrite = () => run.lease?.mayWrite() ?? true;
  // From here on nobody else writes. What was shown is out of date only if a controller ran until now.
  const before = shown === undefined ? await showPlan(run) : shown;
  run.before = shown !== undefined && isStopped ? await takeInventory(look) : before;
  await cleanAll(
    {
      ...look,
      ...{ write: createWriter(client, mayWrite), mayWrite, ledger, clock, how },
      nodesBefore: before.nodeUids,
      findDeployment: async () => (await findController(search)).deployment,
      say,
    },
    run.before,
  );
  await removeStatus(run, mayWrite);
  const lease = flags.stop ? await run.lease?.lookForLeader(signal) : undefined;
  if (lease !== undefined) {
    const reason = `${leadText(lease)}, so it writes again what clean removed: end it, and run clean again`;
    ledger.left('controllers', { kind: 'Lease', namespace: lease.namespace, name: lease.name }, reason);
  }
  const outcome = ledger.outcome('not reached; run clean again');
  printResult(run, outcome);
  // With --stop, the controller is being uninstalled, and nobody will need the Lease.
  if (flags.stop && outcome.left.length === 0) await run.lease?.remove(signal);
  if (isBlind(run)) {
    say(
      "nothing was found, but the cluster's configuration could not be read and no object records what archaware wrote: " +
        'a taint or toleration with another key would not be found; give the configuration with --config',
    );
    return EXIT.found;
  }
  return outcome.left.length === 0 ? EXIT.done : EXIT.found;
}

/** Removes what the last leader wrote for `status`. It changes nothing in the cluster, so it does not count as something that is left. */
async function removeStatus({ context, connection, search }: CleanRun, mayWrite: () => boolean): Promise<void> {
  const path = statusPath(connection.leaseNamespace);
  try {
    if (mayWrite()) await search.client.request('delete', path, { signal: search.signal });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (!isGone(error)) context.note(`${error.message}; the ConfigMap ${STATUS_CONFIG_MAP} stays, and does nothing`);
  }
}

async function hold(run: CleanRun, deployment: OwnController['deployment'], isStopped: boolean) {
  const { context, flags, connection, search, end } = run;
  if (search.lease === undefined) return undefined;
  const { clock, config, note: say } = context;
  const options = {
    client: connection.leaseClient,
    clock,
    stopAdvice: (holder: string) => stopAdvice(holder, search.installation, deployment),
    identity: cleanerIdentity(`${hostname()}-${randomUUID()}`),
    durationMs: milliseconds(config.leaderElection.leaseDuration),
    waitMs: isStopped ? FAREWELL_MS : 0,
    stopping: flags.stop,
    say,
    signal: search.signal,
  };
  return holdLease(search.lease, options, () => end.abort());
}

/** Returns the controllers because of which `clean` would refuse now, and why. */
async function refusals(
  { context, search }: CleanRun,
  { deployment, lease }: OwnController,
  atMostMs: number,
): Promise<{ readonly item: Item; readonly reason: string }[]> {
  const { client, installation, signal } = search;
  const refusal = (kind: string, { namespace, name }: LeaseName, why: string, holder = '') => ({
    item: { kind, namespace, name },
    reason: `${why}: ${stopAdvice(holder, installation, deployment)}`,
  });
  const wants = wantText(deployment);
  const leads = lease !== undefined && (await isLive(client, lease, { clock: context.clock, atMostMs, signal }));
  return [
    ...(wants === undefined ? [] : [refusal('Deployment', installation, wants)]),
    ...(leads ? [refusal('Lease', lease, leadText(lease), lease.holder)] : []),
  ];
}

function printResult(run: CleanRun, outcome: Parameters<typeof printOutcome>[0], isBrokenOff = false): void {
  const { context, flags, how, before, pools } = run;
  // A DaemonSet replaces its pods anyway.
  const staying = before?.pods.filter(({ cleaning }) => cleaning.kind !== 'rolls') ?? [];
  const unlisted = how === 'keep' ? staying.length : 0;
  const steps = flags.dryRun && before !== undefined ? planRows(before, how) : undefined;
  printOutcome(outcome, { unlisted, steps, isBlind: isBlind(run), isBrokenOff }, pools, context);
}

/** Whether nothing was found where a taint with another key would not be found, because the configuration could not be read. */
function isBlind({ context, before }: CleanRun): boolean {
  if (context.origin !== 'unreadable' || before === undefined) return false;
  // Policies and webhooks record no taint.
  const { gated, recorded, nodes, daemonSets, pods } = before;
  return [gated, recorded, nodes, daemonSets, pods].every(({ length }) => length === 0);
}

type CleanWork = {
  /** The number of pods that keep harmless tolerations, affinity or annotations because of `--pods keep`. */
  readonly unlisted: number;
  /** The steps of a dry run: nothing was done, and the reasons say what would be. */
  readonly steps: Rows | undefined;
  /** Nothing was found, but perhaps only because the configuration is not known. */
  readonly isBlind: boolean;
  /** The work ended before the last look at the cluster. */
  readonly isBrokenOff: boolean;
};

/**
 * Prints the verdict and the closing table of `clean`, or the same in a machine-readable form. `pools`: the node pools whose next nodes
 * may have the taint again.
 */
export function printOutcome(
  outcome: CleanOutcome,
  work: CleanWork,
  pools: readonly TaintingPool[],
  context: Pick<Context, 'output' | 'columns' | 'colors' | 'print'>,
): void {
  const { output, columns, print } = context;
  const { unlisted, steps } = work;
  const { removed, left, kept } = outcome;
  if (output !== 'table') {
    const more = { ...(kept.length > 0 ? { kept } : {}), ...(pools.length > 0 ? { pools } : {}) };
    print(valueText({ removed, left, ...more }, output));
    return;
  }
  const paint = createPaint(context);
  const [tone, text] = verdictOf(outcome, work);
  const [header, rows] = steps ? [PLAN_HEADER, steps] : [RESULT_HEADER, resultRows(outcome, unlisted)];
  const [title, leftHeader] = steps ? ['What clean would do.', PLANNED_HEADER] : ['Left.', LEFT_HEADER];
  const poolRows = pools.map((pool) => [pool.kind, pool.name, String(pool.nodes), pool.certain ? 'yes' : 'perhaps']);
  print(
    paragraphs([
      `${paint.marks ? `${paint.mark(tone)} ` : ''}${paint.bold(text)}\n`,
      table(header, rows, columns),
      titled(title, leftHeader, leftRows(left), columns),
      titled('Kept: what archaware added to them is harmless.', LEFT_HEADER, leftRows(kept), columns),
      titled('Pools whose next nodes may be tainted again.', POOL_HEADER, poolRows, columns),
    ]),
  );
}

const POOL_HEADER = ['KIND', 'NAME', 'TAINTED NODES', 'SETS THE TAINT'] as const;

/** Returns what is left of archaware, in one sentence. */
function verdictOf(
  { remaining, left, kept }: CleanOutcome,
  { unlisted, steps, isBlind, isBrokenOff }: CleanWork,
): readonly [Tone, string] {
  const sets = kept.filter(({ kind }) => kind === 'DaemonSet').length;
  const harmless = [[kept.length - sets + unlisted, 'pod'] as const, [sets, 'DaemonSet'] as const].flatMap(
    ([many, of]) => (many === 0 ? [] : [counted(many, of)]),
  );
  const but =
    harmless.length === 0 ? '' : ` but harmless tolerations, affinity or annotations of ${harmless.join(' and ')}`;
  if (steps !== undefined) {
    if (remaining.controllers > 0) return ['bad', 'clean would refuse: archaware runs, and would undo its work.'];
    return left.length === 0
      ? ['good', `There is nothing to remove${but}.`]
      : ['warning', `clean would remove what archaware wrote to ${counted(left.length, 'object')}.`];
  }
  if (left.length > 0) return ['bad', `${counted(left.length, 'object')} left: the reasons are below.`];
  if (isBrokenOff)
    return ['bad', 'clean did not end: what it found is removed, but it did not look again. Run it again.'];
  return isBlind
    ? ['warning', 'Nothing was found, but perhaps not everything.']
    : ['good', `Nothing of archaware is left${but}.`];
}
