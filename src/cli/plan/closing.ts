import type { JudgedWorkload } from '../../analysis/workloads/overview.ts';
import { onlyObserves } from '../../placement/placing.ts';
import { few } from '../../placement/reasons.ts';
import type { Settings } from '../../placement/settings.ts';
import { counted } from '../output.ts';
import type { Plan } from './plan-shape.ts';

/** What the closing lines depend on beside the plan. */
export type Closing = {
  readonly program: string;
  readonly settings: Settings;
  /** Where the configuration comes from, and whether `--placement.mode` or a variable changed the mode. */
  readonly origin: 'file' | 'cluster' | 'defaults' | 'unreadable';
  readonly isOtherMode: boolean;
};

/** Returns the last lines of a plan: what would change, which DaemonSets roll, what to do about pods on wrong nodes, and what next. */
export function closingLines(plan: Plan, closing: Closing): string[] {
  const { changes, newPods, workloads } = plan;
  const rolling = changes
    .filter(({ kind, patch }) => kind === 'DaemonSet' && patch.some(({ path }) => path.startsWith('/spec/')))
    .map(({ namespace = '', name }) => `${namespace}/${name}`);
  // Where the next pod would be Pending, a restart would end what perhaps still runs. A DaemonSet that rolls leaves its wrong nodes then.
  const wrong = workloads.filter(
    ({ kind, namespace, name, onWrongNode, pendingAtRestart, reach }) =>
      onWrongNode === true &&
      !pendingAtRestart &&
      reach !== 'nowhere' &&
      !(kind === 'DaemonSet' && rolling.includes(`${namespace}/${name}`)),
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
    ...(restarted.length === 0 ? [] : ['restart their workloads']),
    ...(others.length === 0 ? [] : [`delete ${few(named)}, and create again what has no owner`]),
  ].join('; ');
  const evict = settings.onWrongNode === 'evict' ? '' : '; or set pods.onWrongNode: evict';
  const many = wrong.length === 1 ? '1 workload has' : `${wrong.length} workloads have`;
  return [`${many} pods on a wrong node, which stay there: ${first}, ${how}${evict}.`, ...commands, ...more];
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
