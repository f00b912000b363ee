import { setMaxListeners } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { absentNotes } from '../../app/absent-architectures.ts';
import { ClusterError, connect } from '../../app/connect.ts';
import { type Context, EXIT } from '../../app/context.ts';
import { loadLabelRules } from '../../app/label-rules/label-rules.ts';
import { readNodePools } from '../../app/node-pools.ts';
import { loadOperatorFiles, problemPrinter } from '../../app/registries/operator-files.ts';
import { createPullSecretReader, createServiceAccountReader } from '../../app/registries/pull-secrets.ts';
import { resolverFor } from '../../app/registries/resolver.ts';
import { loopsThatRun, toSettings } from '../../config/settings.ts';
import { createImageSource } from '../../controllers/images.ts';
import { createLoops, type Loops } from '../../controllers/loops/loops.ts';
import { type Decided, decidedOf } from '../../controllers/object-record.ts';
import { createNodeFetcher, createWatches, kindsFor, type Scope, type Watches } from '../../controllers/watches.ts';
import type { ApiClient } from '../../kube/client.ts';
import type { Writer } from '../../kube/writer.ts';
import type { FailedImage } from '../../placement/decide.ts';
import { isLeftAlone } from '../../placement/eligibility.ts';
import { architecturesOf, nodeArchitecture } from '../../placement/nodes/node.ts';
import { nodePoolProblems } from '../../placement/nodes/node-pools.ts';
import { taintsNodes, untaintedPoolsNote } from '../../placement/nodes/pools.ts';
import { nodesWithUnmanagedTaints } from '../../placement/nodes/unmanaged-taints.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';
import { onlyObserves } from '../../placement/placing.ts';
import { withinText } from '../../placement/reasons.ts';
import { unrecordedNote } from '../../placement/rollout/lost-record.ts';
import { takenBackNote } from '../../placement/rollout/taken-back.ts';
import type { Settings } from '../../placement/settings.ts';
import { otherDaemonSetNote, untoleratingDaemonSets } from '../../placement/workloads/other-daemon-sets.ts';
import { byName, overviewLines, type Subject } from '../../placement/workloads/overview.ts';
import { workloadOf } from '../../placement/workloads/owner.ts';
import { withPatience } from '../lookups/with-progress.ts';
import { valueText } from '../output.ts';
import { createProgress } from '../progress.ts';
import { askWhetherAllowed } from './allowed.ts';
import type { Named, Plan, Seen } from './shape.ts';
import { createSpreadReader, judgeSpread, type SpreadReader, spreadSurroundings } from './spread.ts';
import { findLeftovers, leftoverNote } from './switch-off.ts';
import { planText, unknownCount } from './text.ts';

/** What `plan` looks at and how it prints it. */
export type PlanOptions = {
  /** The objects to plan for. If all fields are undefined: the whole cluster, nodes included. */
  readonly scope: Scope;
  /** Prints one row for each pod instead of one for each workload. */
  readonly byPod: boolean;
  /** Prints every workload, and all names. */
  readonly isWide: boolean;
  readonly lookupTimeoutMs: number;
};

/**
 * Prints what `run` would write now, with the same controllers and a writer that only records. Exit code 2 if there are changes.
 */
export async function plan(context: Context, options: PlanOptions): Promise<number> {
  const { scope, byPod, isWide, lookupTimeoutMs } = options;
  const { signal, output, clock, print, note } = context;
  const isWhole = scope.namespace === undefined && scope.labels === undefined;
  const config = isWhole ? context.config : withoutNodes(context.config);
  const files = await loadOperatorFiles(config, clock, problemPrinter(note));
  const labels = await loadLabelRules(config, clock);
  for (const problem of labels.problems()) note(problem);
  const { client } = await connect(context);
  const end = new AbortController();
  const over = AbortSignal.any([signal, end.signal]);
  try {
    setMaxListeners(0, over);
    // Recorded by object: an object may be reconciled twice, but `run` would write it once.
    const recorded = new Map<string, Plan['changes'][number]>();
    const record: Writer = async ({ kind, namespace, name, action }, patch) => {
      const change = { kind, ...(namespace === undefined ? {} : { namespace }), name, action, patch };
      recorded.set(JSON.stringify([kind, namespace, name]), change);
      return { kind: 'recorded' };
    };
    const spreads = createSpreadReader();
    const watches = createWatches({
      client,
      clock,
      kinds: kindsFor(config),
      scope,
      keepsAll: true,
      onPod: spreads.read,
      refusedMs: 0,
    });
    const progress = createProgress(context);
    const asking = resolverFor(config, clock, files, {
      pullSecrets: config.credentials.pullSecrets ? createPullSecretReader(client, clock) : async () => [],
      apiServer: client,
      signal: over,
    });
    const resolver = withPatience(asking, context, progress, lookupTimeoutMs, over);
    const settings = toSettings(config);
    let failure: unknown;
    const loops = createLoops({
      watches,
      settings: () => settings,
      labelRules: labels.rules,
      loops: loopsThatRun(config),
      workers: config.workers,
      bootstrapMs: undefined,
      images: createImageSource(resolver),
      serviceAccountSecrets: createServiceAccountReader(client, clock),
      fetchNode: createNodeFetcher(client),
      write: record,
      events: { emit: () => false },
      clock,
      telemetry: {
        outcome(_controller, _key, _seconds, result) {
          if (result.outcome === 'error') failure ??= result.error;
        },
      },
    });
    resolver.onSettled(loops.lookupEnded);
    const watching = watches.run(over);
    await Promise.race([watches.whenSynced(), watching]);
    if (scope.namespace !== undefined && watches.namespaces.store.get(scope.namespace) === undefined) {
      throw new ClusterError(`namespace ${scope.namespace} does not exist`);
    }
    const running = loops.run(over, over);
    while (!over.aborted && failure === undefined && !(loops.idle() && resolver.pending() === 0)) {
      progress.show('images to look up', resolver.pending());
      await wait(10);
    }
    progress.end();
    end.abort();
    await running;
    if (failure !== undefined) throw failure;
    signal.throwIfAborted();

    const changes = [...recorded.values()].sort(byName);
    const refused = await askWhetherAllowed({ context, client, settings, watches, loops, changes });
    const { headings, ...summary } = summarise(decidedOf(loops.podStates), decidedOf(loops.daemonSetStates));
    const { pools, areRead } = isWhole
      ? await poolProblems(client, settings, note, signal)
      : { pools: [], areRead: true };
    const absent = absentNotes(config, watches.nodes.store.values());
    const workloads = await judgeSpread(
      () => subjectsOf(watches, loops, spreads),
      { ...surroundingsOf(watches, settings), spread: spreadSurroundings(watches, settings) },
      { client, signal },
    );
    if (output === 'table') {
      const result: Plan = { changes, ...summary, workloads, refused, pools };
      const seen = seenIn(watches, headings, settings);
      const where = scope.namespace === undefined ? '' : ` in namespace ${scope.namespace}`;
      const head = workloads.length === 0 ? [] : overviewLines(workloads, unknownCount(result), where);
      const { columns } = context;
      print(planText(result, seen, { head, byPod, isWide, taint: settings.taints, absent, columns }));
    } else
      print(valueText({ changes, ...summary, workloads, refused, ...(pools.length > 0 ? { pools } : {}) }, output));
    // At a terminal, the table shows these notes too, so they are not printed twice.
    const isShown = output === 'table' && context.columns !== undefined;
    for (const line of isShown ? [] : absent) note(line);
    const unrecorded = unrecordedNote(watches.daemonSets.store.values(), settings.taints);
    if (unrecorded !== undefined) note(unrecorded);
    const back = takenBackNote(served(watches, loops));
    if (back !== undefined) note(back);
    reportLeftAlone(summary.ignored, isWide, note);
    reportOtherDaemonSets(watches, loops, isWide, note);
    for (const pool of pools) note(`${pool.severity}: NodePool ${pool.name} ${pool.note}`);
    if (isWhole) reportNodes({ config, settings, watches, loops, areRead }, note);
    return changes.length > 0 && !onlyObserves(settings) ? EXIT.found : EXIT.done;
  } finally {
    end.abort();
    await client.close();
  }
}

/** Returns the note for the mode that writes nothing. `tainted`: how many nodes have taints of archaware. */
function observeNote(tainted: number): string {
  if (tainted === 0) {
    return 'placement.mode is observe, so run writes nothing: plan --placement.mode taints shows what that mode would write';
  }
  return `placement.mode is observe, and ${tainted} node(s) have taints of archaware, which run does not remove: run clean`;
}

/** A part of the cluster has no nodes, so the plan for it changes none. */
function withoutNodes(config: Context['config']): Context['config'] {
  return { ...config, loops: config.loops.filter((loop) => loop === 'pods' || loop === 'daemonsets') };
}

async function poolProblems(client: ApiClient, settings: Settings, note: (line: string) => void, signal: AbortSignal) {
  const nodePools = await readNodePools(client, note, signal);
  const pools = (nodePools ?? []).flatMap((pool) =>
    nodePoolProblems(pool, settings).map((problem) => ({ kind: 'NodePool', name: pool.name, ...problem })),
  );
  return { pools, areRead: nodePools !== undefined };
}

/** Notes pools whose nodes lack the taint, and what is left of a mode that was in use before. */
function reportNodes(
  {
    config,
    settings,
    watches,
    loops,
    areRead,
  }: {
    readonly config: Context['config'];
    readonly settings: Settings;
    readonly watches: Watches;
    readonly loops: Loops;
    readonly areRead: boolean;
  },
  note: (line: string) => void,
): void {
  const runs = (loop: (typeof config.loops)[number]) => loopsThatRun(config).includes(loop);
  const untainted = runs('nodes') && untaintedPoolsNote(watches.nodes.store.values(), settings, areRead);
  if (untainted) note(untainted);
  if (onlyObserves(settings)) {
    note(observeNote(nodesWithUnmanagedTaints(watches.nodes.store.values(), settings, false).length));
    return;
  }
  // DaemonSets that `run` skips keep their tolerations in any case, so they do not count.
  const counted = runs('daemonsets') ? served(watches, loops) : undefined;
  const left = findLeftovers(watches.nodes.store.values(), counted, settings);
  if (left !== undefined) note(leftoverNote(left, settings, runs('nodes')));
}

/** Returns the DaemonSets that `run` does not leave alone. */
function served({ daemonSets }: Watches, { daemonSetStates }: Loops): DaemonSet[] {
  return [...daemonSets.store.values()].filter(
    ({ namespace, name }) => daemonSetStates.get(`${namespace}/${name}`)?.decision?.kind !== 'skip',
  );
}

/** Returns the pods and the templates of DaemonSets with the decisions about them. A daemon pod follows its template. */
function* subjectsOf(watches: Watches, loops: Loops, spreads: SpreadReader): Generator<Subject> {
  const templates = decidedOf(loops.daemonSetStates);
  for (const [key, state] of decidedOf(loops.podStates)) {
    const pod = watches.pods.store.get(key);
    if (pod === undefined) continue;
    const isDaemonPod = state.decision.kind === 'skip' && state.decision.reason === 'daemon-pod';
    const { decision, settings } = (isDaemonPod && templates.get(`${pod.namespace}/${pod.owner?.name}`)) || state;
    const node = watches.nodes.store.get(pod.nodeName ?? '');
    yield {
      workload: workloadOf(pod),
      decision,
      settings,
      tolerations: pod.tolerations ?? [],
      bound: pod.nodeName !== undefined,
      nodeArchitecture: node && nodeArchitecture(node),
      asked: pod.asked,
      spread: spreads.of(pod, decision, settings),
    };
  }
  for (const [key, { decision, settings }] of templates) {
    const [namespace = '', name = ''] = key.split('/');
    const workload = { kind: 'DaemonSet', namespace, name };
    const { asked } = watches.daemonSets.store.get(key)?.template ?? { asked: undefined };
    yield { workload, decision, settings, tolerations: [], bound: false, nodeArchitecture: undefined, asked };
  }
}

function surroundingsOf({ nodes }: Watches, settings: Settings) {
  const all = [...nodes.store.values()];
  return {
    architectures: architecturesOf(all),
    allTainted: all.length > 0 && all.every(({ labels }) => taintsNodes(settings, labels)),
  };
}

function seenIn(watches: Watches, headings: ReadonlyMap<Plan['held'][number], string>, settings: Settings): Seen {
  const podOf = ({ kind, namespace, name }: Named) =>
    kind === 'Pod' ? watches.pods.store.get(`${namespace}/${name}`) : undefined;
  return {
    workloadOf(object) {
      const pod = podOf(object);
      return pod === undefined ? object : workloadOf(pod);
    },
    stateOf(object) {
      if (object.kind !== 'Pod') return '';
      const isBound = podOf(object)?.nodeName !== undefined;
      if (onlyObserves(settings)) return isBound ? 'runs' : 'not held in this mode';
      return isBound ? 'runs; Pending at its next restart' : 'Pending';
    },
    headingOf: (held) => headings.get(held) ?? '',
  };
}

function summarise(
  pods: ReadonlyMap<string, Decided>,
  daemonSets: ReadonlyMap<string, Decided>,
): Omit<Plan, 'changes' | 'pools' | 'refused' | 'workloads'> & {
  readonly headings: ReadonlyMap<Plan['held'][number], string>;
} {
  const headings = new Map<Plan['held'][number], string>();
  const waiting: Plan['waiting'][number][] = [];
  const held: Plan['held'][number][] = [];
  const ignored: Named[] = [];
  const unresolved = new Map<string, FailedImage>();
  for (const [kind, states] of [
    ['Pod', pods],
    ['DaemonSet', daemonSets],
  ] as const) {
    for (const [key, { decision, settings }] of states) {
      const [namespace = '', name = ''] = key.split('/');
      if (kind === 'Pod' && decision.kind === 'skip' && isLeftAlone(decision.reason)) {
        ignored.push({ kind, namespace, name });
      }
      if (decision.kind === 'wait') waiting.push({ kind, namespace, name, images: decision.images });
      if (decision.kind === 'hold') {
        const entry = { kind, namespace, name, images: decision.images };
        held.push(entry);
        headings.set(entry, heldText(settings));
      }
      if (decision.kind === 'wait' || decision.kind === 'place') {
        for (const { volume: _volume, ...failed } of decision.failed) unresolved.set(failed.image, failed);
      }
    }
  }
  const byImage = [...unresolved.values()].sort((one, other) => (one.image < other.image ? -1 : 1));
  for (const list of [waiting, held, ignored]) list.sort(byName);
  return { waiting, held, unresolved: byImage, ignored, headings };
}

function heldText({ mode, schedulable, policy }: Settings): string {
  const by = policy === undefined ? '' : `, by policy ${policy}`;
  return `${onlyObserves({ mode }) ? 'Would be held in another mode' : 'Held'}: their images have no architecture in common${withinText(schedulable)}${by}.`;
}

/** Notes the DaemonSets of other API groups, such as OpenKruise's, whose templates archaware does not write. */
function reportOtherDaemonSets(watches: Watches, loops: Loops, isWide: boolean, note: (line: string) => void): void {
  const decided = [...decidedOf(loops.podStates)].flatMap(([key, { decision, settings }]) => {
    const pod = watches.pods.store.get(key);
    return pod === undefined || onlyObserves(settings) ? [] : { pod, decision, settings };
  });
  const lacking = untoleratingDaemonSets(decided);
  const shown = isWide ? lacking : lacking.slice(0, 5);
  for (const each of shown) note(otherDaemonSetNote(each));
  const more = lacking.length - shown.length;
  if (more > 0) note(`${more} more of such DaemonSets (--wide)`);
}

function reportLeftAlone(ignored: Plan['ignored'], isWide: boolean, note: (line: string) => void): void {
  if (ignored.length === 0) return;
  const names = ignored.map(({ namespace, name }) => `${namespace}/${name}`);
  const shown = isWide ? names : names.slice(0, 5);
  const more = names.length > shown.length ? ` and ${names.length - shown.length} more (--wide)` : '';
  note(
    `${names.length} pod(s) are ignored by archaware and need their own toleration on tainted nodes: ${shown.join(', ')}${more}`,
  );
}
