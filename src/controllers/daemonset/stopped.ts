import type { Result } from '../../kube/control-loop.ts';
import { isRefusal } from '../../kube/errors.ts';
import { isTaintedFor } from '../../placement/nodes/cut-off.ts';
import { type Node, taintKind } from '../../placement/nodes/node.ts';
import { type DaemonSet, GUESSED, readDaemonSet, readRecord } from '../../placement/objects/daemonset.ts';
import { takenBack } from '../../placement/objects/rollout-record.ts';
import { isTakenBack } from '../../placement/rollout/taken-back.ts';
import { decideTemplate } from '../../placement/rollout/template.ts';
import type { Settings } from '../../placement/settings.ts';
import { regardingDaemonSet } from '../announce.ts';
import type { TemplateCase, TemplateParts } from './contract.ts';
import { type Change, send, wrote } from './template.ts';

/**
 * Does what is done about a DaemonSet that did not come back: it is reported, and the change is taken back where that helps. Returns
 * undefined for a DaemonSet that is not stopped.
 */
export async function actOnStop(parts: TemplateParts, at: TemplateCase): Promise<Result | undefined> {
  const { turn } = parts;
  const { key, daemonSet, record } = at;
  const verdict = turn.verdict(key);
  if (verdict?.kind !== 'stopped') return undefined;
  const { taints } = parts.settings();
  const wasTakenBack = isTakenBack(daemonSet);
  const state = { isMissing: verdict.missing, isTakenBack: wasTakenBack, isPaused: turn.isPaused() };
  const regarding = regardingDaemonSet(daemonSet);
  parts.announcer.report(record, regarding, {
    reason: 'RolloutStopped',
    action: 'Placing',
    note: stoppedNote(daemonSet, { ...state, stopsAll: turn.stopsAll().includes(key) }),
  });
  if (wasTakenBack || !verdict.missing || !canTakeBack(daemonSet, parts.nodes(), taints)) {
    return { outcome: 'held' };
  }
  const undo = turn.takesBack(key, daemonSet.generation + 1);
  try {
    const written = await send(parts, at, takeBack(daemonSet, parts.liveTaints(), taints));
    if (written.kind !== 'written') {
      undo();
      return { outcome: 'conflict' };
    }
    wrote(parts, at, readDaemonSet(written.object).resourceVersion);
  } catch (error) {
    // Without an answer it may be carried out yet; the next try shows that.
    if (!isRefusal(error)) throw error;
    undo();
    parts.noteRefusal(record, regarding, error);
    throw error;
  }
  return { outcome: 'written', detail: 'template as its author wrote it: the rollout did not come back' };
}

/**
 * Whether to take the change of a stopped rollout back. Nobody else has changed the DaemonSet since, else it would not be stopped. On
 * nodes that have the taint already its pods need the tolerations more than anything else.
 */
function canTakeBack(daemonSet: DaemonSet, nodes: Iterable<Node>, taints: Settings['taints']): boolean {
  const { tolerations, requires } = readRecord(daemonSet.recorded);
  return tolerations.length + requires.length > 0 && !isTaintedFor(daemonSet, nodes, taints);
}

/** Returns the change that takes archaware's tolerations out of a template, and records that they were taken back. */
function takeBack(daemonSet: DaemonSet, liveTaints: ReadonlySet<string>, taints: Settings['taints']): Change {
  const basis = readRecord(daemonSet.recorded).basis ?? GUESSED;
  const others = new Set([...liveTaints].filter((kind) => kind !== taintKind(taints)));
  const rollout = takenBack(daemonSet.generation + 1);
  const change = decideTemplate(daemonSet, [], others, { ...basis, rollout });
  if (change.kind === 'set') return change;
  const tolerations = daemonSet.template.tolerations ?? [];
  return { kind: 'set', tolerations, affinity: daemonSet.affinity, recorded: daemonSet.recorded, rolls: false };
}

/** Returns the note of the Event `RolloutStopped`. */
function stoppedNote(
  { desired, current, updated, available }: DaemonSet,
  state: {
    readonly isMissing: boolean;
    readonly isTakenBack: boolean;
    readonly stopsAll: boolean;
    readonly isPaused: boolean;
  },
): string {
  const { isMissing, isTakenBack, stopsAll, isPaused } = state;
  const what = `no progress for 5 minutes after archaware added tolerations to its template: ${updated} of ${desired} pods are updated, ${available} available, ${desired - current} missing`;
  const result = stopsAll
    ? 'archaware changes no other DaemonSet and taints no node until this one is back'
    : `archaware changes no other DaemonSet of this namespace until this one is back${isPaused ? ', and none at all for up to 30 minutes, because those of several namespaces did not come back' : ''}; nodes get the taint nevertheless, and pods there that lack the toleration do not come back once they end`;
  const cause = isMissing
    ? 'look for FailedCreate in its Events; a policy may refuse pods with the toleration'
    : 'look at why its pods do not get ready';
  if (!isTakenBack) return `${what}; ${result}; ${cause}`;
  return `the API server let no pod in with the tolerations that archaware added to its template, so archaware has taken them back: ${result}; allow the tolerations, then run kubectl rollout restart; or label the DaemonSet archaware.dev/ignore=true, if it may lose its pods on nodes with the taint`;
}
