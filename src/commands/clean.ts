import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { createInterface } from 'node:readline/promises';
import { milliseconds, parseDuration } from '../config/duration.ts';
import { ConfigurationError } from '../config/problems.ts';
import {
  forgetPods,
  type Inventory,
  type Left,
  removeConfigurations,
  restoreDaemonSets,
  takeInventory,
  type UndoOptions,
  ungatePods,
  untaintNodes,
} from '../controllers/undo.ts';
import { findPods, replacePods } from '../controllers/undo-pods.ts';
import type { ApiClient } from '../kube/client.ts';
import { systemClock as clock } from '../kube/clock.ts';
import { isGone } from '../kube/errors.ts';
import { cleanerIdentity, createLease, type Lease } from '../kube/lease.ts';
import { createWriter } from '../kube/writer.ts';
import { DEPLOYMENT } from '../names.ts';
import { type Node, undoNode } from '../placement/node.ts';
import { type Counts, describePlan, emptyCounts, leftNow, podQuestion, report } from './clean-report.ts';
import { ClusterError, connect } from './connect.ts';
import { type Context, EXIT } from './context.ts';
import { toSettings } from './settings.ts';
import { stopDeployment } from './stop-deployment.ts';

/** The flags of `clean`, as they were given. */
export type CleanFlags = {
  readonly yes: boolean;
  readonly dryRun: boolean;
  readonly pods: string;
  readonly timeout: string;
  readonly allPods: boolean;
  readonly stop: boolean;
};

/** How often a lease that somebody holds is looked at. */
const WATCH_MS = 500;
/** How long a replica that was told to end may take; the manifests give it half a minute. */
const FAREWELL_MS = 60_000;

/**
 * Undoes what `run` did, in the order in which nothing is lost on the way. Exit code 0 when nothing of ours is left, 2
 * when something is. Throws where a live leader is at work, or what keeps it from starting.
 */
export async function clean(context: Context, flags: CleanFlags): Promise<number> {
  const how = podsFlag(flags.pods);
  const timeoutMs = parseDuration(flags.timeout);
  if (timeoutMs === undefined) {
    throw new ConfigurationError([`--timeout: got "${flags.timeout}", expected a duration, as 30s or 10m`]);
  }
  const { config, signal, output } = context;
  const { client, leaseNamespace } = await connect(context);
  const end = new AbortController();
  const over = AbortSignal.any([signal, end.signal]);
  let lease: Lease | undefined;
  try {
    const { taints } = toSettings(config);
    const nothing = () => false;
    const look = {
      client,
      taints,
      webhook: config.webhook.enabled,
      ownCertificates: config.webhook.enabled && config.webhook.certificates === 'self',
      ownNamespace: leaseNamespace,
      signal: over,
      mayWrite: nothing,
      write: createWriter(client, nothing),
    };
    const inventory = await takeInventory(look);
    const pods = await findPods(
      { client, keys: inventory.keys, allPods: flags.allPods, signal: over },
      'as they will be',
    );
    say(describePlan(inventory, pods, how));
    if (flags.dryRun) {
      report({ removed: emptyCounts(), left: leftNow(inventory, pods, how, 'dry run') }, output);
      return EXIT.done;
    }
    if (!flags.yes && process.stdin.isTTY && !(await ask('Undo all of this?'))) {
      say('nothing was done');
      return EXIT.failed;
    }
    const stopped = flags.stop && (await stopDeployment(client, leaseNamespace, over));
    if (stopped) say(`Deployment ${leaseNamespace}/${DEPLOYMENT}: scaled to 0`);
    if (config.leaderElection.enabled) {
      const waitMs = stopped ? FAREWELL_MS : 0;
      lease = await takeLease(context, client, leaseNamespace, { over, end, waitMs });
    }
    const held = lease;
    const mayWrite = () => held?.fresh() ?? true;
    const undo: UndoOptions = { ...look, mayWrite, write: createWriter(client, mayWrite) };
    // Looked at again now that nobody else writes: a leader may have gone on until a moment ago.
    const now = lease === undefined ? inventory : await takeInventory(undo);
    const result = await undoAll(undo, now, { how, timeoutMs, flags });
    report(result, output);
    // Who stops the controller uninstalls it: nobody is there to take the lease again.
    if (flags.stop && result.left.length === 0) await lease?.remove(over).catch(() => {});
    return result.left.length === 0 ? EXIT.done : EXIT.found;
  } catch (error) {
    if (signal.aborted) throw new ClusterError('interrupted; clean can be run again at any point');
    if (over.aborted)
      throw new ClusterError('the lease was lost, another replica may lead: stop it and run clean again');
    throw error;
  } finally {
    end.abort();
    // Not with the signal that may have ended us: the next leader should not have to wait.
    await lease?.release(AbortSignal.timeout(5_000)).catch(() => {});
    await client.close();
  }
}

/** The steps in their order; what a step must not follow is left, and said to be. */
async function undoAll(
  undo: UndoOptions,
  now: Inventory,
  { how, timeoutMs, flags }: { how: 'evict' | 'delete' | 'keep'; timeoutMs: number; flags: CleanFlags },
): Promise<{ removed: Counts; left: Left[] }> {
  const { client, mayWrite, signal } = undo;
  const find = () => findPods({ client, keys: now.keys, allPods: flags.allPods, signal });
  const left = await removeConfigurations(undo, now);
  const removed = { ...emptyCounts(), configurations: now.configurations.length - left.length };
  say(`admission configurations: ${removed.configurations} removed`);
  const ungate = async (pods: Inventory['gated']) => {
    const stillGated = await ungatePods(undo, pods);
    removed.gates += pods.length - stillGated.length;
    if (pods.length > 0) say(`gates: ${removed.gates} removed`);
    return stillGated;
  };

  // Before anything else, and again at the end: what was under admission just now may have got a gate since.
  const gatesLeft = await ungate(now.gated);

  const nodesLeft = await untaintNodes(undo, now.nodes);
  removed.nodes = now.nodes.length - nodesLeft.length;
  const undone = now.nodes.filter(({ name }) => !nodesLeft.some((left) => left.name === name));
  removed.labels = undone.reduce((sum, node) => sum + labelsOf(node, undo.taints), 0);
  say(`nodes: ${removed.nodes} of ${now.nodes.length} rid of our taint and ${removed.labels} label(s)`);
  left.push(...nodesLeft);
  if (nodesLeft.length > 0) {
    // Without their tolerations daemon pods would go from those nodes at once, and pods could not come back to them.
    const rest = { ...now, configurations: [], gated: [], nodes: [] };
    left.push(
      ...gatesLeft,
      ...leftNow(rest, await find(), how, 'not touched while nodes are still tainted; run clean again'),
    );
    return { removed, left };
  }

  const setsLeft = await restoreDaemonSets(undo, now.daemonSets);
  removed.daemonSets = now.daemonSets.length - setsLeft.length;
  say(`DaemonSets: ${removed.daemonSets} of ${now.daemonSets.length} restored`);
  left.push(...setsLeft);

  const carrying = how === 'keep' ? [] : await find();
  if (how !== 'keep' && carrying.length > 0) {
    const go = flags.yes || !process.stdin.isTTY || (await ask(podQuestion(carrying, how)));
    const replaced = await replacePods(
      {
        client,
        mayWrite,
        clock,
        keys: now.keys,
        how,
        allPods: flags.allPods,
        timeoutMs: go ? timeoutMs : 0,
        onProgress: say,
        signal,
      },
      carrying,
    );
    removed.pods = replaced.removed;
    left.push(...replaced.left);
  }
  left.push(...(await ungate((await takeInventory(undo)).gated)));
  const recordsLeft = await forgetPods(undo, now.recorded);
  removed.annotations = now.recorded.length - recordsLeft.length;
  left.push(...recordsLeft);
  return { removed, left };
}

/**
 * Takes the Lease, or says who holds it. A holder that fell silent is given its time to prove that it lives, and one that lives
 * `waitMs` to end.
 */
async function takeLease(
  { config, signal }: Context,
  client: ApiClient,
  namespace: string,
  { over, end, waitMs }: { over: AbortSignal; end: AbortController; waitMs: number },
): Promise<Lease | undefined> {
  const { name, leaseDuration } = config.leaderElection;
  const identity = cleanerIdentity(`${hostname()}-${randomUUID()}`);
  const lease = createLease({ client, namespace, name, identity, durationMs: milliseconds(leaseDuration), clock });
  const deadline = clock.monotonic() + waitMs;
  let said = false;
  for (;;) {
    signal.throwIfAborted();
    let attempt: Awaited<ReturnType<Lease['tryAcquire']>>;
    try {
      attempt = await lease.tryAcquire(over);
    } catch (error) {
      // No namespace for the Lease: no leader can be at work there either.
      if (isGone(error)) return undefined;
      throw error;
    }
    if (attempt.held) break;
    if (attempt.alive && clock.monotonic() >= deadline) {
      throw new ClusterError(
        `${attempt.holder} leads (Lease ${namespace}/${name}): stop it first, ` +
          `with --stop, or as with kubectl -n ${namespace} scale deployment ${DEPLOYMENT} --replicas=0`,
      );
    }
    if (!said && attempt.alive) say(`${attempt.holder} leads; waiting for it to end`);
    else if (!said) say(`${attempt.holder} holds the lease; waiting up to ${leaseDuration} to see whether it lives`);
    said = true;
    await clock.delay(WATCH_MS, over);
  }
  void lease.keep(over).then(() => end.abort());
  return lease;
}

/** How many labels `clean` takes from a node. */
function labelsOf(node: Node, taints: UndoOptions['taints']): number {
  const decision = undoNode(node, taints);
  return decision.kind === 'set' ? decision.removedLabels.length : 0;
}

function podsFlag(text: string): 'evict' | 'delete' | 'keep' {
  if (text === 'evict' || text === 'delete' || text === 'keep') return text;
  throw new ConfigurationError([`--pods: got ${JSON.stringify(text)}, expected one of evict, delete, keep`]);
}

async function ask(question: string): Promise<boolean> {
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await prompt.question(`${question} [y/N] `)).trim());
  } finally {
    prompt.close();
  }
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
