import { untaintedPoolsNote } from '../../analysis/nodes/pool-counts.ts';
import { type JudgedWorkload, otherDaemonSetNote, untoleratingDaemonSets } from '../../analysis/workloads/overview.ts';
import type { Config } from '../../config/schema.ts';
import { loopsThatRun } from '../../config/settings.ts';
import type { Loops } from '../../controllers/loops/loops.ts';
import { decidedOf } from '../../controllers/memory.ts';
import type { Watches } from '../../controllers/watches.ts';
import { nodesWithUnmanagedTaints } from '../../placement/nodes/managed.ts';
import { architecturesOf, type Node } from '../../placement/nodes/node.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';
import { readRecord } from '../../placement/objects/template-record.ts';
import { lacking, tolerationsFor } from '../../placement/patch/tolerations.ts';
import { onlyObserves, usesTaints } from '../../placement/placing.ts';
import { whyNothingIsPublished } from '../../placement/publish/known-images.ts';
import { few, skipNote } from '../../placement/reasons.ts';
import { takenBackNote, unrecordedNote } from '../../placement/rollout/template.ts';
import type { Settings } from '../../placement/settings.ts';
import { counted, nameOf } from '../output.ts';
import type { PoolProblem } from '../survey/survey.ts';
import type { Plan } from './plan-shape.ts';

/** The plan and the circumstances from which the notes are made. */
type Planned = {
  readonly config: Config;
  readonly settings: Settings;
  readonly watches: Watches;
  readonly loops: Loops;
  /** Whether the notes list all names. */
  readonly isWide: boolean;
  /** Whether the whole cluster is planned for, nodes included. */
  readonly isWhole: boolean;
  /** Undefined if the NodePools cannot be read. */
  readonly pools: readonly PoolProblem[] | undefined;
  readonly ignored: Plan['ignored'];
  readonly workloads: Plan['workloads'];
};

/** How many objects a note lists without `--wide`. */
const MOST_NOTED = 5;

/** Returns what a reader of the plan should know beyond the tables. */
export function planNotes(planned: Planned): string[] {
  const { settings, watches, isWhole, pools = [] } = planned;
  const unrecorded = unrecordedNote(watches.daemonSets.store.values(), settings.taints);
  const back = takenBackNote(served(planned));
  return [
    ...(unrecorded === undefined ? [] : [unrecorded]),
    ...(back === undefined ? [] : [back]),
    ...leftAloneNotes(planned),
    ...tooLargeNotes(planned),
    ...otherDaemonSetNotes(planned),
    ...spreadNotes(planned),
    ...pools.map((pool) => `${pool.severity}: NodePool ${pool.name} ${pool.note}`),
    ...(isWhole ? nodeNotes(planned) : []),
  ];
}

/** Returns the notes about pools whose nodes lack the taint, and about what is left of a mode that was in use before. */
function nodeNotes(planned: Planned): string[] {
  const { config, settings, watches, pools } = planned;
  const nodes = () => watches.nodes.store.values();
  const runs = (loop: (typeof config.loops)[number]) => loopsThatRun(config).includes(loop);
  const untainted = runs('nodes') ? untaintedPoolsNote(nodes(), settings, pools !== undefined) : undefined;
  const notes = untainted ? [untainted] : [];
  if (config.placement.publish) notes.push(publishNote(whyNothingIsPublished(settings, loopsThatRun(config))));
  if (onlyObserves(settings)) return [...notes, observeNote(nodesWithUnmanagedTaints(nodes(), settings, false).length)];
  // DaemonSets that `run` skips keep their tolerations in any case, so they do not count.
  const followed = new Set(served(planned));
  const left = findLeftovers(nodes(), runs('daemonsets') ? followed : undefined, settings);
  if (left === undefined) return notes;
  const alone = [...watches.daemonSets.store.values()].filter((daemonSet) => !followed.has(daemonSet));
  const kept = findLeftovers([], alone, settings)?.daemonSets ?? [];
  return [...notes, `${leftoverNote(left, settings, runs('nodes'))}${keptText(kept)}`];
}

function keptText(kept: readonly string[]): string {
  return kept.length === 0
    ? ''
    : `; but ${describe('DaemonSet', kept).join('')} that archaware leaves alone keep theirs until clean runs`;
}

function publishNote(why: string | undefined): string {
  return why === undefined
    ? 'placement.publish is true: once the leader has published an image, the policy archaware-place (manifests/publish.yaml) gives its new pods the same when they are created'
    : `placement.publish is true, and nothing would be published: ${why}`;
}

/** Returns the note for the mode that writes nothing. `tainted`: how many nodes have taints of archaware. */
function observeNote(tainted: number): string {
  return tainted === 0
    ? 'placement.mode is observe, so run writes nothing: plan --placement.mode taints shows what that mode would write'
    : `placement.mode is observe, and ${tainted} node(s) have taints of archaware, which run does not remove: run clean`;
}

/** Returns the DaemonSets that `run` does not leave alone. */
function served({ watches, loops }: Planned): DaemonSet[] {
  return [...watches.daemonSets.store.values()].filter(
    ({ namespace, name }) => loops.daemonSetStates.get(`${namespace}/${name}`)?.decision?.kind !== 'skip',
  );
}

/** Returns the notes about DaemonSets of other API groups, such as OpenKruise's, whose templates archaware does not write. */
function otherDaemonSetNotes({ watches, loops, isWide }: Planned): readonly string[] {
  const decided = [...decidedOf(loops.podStates)].flatMap(([key, { decision, settings }]) => {
    const pod = watches.pods.store.get(key);
    return pod === undefined || onlyObserves(settings) ? [] : { pod, decision, settings };
  });
  const lacking = untoleratingDaemonSets(decided);
  return firstOf(lacking.map(otherDaemonSetNote), isWide, 'of such DaemonSets');
}

/** Returns the notes about workloads whose topology spread counts nodes that their taint keeps them off. */
function spreadNotes({ workloads, isWide }: Planned): readonly string[] {
  const found = workloads.flatMap(({ kind, namespace, name, spread }) =>
    spread === undefined ? [] : `${kind} ${namespace}/${name}: ${spread}`,
  );
  return firstOf(found, isWide, 'workloads with such a topology spread');
}

/** Returns the notes about objects that are too large to be served. */
function tooLargeNotes({ watches, loops, isWide }: Planned): readonly string[] {
  const found = (
    [
      ['Pod', loops.podStates, (key: string) => watches.pods.store.get(key)],
      ['DaemonSet', loops.daemonSetStates, (key: string) => watches.daemonSets.store.get(key)?.template],
    ] as const
  ).flatMap(([kind, states, templateOf]) =>
    [...states].flatMap(([key, { decision }]) =>
      decision?.kind === 'skip' && decision.reason === 'too-large'
        ? `${kind} ${key}: ${skipNote(decision.reason, templateOf(key))}`
        : [],
    ),
  );
  return firstOf(found, isWide, 'objects that are too large');
}

/** Returns the first notes, and how many more there are; with `isWide` all. */
function firstOf(notes: readonly string[], isWide: boolean, what: string): readonly string[] {
  const more = notes.length - MOST_NOTED;
  return isWide || more <= 0 ? notes : [...notes.slice(0, MOST_NOTED), `${more} more ${what} (--wide)`];
}

function leftAloneNotes({ ignored, settings, watches, isWide }: Planned): string[] {
  // Without taints the pod needs nothing; in the mode observe it would.
  if (settings.mode === 'affinity') return [];
  const wanted = tolerationsFor(settings.taints, architecturesOf(watches.nodes.store.values()));
  const ownOf = (key: string) => watches.pods.store.get(key)?.tolerations ?? [];
  const all = ignored.map(({ namespace, name }) => `${namespace}/${name}`);
  const names = all.filter((key) => lacking(ownOf(key), wanted).length === wanted.length);
  if (names.length === 0) return [];
  const shown = isWide ? names : names.slice(0, MOST_NOTED);
  const more = names.length > shown.length ? ` and ${names.length - shown.length} more (--wide)` : '';
  return [
    `${names.length} pod(s) are ignored by archaware and need their own toleration on tainted nodes: ${shown.join(', ')}${more}`,
  ];
}

/**
 * The objects that still have taints or tolerations of archaware although the configuration sets none: names of nodes, and
 * `namespace/name` of DaemonSets.
 */
type Leftovers = {
  readonly nodes: readonly string[];
  /** Undefined if DaemonSets are not read because their controller does not run. */
  readonly daemonSets: readonly string[] | undefined;
};

const EXAMPLES = 5;

/**
 * Finds taints of archaware on nodes and, in the mode `affinity`, tolerations of archaware in templates of DaemonSets. Undefined
 * if the configuration sets taints.
 */
export function findLeftovers(
  nodes: Iterable<Node>,
  daemonSets: Iterable<DaemonSet> | undefined,
  settings: Pick<Settings, 'mode' | 'taints'>,
): Leftovers | undefined {
  if (settings.taints.manage) return undefined;
  const tainted = nodesWithUnmanagedTaints(nodes, settings, false).map(({ name }) => name);
  // In modes with taints, templates keep their tolerations, for the provider's taints.
  const looked = usesTaints(settings) ? [] : daemonSets;
  const tolerating = looked && [...looked].filter(({ recorded }) => readRecord(recorded).tolerations.length > 0);
  return { nodes: tainted.sort(), daemonSets: tolerating?.map(({ namespace, name }) => `${namespace}/${name}`).sort() };
}

/**
 * Returns a text that says whether the controllers for nodes and DaemonSets may be switched off. `managesNodes`: whether the node
 * controller runs now.
 */
export function leftoverNote(
  { nodes, daemonSets }: Leftovers,
  { mode }: Pick<Settings, 'mode'>,
  managesNodes: boolean,
): string {
  const component = usesTaints({ mode }) ? 'without-node-taints' : 'without-taints';
  const means = `the component ${component} (withoutTaints in the chart)`;
  const left = [...describe('node', nodes), ...describe('DaemonSet', daemonSets ?? [])].join(' and ');
  if (left !== '') {
    return managesNodes
      ? `${left} still carry taints or tolerations of archaware, which run removes: do not use ${means} yet`
      : `${left} still carry taints or tolerations of archaware, and this configuration does not remove them: do not use ${means}; let the loops for nodes and DaemonSets run until nothing is left`;
  }
  if (daemonSets === undefined) return 'no node carries a taint of archaware; DaemonSets were not looked at';
  return `no node and no DaemonSet carries taints or tolerations of archaware any more: ${means} may be used`;
}

function describe(kind: string, names: readonly string[]): string[] {
  if (names.length === 0) return [];
  const more = names.length > EXAMPLES ? ', …' : '';
  return [`${names.length} ${kind}(s) (${names.slice(0, EXAMPLES).join(', ')}${more})`];
}

/** What the closing lines depend on beside the plan. */
export type Closing = {
  readonly program: string;
  readonly settings: Settings;
  /** Where the configuration comes from, and whether `--placement.mode` or a variable changed the mode. */
  readonly origin: 'file' | 'cluster' | 'defaults' | 'unreadable';
  readonly isOtherMode: boolean;
  /** The workloads (`Deployment shop/web`) on wrong nodes whose new pods would not go to a right one. */
  readonly stuck: ReadonlySet<string>;
};

/** Returns the last lines of a plan: what would change, which DaemonSets roll, what to do about pods on wrong nodes, and what next. */
export function closingLines(plan: Plan, closing: Closing): string[] {
  const { changes, newPods, workloads } = plan;
  const rolling = changes
    .filter(({ kind, patch }) => kind === 'DaemonSet' && patch.some(({ path }) => path.startsWith('/spec/')))
    .map(({ namespace = '', name }) => `${namespace}/${name}`);
  // A restart into Pending would end what perhaps still runs. A DaemonSet that rolls leaves its wrong nodes, if they have the taint by then.
  const leaving = changes.some(({ kind }) => kind === 'Node') ? [] : rolling;
  const wrong = workloads.filter(
    ({ kind, namespace, name, onWrongNode, pendingAtRestart, reach }) =>
      onWrongNode === true &&
      !pendingAtRestart &&
      reach !== 'nowhere' &&
      !closing.stuck.has(nameOf({ kind, namespace, name })) &&
      !(kind === 'DaemonSet' && leaving.includes(`${namespace}/${name}`)),
  );
  const rolls = rolling.length === 0 ? '' : `; DaemonSets roll, one after another: ${few(rolling)}`;
  // The mode that runs gives new pods theirs without a further step.
  const runs = closing.origin === 'cluster' && !closing.isOtherMode;
  const isWaited = changes.length > 0 || (newPods.length > 0 && !runs);
  const next = nextStep(isWaited, closing);
  const future = runs && newPods.length > 0 ? ` New pods of ${workloadsOf(newPods)} would get node affinity.` : '';
  return [
    isWaited ? `Would change: ${partsOf(plan, runs).join(', ')}${rolls}.${future}` : `Nothing to change.${future}`,
    ...wrongNodeLines(wrong, closing),
    ...(next === undefined ? [] : [`Next: ${next}`]),
  ];
}

function partsOf({ changes, newPods }: Plan, runs: boolean): string[] {
  const count = (kind: string) => changes.filter((change) => change.kind === kind).length;
  const rows: readonly (readonly [count: number, of: string])[] = [
    [count('Node'), 'node'],
    [count('DaemonSet'), 'DaemonSet'],
    [count('Pod'), 'pod'],
  ];
  const changed = rows.flatMap(([many, of]) => (many === 0 ? [] : [counted(many, of)]));
  return runs || newPods.length === 0 ? changed : [...changed, `what new pods of ${workloadsOf(newPods)} require`];
}

const workloadsOf = (newPods: Plan['newPods']) =>
  counted(new Set(newPods.map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`)).size, 'workload');

/** The kinds that `kubectl rollout restart` takes. */
const RESTARTED: readonly string[] = ['Deployment', 'StatefulSet', 'DaemonSet'];
/** How many workloads the command for wrong nodes names. */
const MOST_RESTARTED = 3;

function wrongNodeLines(wrong: readonly JudgedWorkload[], { settings }: Closing): string[] {
  if (wrong.length === 0) return [];
  const first = onlyObserves(settings) ? 'in a mode that places pods' : 'while archaware runs';
  const isRestarted = ({ kind }: JudgedWorkload) => RESTARTED.includes(kind);
  const [restarted, others] = [wrong.filter(isRestarted), wrong.filter((each) => !isRestarted(each))];
  const commands = restarted
    .slice(0, MOST_RESTARTED)
    .map(({ kind, namespace, name }) => `  kubectl -n ${namespace} rollout restart ${kind.toLowerCase()}/${name}`);
  const more = restarted.length > MOST_RESTARTED ? [`  and ${restarted.length - MOST_RESTARTED} more`] : [];
  const named = others.map(
    ({ kind, namespace, name }) => `${kind === 'Pod' ? '' : 'the pods of '}${kind} ${namespace}/${name}`,
  );
  const how = [
    ...(restarted.length === 0 ? [] : ['restart as below']),
    ...(others.length === 0 ? [] : [`delete ${few(named)}, and create again what has no owner`]),
  ].join('; ');
  const evict = settings.onWrongNode === 'evict' ? '' : '; or set pods.onWrongNode: evict';
  const stays = wrong.length === 1 ? 'stays' : 'stay';
  const what = `${counted(wrong.length, 'workload')} on a wrong node could run on another, but ${stays}`;
  return [`${what}: ${first}, ${how}${evict}.`, ...commands, ...more];
}

function nextStep(changes: boolean, { program, settings, origin, isOtherMode }: Closing): string | undefined {
  // A note says what shows more.
  if (!changes || onlyObserves(settings)) return undefined;
  if (origin === 'cluster') {
    return isOtherMode
      ? 'apply the manifest or the values of this mode (docs/changing-modes.md)'
      : `${program} status shows how far the controller is`;
  }
  return origin === 'defaults'
    ? 'install archaware in the mode that fits (docs/install.md)'
    : 'run archaware with this configuration (docs/install.md)';
}
