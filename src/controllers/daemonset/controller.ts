import type { Result } from '../../kube/controller.ts';
import { isSystemNamespace } from '../../placement/eligibility.ts';
import { unreadyNodesOf, wantsPodOn } from '../../placement/nodes/held-back.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';
import { onlyObserves } from '../../placement/placing.ts';
import { settingsFor } from '../../placement/policy.ts';
import { readDaemonSetSubject } from '../../placement/subject.ts';
import { createAnnouncer, problemsOf, secretProblems } from '../announce.ts';
import { createContention } from '../contention.ts';
import { createLargeTurns, WAITS_FOR_LARGE_TURN } from '../large-turns.ts';
import { answered, behindMs, createMemory } from '../memory.ts';
import { createRefusals } from '../refusals.ts';
import { createRefusedEntries } from '../refused-entries.ts';
import { createAct, TURN_AGAIN_MS, WAITS_FOR_TURN } from './act.ts';
import { intentOf, regarding } from './change.ts';
import type { DaemonSetController, DaemonSetControllerOptions } from './contract.ts';
import { createLostRecords } from './lost-records.ts';
import { createOwnership } from './ownership.ts';
import { createRolloutTurn } from './rollout.ts';
import { createStops, holdersOf, unprovenOfSystem } from './stopped.ts';
import { decideForTemplate, type TemplateCase } from './template-decision.ts';
import { createTemplateWriter } from './template-write.ts';
import { createUnserved } from './unserved.ts';

/** Creates the DaemonSet controller. Keys are `namespace/name`. `kube/controller` owns its queue and its workers. */
export function createDaemonSetController(options: DaemonSetControllerOptions): DaemonSetController {
  const { daemonSets, namespaces, images, write, clock } = options;
  const memory = createMemory(images, clock);
  const announcer = createAnnouncer(options.events, clock);
  const contention = createContention(announcer, clock);
  const noteRefusal = createRefusals({ ...options, announcer });
  const entries = createRefusedEntries(clock);
  const isSystem = (namespace: string) => isSystemNamespace(namespace, options.settings());
  const taints = () => options.settings().taints;
  const turn = createRolloutTurn({
    daemonSets,
    clock,
    isSystem,
    unreadyNodes: (daemonSet) => unreadyNodesOf(daemonSet, options.nodes(), taints().key),
  });
  const unserved = createUnserved({ daemonSets, isSystem, taints, onServed: options.onServed });
  const larges = createLargeTurns(clock, true, options.onTurn);
  const ownership = createOwnership({ write, clock, onRefused: options.onRefused });
  const writer = createTemplateWriter({ ...options, turn, entries, contention, noteRefusal });
  const act = createAct({ ...options, memory, entries, ownership, turn, unserved, writer });
  const lost = createLostRecords({
    ...{ write, clock, contestedMs: writer.contestedMs, onRefused: options.onRefused },
    onWritten: (record, change) => contention.wrote(record, intentOf(change)),
  });
  const unproven = () => unprovenOfSystem({ daemonSets, turn, isSystem, taints });
  const actOnStop = createStops({ ...options, turn, announcer, noteRefusal });
  /** Whether nodes stayed without the taint because of a rollout. */
  let [wasStopping, wasHolding] = [false, false];

  function forget(key: string): void {
    for (const each of [memory, larges, turn]) each.forget(key);
    unserved.served(key);
    options.onDecided(key);
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Result> {
    let isInLine = false;
    try {
      const result = await reconcileWhole(key, signal);
      isInLine = result === WAITS_FOR_TURN || result === WAITS_FOR_LARGE_TURN;
      if (turn.verdict(key) === undefined) return result;
      const { againInMs = TURN_AGAIN_MS } = result;
      return { ...result, againInMs: Math.min(againInMs, TURN_AGAIN_MS) };
    } finally {
      // Whatever else happened, a DaemonSet that does not wait for its turn must not hold up those behind it.
      if (!isInLine) turn.leave(key);
      const unblocked = memory.all.get(key)?.decision?.kind === 'wait' ? undefined : turn.seen(key);
      if (unblocked !== undefined) options.onTurn(unblocked);
      const isStopping = turn.stopsAll().length > 0;
      const isHolding = isStopping || unproven().length > 0;
      if (wasStopping !== isStopping || (wasHolding && !isHolding)) options.onServed();
      [wasStopping, wasHolding] = [isStopping, isHolding];
    }
  }

  async function reconcileWhole(key: string, signal: AbortSignal): Promise<Result> {
    const kept = daemonSets.get(key);
    if (kept?.isLarge !== true) {
      larges.forget(key);
      return decideAndAct(key, kept, signal);
    }
    if (!larges.begin(key, memory.all.get(key)?.decision === undefined ? 'new' : 'again')) return WAITS_FOR_LARGE_TURN;
    try {
      return await decideAndAct(key, await options.wholeDaemonSet(kept, signal), signal);
    } finally {
      larges.end();
    }
  }

  async function decideAndAct(key: string, daemonSet: DaemonSet | undefined, signal: AbortSignal): Promise<Result> {
    if (daemonSet === undefined) {
      forget(key);
      return { outcome: 'unchanged' };
    }
    const namespace = namespaces.get(daemonSet.namespace);
    // The event of the namespace will follow and queue its DaemonSets.
    if (namespace === undefined) return { outcome: 'waiting' };
    const record = memory.of(key, daemonSet.uid);
    // The watch does not show the last write yet. The event of that write queues the DaemonSet again.
    const behind = behindMs(record, daemonSet, clock.monotonic());
    if (behind > 0) return { outcome: 'unchanged', againInMs: behind };
    const settings = settingsFor(options.settings(), { namespace, labels: daemonSet.template.labels });
    const subject = readDaemonSetSubject(daemonSet, namespace, settings);
    const { skipped } = subject;
    const at: TemplateCase = { key, daemonSet, record, subject, settings, signal };
    if (skipped !== undefined) {
      memory.remember(key, record, { subjectKey: subject.key, settings }, { kind: 'skip', reason: skipped });
      turn.forget(key);
      unserved.served(key);
      options.onDecided(key);
      return { outcome: 'unchanged' };
    }
    if (onlyObserves(settings)) return decideAndWrite(at);
    const wrote = (version: string) => answered(record, version, daemonSets.get(key), clock.monotonic());
    const found = await lost.write(record, daemonSet, settings, signal);
    if (found?.kind === 'conflict') return { outcome: 'conflict' };
    if (found?.kind === 'written') {
      wrote(found.resourceVersion);
      return { outcome: 'written', detail: 'recorded its tolerations again' };
    }
    const result = await decideAndWrite({ ...at, daemonSet: found?.daemonSet ?? daemonSet });
    if (result === WAITS_FOR_TURN || options.givesBack === false) return result;
    if (result.outcome === 'written' || result.outcome === 'conflict') return result;
    const { resourceVersion, againInMs } = await ownership.atSight(record, daemonSet, signal);
    if (resourceVersion !== undefined) wrote(resourceVersion);
    const due = [result.againInMs, againInMs, lost.againInMs(record)].filter((ms) => ms !== undefined);
    return due.length === 0 ? result : { ...result, againInMs: Math.min(...due) };
  }

  async function decideAndWrite(at: TemplateCase): Promise<Result> {
    const { key, daemonSet, record, settings } = at;
    const stopped = await actOnStop(at);
    if (stopped !== undefined) {
      if (!turn.isUnproven(key)) options.onDecided(key);
      // Once its author changes it, it is decided again. Until then a taint would cut it off.
      unserved.lacks(key, { architectures: undefined, why: 'in-line', answer: '' });
      return stopped;
    }
    const decision = await decideForTemplate(options, at);
    const { namespace } = daemonSet;
    // The controller removes extra tolerations from templates, so no Event reports them as stale.
    const template = { ...daemonSet.template, tolerations: undefined };
    for (const problem of [
      ...problemsOf(template, namespace, decision, settings),
      ...secretProblems(images.unusableSecrets(namespace, template.pullSecrets)),
    ]) {
      announcer.report(record, regarding(daemonSet), problem);
    }
    if (decision.kind === 'wait' && decision.failed.length > 0) options.onDecided(key);
    const result = await act(at, decision);
    const isDone = result.outcome !== 'conflict' && result.outcome !== 'waiting';
    if (isDone && !turn.isUnproven(key)) options.onDecided(key);
    return result;
  }

  return {
    reconcile,
    states: memory.all,
    lookupEnded: memory.lookupEnded,
    nextToRoll: turn.next,
    holdsTaints: (key) => (turn.waits(key) && daemonSets.get(key)?.rolledOut === true) || turn.isUnproven(key),
    holders: (node) => holdersOf(node, { daemonSets, turn, unserved }),
    awaitsProof: (node) => unproven().some((one) => wantsPodOn(one, node, taints().key)),
    stopsAll: turn.stopsAll,
    stopped: () => turn.stopped().length,
    contested: () => contention.count(memory.all.values()),
    end: larges.stop,
  };
}
