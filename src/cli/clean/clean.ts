import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { ClusterError, connect } from '../../app/connect.ts';
import { type Context, EXIT } from '../../app/context.ts';
import { readNodePools } from '../../app/node-pools.ts';
import {
  findControllers,
  leadText,
  liveLeases,
  type OwnControllers,
  RefusedError,
  stopAdvice,
  stopDeployments,
  wantedOnes,
  wantText,
} from '../../clean/controllers.ts';
import { type Inventory, type LookOptions, takeInventory } from '../../clean/inventory.ts';
import { type HeldLeases, holdLeases, leasesToHold } from '../../clean/leases.ts';
import { createLedger, type Item } from '../../clean/ledger.ts';
import { PLAN_HEADER, planRows, podQuestion } from '../../clean/report.ts';
import { cleanAll, recordPlan } from '../../clean/steps.ts';
import { ConfigurationError } from '../../config/problems.ts';
import { toSettings } from '../../config/settings.ts';
import { milliseconds } from '../../kit/duration.ts';
import { messageOf } from '../../kit/errors.ts';
import type { LeaseName } from '../../kube/installation/leases.ts';
import { cleanerIdentity } from '../../kube/lease.ts';
import { createRetryingClient } from '../../kube/retry.ts';
import { createWriter } from '../../kube/writer.ts';
import { DEFAULT_NAMESPACE } from '../../names.ts';
import { taintKind } from '../../placement/nodes/node.ts';
import { type TaintingPool, taintingPoolNotes, taintingPools } from '../../placement/nodes/tainting-pools.ts';
import { passedOver } from '../context.ts';
import { table } from '../output.ts';
import { printOutcome } from './outcome.ts';

/** The flags of `clean`. */
export type CleanFlags = {
  readonly yes: boolean;
  readonly dryRun: boolean;
  readonly pods: 'evict' | 'delete' | 'keep';
  /** How long replacing pods may go on without progress. */
  readonly timeoutMs: number;
  readonly allPods: boolean;
  readonly stop: boolean;
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
  const { pods: how, timeoutMs } = flags;
  const { config, signal, ask, clock, note: say } = context;
  const connection = await connect(context);
  const end = new AbortController();
  const over = AbortSignal.any([signal, end.signal]);
  const client = createRetryingClient(connection.client, {
    clock,
    signal: over,
    onRetry: (error, inMs) => say(`${messageOf(error)}; trying again in ${(inMs / 1000).toFixed(1)} s`),
  });
  const ledger = createLedger();
  const leaseName = config.leaderElection.name;
  const configured = {
    namespace: connection.leaseNamespace,
    name: leaseName,
    stated: config.leaderElection.namespace !== '' || connection.leaseNamespace !== DEFAULT_NAMESPACE,
  };
  const lookForControllers = () =>
    findControllers({
      client,
      installation: context.installation,
      lease: configured,
      signal: over,
    });
  const { taints } = toSettings(config);
  let leases: HeldLeases | undefined;
  let began = false;
  let kept = 0;
  let pools: readonly TaintingPool[] = [];
  try {
    const controllers = await find(lookForControllers, connection.leaseNamespace, flags.dryRun, say);
    if (controllers.strangers.length > 0) say(passedOver(controllers.strangers));
    const wanted = wantedOnes(controllers);
    const unattended = !flags.yes && ask === undefined;
    if (!flags.dryRun && !flags.stop && !unattended) refuseWanted(wanted);
    const look: LookOptions = {
      client,
      taints,
      webhook: config.webhook.enabled,
      ownCertificates: config.webhook.enabled && config.webhook.certificates === 'self',
      namespaces: controllers.namespaces,
      allPods: flags.allPods,
      signal: over,
    };
    context.keepHeapSmall();
    const nodesBefore = await showPlan(look);
    if (flags.dryRun) {
      for (const { item, reason } of await refusals(controllers, Number.POSITIVE_INFINITY)) {
        say(flags.stop ? `--stop would stop it first: ${reason}` : `without --dry-run, clean refuses: ${reason}`);
        if (!flags.stop) ledger.left('controllers', item, `clean refuses to run next to it: ${reason}`);
      }
      printOutcome(ledger.outcome('dry run'), { unlisted: kept, planned: true }, pools, context);
      return EXIT.done;
    }
    if (!flags.yes) {
      if (ask === undefined) {
        throw new ConfigurationError(['--yes: required, because there is no terminal to ask on; nothing was done']);
      }
      const [refusal] = flags.stop ? [] : await refusals(controllers, GLANCE_MS);
      if (refusal !== undefined) throw new RefusedError(refusal.reason);
      if (!(await ask('Do all of this?', signal))) {
        say('nothing was done');
        return EXIT.failed;
      }
    }
    if (flags.stop) await stopDeployments(client, wanted, { say, signal: over });
    else refuseWanted(wanted);
    if (config.leaderElection.enabled) leases = await hold(controllers, flags.stop && wanted.length > 0);
    // A replica that starts meanwhile would wait for the Leases, and would write everything again when `clean` releases them.
    refuseWanted(wantedOnes(await lookForControllers()));
    const mayWrite = () => leases?.fresh() ?? true;
    // The cluster is searched again now that nobody else writes: a leader may have written until a moment ago.
    const before = await takeInventory(look);
    began = true;
    kept = how === 'keep' ? before.pods.length : 0;
    await cleanAll(
      {
        steps: { client, write: createWriter(client, mayWrite), mayWrite, taints, ledger, signal: over },
        look,
        clock,
        how,
        timeoutMs,
        nodesBefore,
        findControllers: lookForControllers,
        mayReplace: async (pods) => flags.yes || (ask?.(podQuestion(pods, how), signal) ?? false),
        say,
      },
      before,
    );
    const outcome = ledger.outcome('not reached; run clean again');
    printOutcome(outcome, { unlisted: kept, planned: false }, pools, context);
    // With --stop, the controller is being uninstalled, and nobody will need the Leases.
    if (flags.stop && outcome.left.length === 0) await leases?.remove(over);
    if (context.origin === 'unreadable' && isEmpty(before)) {
      say(
        "nothing was found, but the cluster's configuration could not be read and no object records what archaware wrote: " +
          'a taint or toleration with another key would not be found; give the configuration with --config',
      );
      return EXIT.found;
    }
    return outcome.left.length === 0 ? EXIT.done : EXIT.found;
  } catch (error) {
    if (began) {
      const outcome = ledger.outcome('not reached; run clean again');
      printOutcome(outcome, { unlisted: kept, planned: false }, pools, context);
    }
    if (signal.aborted) throw new ClusterError('interrupted; clean can be run again at any point');
    if (over.aborted)
      throw new ClusterError('the lease was lost, another replica may lead: stop it and run clean again');
    throw error;
  } finally {
    end.abort();
    // The signal may be aborted already. The Leases are released nevertheless, so that the next leader need not wait.
    await leases?.release(AbortSignal.timeout(5_000));
    await connection.close();
  }

  /** Prints the steps. Returns the uids of the present nodes only, because the whole inventory may be large. */
  async function showPlan(look: LookOptions): Promise<ReadonlySet<string>> {
    const inventory = await takeInventory(look);
    say(table(PLAN_HEADER, planRows(inventory, how), context.columns).trimEnd());
    pools = taintingPools(inventory.nodes, await readNodePools(client, say, over), taints);
    for (const note of taintingPoolNotes(pools, taintKind(taints))) say(note);
    if (flags.dryRun) {
      recordPlan(ledger, inventory, taints, how);
      kept = how === 'keep' ? inventory.pods.length : 0;
    }
    return inventory.nodeUids;
  }

  async function hold(controllers: OwnControllers, stopped: boolean): Promise<HeldLeases> {
    const names = leasesToHold(controllers, configured);
    const options = {
      client: connection.leaseClient,
      clock,
      identity: cleanerIdentity(`${hostname()}-${randomUUID()}`),
      durationMs: milliseconds(config.leaderElection.leaseDuration),
      waitMs: stopped ? FAREWELL_MS : 0,
      stopping: flags.stop,
      say,
      signal: over,
    };
    return holdLeases(names, options, () => end.abort());
  }

  /** Returns the controllers because of which `clean` would refuse now, and why. */
  async function refusals(controllers: OwnControllers, atMostMs: number): Promise<Refusal[]> {
    const live = await liveLeases(client, controllers.leases, { clock, atMostMs, signal: over });
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
}

/** Whether a search found no object that archaware wrote to. Policies and webhooks record no taint. */
function isEmpty({ gated, recorded, nodes, daemonSets, pods }: Inventory): boolean {
  return [gated, recorded, nodes, daemonSets, pods].every(({ length }) => length === 0);
}

/** Finds the controllers. A dry run goes on without the right to look for them, in one namespace. */
async function find(
  look: () => Promise<OwnControllers>,
  namespace: string,
  dryRun: boolean,
  say: (line: string) => void,
): Promise<OwnControllers> {
  try {
    return await look();
  } catch (error) {
    if (!dryRun || !(error instanceof RefusedError)) throw error;
    say(`without --dry-run, clean refuses: ${error.message}`);
    return { deployments: [], leases: [], namespaces: [namespace], strangers: [] };
  }
}

function refuseWanted(wanted: ReturnType<typeof wantedOnes>): void {
  const [first] = wanted;
  if (first === undefined) return;
  throw new RefusedError(`${wanted.map(wantText).join('; ')}: ${stopAdvice(first.namespace, first.name)}`);
}
