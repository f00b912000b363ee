import type { Regarding } from '../../kube/events.ts';
import type { WriteResult } from '../../kube/writer.ts';
import { TOLERATIONS_ANNOTATION } from '../../names.ts';
import {
  type DaemonSet,
  GUESSED,
  type RecordBasis,
  readDaemonSet,
  readRecord,
} from '../../placement/objects/daemonset.ts';
import { awaited, rolloutOf, withRollout } from '../../placement/objects/rollout-record.ts';
import type { TemplateDecision } from '../../placement/rollout/template.ts';

/** A change of a template, or of its record alone. */
export type Change = Extract<TemplateDecision, { kind: 'set' }>;

/** Returns what the Event says about a change that another writer keeps undoing. */
export function contestedNote({ template }: DaemonSet, { tolerations, rolls }: Change): string {
  const again = 'three times in ten minutes';
  if (!rolls)
    return `another writer changed the annotation ${TOLERATIONS_ANNOTATION} ${again}: it must leave this annotation alone`;
  return tolerations.length < (template.tolerations ?? []).length
    ? `another writer added tolerations of archaware's taint to the template ${again}, and its images do not run there: remove them from the source of the template`
    : `another writer removed archaware's tolerations from the template ${again}: add them to the source of the template`;
}

/** Returns what two writes of the same change have in common, whichever rollout they begin. */
export function intentOf({ recorded }: Change): string {
  return withRollout(recorded, undefined) ?? '';
}

/** Returns a change whose record says which generation it leads to, and whether that rollout is waited for. */
export function begun({ generation, rolledOut, recorded }: DaemonSet, change: Change): Change {
  if (!change.rolls) return change;
  // A second write does not end the wait for the first one.
  const isAwaited = rolledOut || rolloutOf(readRecord(recorded).basis?.rollout, generation) === 'awaited';
  return { ...change, recorded: withRollout(change.recorded, isAwaited ? awaited(generation + 1) : undefined) };
}

/** Whether a write has changed the spec. A webhook may have taken the change out of it. */
export function hasRolled({ generation }: DaemonSet, written: WriteResult): boolean {
  return written.kind === 'written' && readDaemonSet(written.object).generation !== generation;
}

/** Returns the basis to record for a guess: that of the present record, if there is one, because a guess changes nothing there. */
export function guessBasis({ recorded }: DaemonSet): RecordBasis {
  return readRecord(recorded).basis ?? GUESSED;
}

/** Returns the object that Events about a DaemonSet name. */
export function regarding({ namespace, name, uid }: DaemonSet): Regarding {
  return { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace, name, uid };
}
