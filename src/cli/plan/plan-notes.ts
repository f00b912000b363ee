import { otherDaemonSetNote, untoleratingDaemonSets } from '../../analysis/workloads/other-daemon-sets.ts';
import type { Config } from '../../config/schema.ts';
import { loopsThatRun } from '../../config/settings.ts';
import type { Loops } from '../../controllers/loops/loops.ts';
import { decidedOf } from '../../controllers/memory.ts';
import type { Watches } from '../../controllers/watches.ts';
import { untaintedPoolsNote } from '../../placement/nodes/pools.ts';
import { nodesWithUnmanagedTaints } from '../../placement/nodes/unmanaged.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';
import { onlyObserves } from '../../placement/placing.ts';
import { whyNothingIsPublished } from '../../placement/publish/known-images.ts';
import { skipNote } from '../../placement/reasons.ts';
import { takenBackNote, unrecordedNote } from '../../placement/rollout/template.ts';
import type { Settings } from '../../placement/settings.ts';
import type { PoolProblem } from '../survey/survey.ts';
import { findLeftovers, leftoverNote } from './left-behind.ts';
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
  const { settings, watches, ignored, isWide, isWhole, pools = [] } = planned;
  const unrecorded = unrecordedNote(watches.daemonSets.store.values(), settings.taints);
  const back = takenBackNote(served(planned));
  return [
    ...(unrecorded === undefined ? [] : [unrecorded]),
    ...(back === undefined ? [] : [back]),
    ...leftAloneNotes(ignored, isWide),
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
  const left = findLeftovers(nodes(), runs('daemonsets') ? served(planned) : undefined, settings);
  return left === undefined ? notes : [...notes, leftoverNote(left, settings, runs('nodes'))];
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
function otherDaemonSetNotes({ watches, loops, isWide }: Planned): string[] {
  const decided = [...decidedOf(loops.podStates)].flatMap(([key, { decision, settings }]) => {
    const pod = watches.pods.store.get(key);
    return pod === undefined || onlyObserves(settings) ? [] : { pod, decision, settings };
  });
  const lacking = untoleratingDaemonSets(decided);
  const shown = isWide ? lacking : lacking.slice(0, MOST_NOTED);
  const more = lacking.length - shown.length;
  return [...shown.map(otherDaemonSetNote), ...(more > 0 ? [`${more} more of such DaemonSets (--wide)`] : [])];
}

/** Returns the notes about workloads whose topology spread counts nodes that their taint keeps them off. */
function spreadNotes({ workloads, isWide }: Planned): string[] {
  const found = workloads.flatMap(({ kind, namespace, name, spread }) =>
    spread === undefined ? [] : `${kind} ${namespace}/${name}: ${spread}`,
  );
  const shown = isWide ? found : found.slice(0, MOST_NOTED);
  const more = found.length - shown.length;
  return [...shown, ...(more > 0 ? [`${more} more workloads with such a topology spread (--wide)`] : [])];
}

/** Returns the notes about objects that are too large to be served. */
function tooLargeNotes({ watches, loops, isWide }: Planned): string[] {
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
  const shown = isWide ? found : found.slice(0, MOST_NOTED);
  const more = found.length - shown.length;
  return [...shown, ...(more > 0 ? [`${more} more objects that are too large (--wide)`] : [])];
}

function leftAloneNotes(ignored: Plan['ignored'], isWide: boolean): string[] {
  if (ignored.length === 0) return [];
  const names = ignored.map(({ namespace, name }) => `${namespace}/${name}`);
  const shown = isWide ? names : names.slice(0, MOST_NOTED);
  const more = names.length > shown.length ? ` and ${names.length - shown.length} more (--wide)` : '';
  return [
    `${names.length} pod(s) are ignored by archaware and need their own toleration on tainted nodes: ${shown.join(', ')}${more}`,
  ];
}
