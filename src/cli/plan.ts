import { setMaxListeners } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { absentNotes } from '../app/absent-architectures.ts';
import { connect } from '../app/connect.ts';
import { type Context, EXIT } from '../app/context.ts';
import { createLoops } from '../app/controllers.ts';
import { openLabelRules } from '../app/label-rules/label-rules.ts';
import { readNodePools } from '../app/node-pools.ts';
import { openOperatorFiles, printProblem } from '../app/registries/operator-files.ts';
import { createPullSecretReader, createServiceAccountReader } from '../app/registries/pull-secrets.ts';
import { resolverFor } from '../app/registries/resolver.ts';
import { createNodeFetcher, createWatches, kindsFor } from '../app/watches.ts';
import { toSettings } from '../config/settings.ts';
import { createImageSource } from '../controllers/images.ts';
import type { PlacementState } from '../controllers/placement-state.ts';
import { systemClock as clock } from '../kit/clock.ts';
import { isObject } from '../kit/json.ts';
import type { Operation } from '../kit/json-patch.ts';
import type { Writer } from '../kube/writer.ts';
import { ARCHITECTURE_GATE } from '../names.ts';
import type { FailedImage, ImageSet } from '../placement/decide.ts';
import { findLeftovers, leftoverNote } from '../placement/nodes/leftovers.ts';
import { type NodePoolProblem, nodePoolProblems } from '../placement/nodes/node-pools.ts';
import { untaintedPoolsNote } from '../placement/nodes/pools.ts';
import { describeHeld, withinText } from '../placement/reasons.ts';
import type { Settings } from '../placement/settings.ts';
import { printValue, table } from './output.ts';

const LABELS = '/metadata/labels';

type Named = { readonly kind: string; readonly namespace?: string; readonly name: string };

/** The output of `plan`. */
export type Plan = {
  readonly changes: readonly (Named & { readonly action: string; readonly patch: readonly Operation[] })[];
  readonly waiting: readonly (Named & { readonly images: readonly string[] })[];
  readonly held: readonly (Named & { readonly images: readonly ImageSet[] })[];
  readonly unresolved: readonly FailedImage[];
  /** The problems of Karpenter's NodePools; empty if they cannot be read. */
  readonly pools: readonly (Named & NodePoolProblem)[];
};

/**
 * Prints what `run` would write now, with the same controllers and a writer that only records. Exit code 2 if there are changes.
 */
export async function plan(context: Context): Promise<number> {
  const { config, signal, output } = context;
  const files = await openOperatorFiles(config, clock, printProblem);
  const labels = await openLabelRules(config, clock);
  for (const problem of labels.problems()) process.stderr.write(`${problem}\n`);
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
    const watches = createWatches({ client, clock, kinds: kindsFor(config), onRestart: () => {}, refusedMs: 0 });
    const resolver = resolverFor(config, clock, files, {
      pullSecrets: config.credentials.pullSecrets ? createPullSecretReader(client, clock) : async () => [],
      apiServer: client,
      signal: over,
    });
    const settings = toSettings(config);
    let failure: unknown;
    const loops = createLoops({
      watches,
      settings: () => settings,
      labelRules: labels.rules,
      loops: config.loops,
      workers: config.workers,
      bootstrapMs: undefined,
      images: createImageSource(resolver, clock, () => undefined),
      serviceAccountSecrets: createServiceAccountReader(client, clock),
      fetchNode: createNodeFetcher(client),
      write: record,
      events: { emit: () => false },
      clock,
      onOutcome: (_controller, _key, outcome, _seconds, error) => {
        if (outcome === 'error') failure ??= error;
      },
    });
    resolver.onSettled(loops.lookupEnded);
    const watching = watches.run(over);
    await Promise.race([watches.whenSynced(), watching]);
    const running = loops.run(over, over);
    while (!over.aborted && failure === undefined && !(loops.idle() && resolver.pending() === 0)) await wait(10);
    end.abort();
    await running;
    if (failure !== undefined) throw failure;
    signal.throwIfAborted();

    const changes = [...recorded.values()];
    const { within, ...summary } = summarise(loops.podStates, loops.daemonSetStates);
    const nodePools = await readNodePools(client, signal);
    const pools = (nodePools ?? []).flatMap((pool) =>
      nodePoolProblems(pool, settings).map((problem) => ({ kind: 'NodePool', name: pool.name, ...problem })),
    );
    const result: Plan = { changes, ...summary, pools };
    const absent = absentNotes(config, watches.nodes.store.values());
    if (output === 'table') process.stdout.write(render(result, within, absent));
    else printValue({ changes, ...summary, ...(pools.length > 0 ? { pools } : {}) }, output);
    // At a terminal, the table shows these notes too, so they are not printed twice.
    const isShown = output === 'table' && process.stdout.isTTY;
    for (const note of isShown ? [] : absent) process.stderr.write(`${note}\n`);
    reportLeftAlone(loops.podStates);
    const runs = (loop: (typeof config.loops)[number]) => config.loops.includes(loop);
    for (const { name, severity, note } of pools) process.stderr.write(`${severity}: NodePool ${name} ${note}\n`);
    const untainted =
      runs('nodes') && untaintedPoolsNote(watches.nodes.store.values(), settings, nodePools !== undefined);
    if (untainted) process.stderr.write(`${untainted}\n`);
    // DaemonSets that `run` skips keep their tolerations in any case, so they do not count.
    const served = [...watches.daemonSets.store.values()].filter(
      ({ namespace, name }) => loops.daemonSetStates.get(`${namespace}/${name}`)?.decision.kind !== 'skip',
    );
    const left = findLeftovers(watches.nodes.store.values(), runs('daemonsets') ? served : undefined, settings);
    if (left !== undefined) process.stderr.write(`${leftoverNote(left, settings, runs('nodes'))}\n`);
    return changes.length > 0 ? EXIT.found : EXIT.done;
  } finally {
    end.abort();
    await client.close();
  }
}

function summarise(
  pods: ReadonlyMap<string, PlacementState>,
  daemonSets: ReadonlyMap<string, PlacementState>,
): Omit<Plan, 'changes' | 'pools'> & { readonly within: Within } {
  const within = new Map<Plan['held'][number], string>();
  const waiting: (Named & { images: readonly string[] })[] = [];
  const held: (Named & { images: readonly ImageSet[] })[] = [];
  const unresolved = new Map<string, FailedImage>();
  for (const [kind, states] of [
    ['Pod', pods],
    ['DaemonSet', daemonSets],
  ] as const) {
    for (const [key, { decision, settings }] of states) {
      const [namespace = '', name = ''] = key.split('/');
      if (decision.kind === 'wait') waiting.push({ kind, namespace, name, images: decision.images });
      if (decision.kind === 'hold') {
        const entry = { kind, namespace, name, images: decision.images };
        held.push(entry);
        within.set(entry, heldText(settings));
      }
      if (decision.kind === 'wait' || decision.kind === 'place') {
        for (const { volume: _volume, ...failed } of decision.failed) unresolved.set(failed.image, failed);
      }
    }
  }
  return { waiting, held, unresolved: [...unresolved.values()], within };
}

/** The heading for held pods, if `architectures.schedulable` narrowed their architectures. */
type Within = ReadonlyMap<Plan['held'][number], string>;

function heldText({ schedulable, policy }: Settings): string {
  const by = policy === undefined ? '' : `, by policy ${policy}`;
  return `Held: their images have no architecture in common${withinText(schedulable)}${by}.`;
}

function render(
  { changes, waiting, held, unresolved, pools }: Plan,
  within: Within,
  absent: readonly string[],
): string {
  const headings = [...new Set(within.values())];
  const named = ({ kind, namespace, name }: Named) => [kind, namespace ?? '', name];
  const sections = [
    changes.length === 0
      ? 'Nothing to change.\n'
      : table(
          ['KIND', 'NAMESPACE', 'NAME', 'ACTION', 'DETAIL'],
          changes.map((change) => [...named(change), change.action, describePatch(change.patch)]),
        ),
    ...headings.map((heading) =>
      section(
        heading,
        ['KIND', 'NAMESPACE', 'NAME', 'IMAGES'],
        held
          .filter((entry) => within.get(entry) === heading)
          .map((entry) => [...named(entry), describeHeld(entry.images)]),
      ),
    ),
    section(
      'Waiting for images.',
      ['KIND', 'NAMESPACE', 'NAME', 'IMAGES'],
      waiting.map((entry) => [...named(entry), entry.images.join(', ')]),
    ),
    section(
      'Not resolved.',
      ['IMAGE', 'CODE', 'MESSAGE'],
      unresolved.map(({ image, code, message }) => [image, code, message]),
    ),
    section(
      'NodePools that do not fit.',
      ['NODEPOOL', 'SEVERITY', 'PROBLEM'],
      pools.map(({ name, severity, problem }) => [name, severity, problem]),
    ),
    absent.length === 0 ? '' : `Configured, but without a node.\n${absent.map((note) => `${note}\n`).join('')}`,
  ];
  return sections.filter((text) => text !== '').join('\n');
}

function section(title: string, header: readonly string[], rows: readonly (readonly string[])[]): string {
  return rows.length === 0 ? '' : `${title}\n${table(header, rows)}`;
}

/**
 * Returns what a patch adds and removes, without its tests: `supported-arch=amd64:NoSchedule`, `-example.com/gpu`,
 * `kubernetes.io/arch in (amd64)`.
 */
function describePatch(patch: readonly Operation[]): string {
  const texts = patch.flatMap((operation) => {
    if (operation.op === 'test') return [];
    if (operation.path.startsWith(LABELS)) return describeLabels(operation);
    if (operation.path.startsWith('/metadata/')) return [];
    if (operation.path.startsWith('/spec/schedulingGates')) return `-${ARCHITECTURE_GATE}`;
    return operation.op === 'remove' ? [] : describeValue(operation.value);
  });
  return texts.join(' ') || 'removes what is ours';
}

/** Returns `example.com/gpu=true`, or `-example.com/gpu` for a removed label; several if the node had no labels before. */
function describeLabels(operation: Exclude<Operation, { op: 'test' }>): string[] {
  const label = operation.path.slice(LABELS.length + 1).replaceAll('~1', '/');
  if (operation.op === 'remove') return [`-${label}`];
  const labels = isObject(operation.value) ? operation.value : { [label]: operation.value };
  return Object.entries(labels).map(([name, value]) => `${name}=${value}`);
}

function describeValue(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(describeValue);
  if (!isObject(value)) return [];
  const { key, effect, values } = value;
  if (Array.isArray(values)) return [`${key} in (${values.join(', ')})`];
  if (effect === undefined && key === undefined) return Object.values(value).flatMap(describeValue);
  return [`${key ?? '*'}${value.value ? `=${value.value}` : ''}${effect ? `:${effect}` : ''}`];
}

function reportLeftAlone(states: ReadonlyMap<string, PlacementState>): void {
  const reasons = new Set(['ignored', 'namespace-ignored', 'namespace-excluded', 'namespace-not-selected']);
  const alone = [...states].filter(([, { decision }]) => decision.kind === 'skip' && reasons.has(decision.reason));
  if (alone.length === 0) return;
  const names = alone.slice(0, 5).map(([key]) => key);
  const more = alone.length > names.length ? ` and ${alone.length - names.length} more` : '';
  process.stderr.write(
    `${alone.length} pod(s) are left alone and need a toleration of their own on tainted nodes: ${names.join(', ')}${more}\n`,
  );
}
