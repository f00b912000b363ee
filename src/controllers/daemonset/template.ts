import type { Result } from '../../kube/control-loop.ts';
import { isRefusal } from '../../kube/errors.ts';
import type { Store } from '../../kube/watch/collection.ts';
import type { WriteResult } from '../../kube/writer.ts';
import { ARCHITECTURE_LABEL, TOLERATIONS_ANNOTATION } from '../../names.ts';
import { type Decision, decide, type Placement, standing } from '../../placement/decide.ts';
import type { Node } from '../../placement/nodes/node.ts';
import { type DaemonSet, readDaemonSet } from '../../placement/objects/daemonset.ts';
import { awaited, GUESSED, readRecord, rolloutOf, withRollout } from '../../placement/objects/template-record.ts';
import { isIn } from '../../placement/patch/affinity.ts';
import { daemonSetPatch } from '../../placement/patch/patch.ts';
import {
  onlyObserves,
  overTemplate,
  placingText,
  recordBasis,
  standingTemplate,
  templateRequires,
  wantedTolerations,
} from '../../placement/placing.ts';
import type { Want } from '../../placement/rollout/brake.ts';
import {
  decideTemplate,
  foundAgain,
  lostTolerations,
  type TemplateDecision,
} from '../../placement/rollout/template.ts';
import type { Settings } from '../../placement/settings.ts';
import { keyOf, type Subject } from '../../placement/subject.ts';
import { regardingDaemonSet } from '../announce.ts';
import type { PlacingOptions } from '../controller-options.ts';
import {
  answered,
  HELD_AGAIN_MS,
  holds,
  type Memory,
  note,
  notPlaced,
  type ObjectRecord,
  OPEN_AGAIN_MS,
  waitedMs,
} from '../memory.ts';
import type { Notices } from '../refusals.ts';
import { giveBackAfterWrite } from './give-back.ts';
import { giveTurnBack, type RolloutTurn, takeTurn } from './rollout.ts';
import { served, type Unserved } from './unserved.ts';

/** What the DaemonSet controller works with. */
export type DaemonSetControllerOptions = PlacingOptions & {
  readonly daemonSets: Store<DaemonSet>;
  /** Returns the taints that nodes have, as `key:effect`. */
  readonly liveTaints: () => ReadonlySet<string>;
  /** Returns the pull secrets that the API server adds to pods of this service account. */
  readonly serviceAccountSecrets: (namespace: string, name: string, signal: AbortSignal) => Promise<readonly string[]>;
  /** Reads a DaemonSet from the API server, where the watch may be behind; undefined if it is gone. */
  readonly fetchDaemonSet: (known: DaemonSet, signal: AbortSignal) => Promise<DaemonSet | undefined>;
  readonly nodes: () => Iterable<Node>;
  /** Called when a DaemonSet that lacked tolerations has them, and when rollouts are stopped or go on: nodes may wait for that. */
  readonly onServed: () => void;
  /** False for `plan`: lists of tolerations that archaware owns are not given back. Default: true. */
  readonly givesBack?: boolean;
};

/** What the steps of a reconciliation share: the options, and what the controller knows. */
export type TemplateParts = DaemonSetControllerOptions &
  Notices & {
    readonly memory: Memory;
    readonly turn: RolloutTurn;
    readonly unserved: Unserved;
    /** Whether rollouts were stopped after the last reconciliation, and whether nodes stayed without the taint because of one. */
    wasStopping: boolean;
    wasHolding: boolean;
  };

/** The DaemonSet of one reconciliation, with its namespace, settings and subject. */
export type TemplateCase = {
  readonly key: string;
  readonly daemonSet: DaemonSet;
  readonly record: ObjectRecord;
  readonly subject: Subject;
  readonly settings: Settings;
  readonly signal: AbortSignal;
};

/** How often a DaemonSet in line is checked for its turn. A change of any DaemonSet also leads to a check of the next one. */
export const TURN_AGAIN_MS = 15_000;
export const WAITS_FOR_TURN: Result = { outcome: 'waiting', againInMs: TURN_AGAIN_MS };

/** Decides about the template of a DaemonSet. Images of an unchanged one are not looked up again at every event of its status. */
export async function decideForTemplate(parts: TemplateParts, at: TemplateCase): Promise<Decision> {
  const { daemonSet, record, subject, signal } = at;
  const { images, clock } = parts;
  if (holds(record, () => keyOf(subject))) {
    const { decision } = record;
    const isDue = decision.kind === 'hold' && clock.monotonic() - record.at >= HELD_AGAIN_MS;
    const follows = decision.kind === 'place' && decision.followsCluster;
    if (decision.kind !== 'skip' && !isDue && !follows) return decision;
  }
  // A template that its author has changed since is decided from what is known now, not from the record.
  const placed =
    record.decision === undefined ? standingTemplate(subject, daemonSet.recorded, images.namesOf) : undefined;
  if (placed !== undefined) return standing(placed, undefined);
  const { template, namespace, authored, recorded } = daemonSet;
  const own = template.pullSecrets;
  const secrets =
    own.length > 0 ? own : await parts.serviceAccountSecrets(namespace, template.serviceAccountName, signal);
  const decision = decide(subject, {
    clusterArchitectures: parts.clusterArchitectures(),
    namesOf: images.namesOf,
    answerOf: (image) => images.answer(image, namespace, secrets),
    waitedMs: waitedMs(record, authored, clock.monotonic()),
  });
  return decision.kind === 'place' ? overTemplate(decision, recorded, subject.settings) : decision;
}

function remember({ memory }: TemplateParts, at: TemplateCase, decision: Decision): boolean {
  return memory.remember(at.key, at.record, { subjectKey: keyOf(at.subject), settings: at.settings }, decision);
}

/** Carries out the decision about a template and remembers it. */
export async function carryOut(parts: TemplateParts, at: TemplateCase, decision: Decision): Promise<Result> {
  const isPlaced = decision.kind === 'place';
  if (isPlaced && !onlyObserves(at.settings)) return place(parts, at, decision);
  served(parts, at.key);
  const hasRoom = remember(parts, at, decision);
  if (!isPlaced) return notPlaced(decision, at.daemonSet.template, at.settings, hasRoom);
  return { outcome: 'unchanged', againInMs: decision.unknown.length > 0 ? OPEN_AGAIN_MS : undefined };
}

async function place(parts: TemplateParts, at: TemplateCase, decision: Placement): Promise<Result> {
  const { key, daemonSet, subject, settings } = at;
  const { turn } = parts;
  const againInMs = decision.unknown.length > 0 ? OPEN_AGAIN_MS : undefined;
  const wanted = wantedTolerations(settings, decision.architectures);
  // A guess changes nothing in the record.
  const guessed = () => readRecord(daemonSet.recorded).basis ?? GUESSED;
  const basis = decision.unknown.length > 0 ? guessed() : recordBasis(subject);
  const requires = templateRequires(settings, decision);
  const change = decideTemplate(daemonSet, wanted, parts.liveTaints(), basis, requires);
  const lacks = (why: Want, answer = '') =>
    void parts.unserved.set(key, { architectures: wanted.map(({ value }) => value), why, answer });
  if (change.kind === 'unchanged') {
    served(parts, key);
    remember(parts, at, decision);
    return { outcome: 'unchanged', againInMs };
  }
  const waitMs = contestedMs(parts, at, change);
  if (waitMs > 0) {
    lacks('contested');
    return { outcome: 'conflict', againInMs: waitMs };
  }
  if (change.rolls && parts.isPaced && !takeTurn(turn, key, daemonSet)) {
    remember(parts, at, decision);
    lacks('in-line');
    return WAITS_FOR_TURN;
  }
  const written = await write(parts, at, change).catch((error: unknown) => {
    if (isRefusal(error)) lacks('refused', error.message);
    else lacks('failed');
    throw error;
  });
  if (written.kind === 'conflict') {
    lacks('failed');
    return { outcome: 'conflict' };
  }
  if (written.kind === 'gone') return { outcome: 'unchanged' };
  // Only the watch shows whether a webhook took the tolerations out of the same write.
  if (change.rolls && written.kind === 'written') lacks('failed');
  else served(parts, key);
  remember(parts, at, decision);
  if (written.kind === 'written') {
    const answer = readDaemonSet(written.object);
    // The write changed nothing.
    if (answer.resourceVersion === daemonSet.resourceVersion) return { outcome: 'conflict' };
    wrote(parts, at, await giveBackAfterWrite(parts, at.record, answer, at.signal));
  }
  const required = requires.length > 0 ? [isIn(ARCHITECTURE_LABEL, requires)] : [];
  const detail = `template ${placingText({ tolerations: wanted, affinity: { required, preferred: [] } })}`;
  return { outcome: 'written', againInMs, detail };
}

/** Records the version that a write led to: until the watch shows it, the DaemonSet is not decided again. */
export function wrote({ daemonSets, clock }: TemplateParts, { key, record }: TemplateCase, version: string): void {
  answered(record, version, daemonSets.get(key), clock.monotonic());
}

/** A change of a template, or of its record alone. */
export type Change = Extract<TemplateDecision, { kind: 'set' }>;

/** Sends a change of a template. */
export function send({ write }: TemplateParts, { daemonSet, signal }: TemplateCase, change: Change) {
  const { namespace, name } = daemonSet;
  const action = readRecord(change.recorded).requires.length > 0 ? 'require' : 'tolerate';
  return write({ kind: 'DaemonSet', namespace, name, action }, daemonSetPatch(daemonSet, change), signal);
}

/** Returns what two writes of the same change have in common, whichever rollout they begin. */
function intentOf({ recorded }: Change): string {
  return withRollout(recorded, undefined) ?? '';
}

/** Returns the milliseconds to leave a DaemonSet alone because another writer keeps undoing this change; 0: write. */
function contestedMs({ contention }: TemplateParts, { daemonSet, record }: TemplateCase, change: Change): number {
  const said = { action: 'Placing', note: contestedNote(daemonSet, change) };
  return contention.waitMs(record, intentOf(change), regardingDaemonSet(daemonSet), said);
}

function contestedNote({ template }: DaemonSet, { tolerations, rolls }: Change): string {
  const again = 'three times in ten minutes';
  if (!rolls)
    return `another writer changed the annotation ${TOLERATIONS_ANNOTATION} ${again}: it must leave this annotation alone`;
  return tolerations.length < (template.tolerations ?? []).length
    ? `another writer added tolerations of archaware's taint to the template ${again}, for another key or architectures than it should have: remove them from the source of the template, or end a second installation`
    : `another writer removed archaware's tolerations from the template ${again}: add them to the source of the template`;
}

/**
 * Writes a change. If the DaemonSet does not roll by it after all, its turn goes to the next one: at once, or (where the write may have
 * been carried out, or the DaemonSet may roll already) after it was read, because a cache may be stale, the turn may not. Throws the API
 * server's refusal.
 */
async function write(parts: TemplateParts, at: TemplateCase, change: Change): Promise<WriteResult> {
  const { key, daemonSet, record, signal } = at;
  const passOn = async (isSure: boolean) => {
    // A change of the record alone did not take the turn.
    if (!change.rolls) return;
    const read = isSure ? undefined : await parts.fetchDaemonSet(daemonSet, signal);
    giveTurnBack(parts.turn, key, read);
  };
  const written = await send(parts, at, begun(daemonSet, change)).catch(async (error: unknown) => {
    // Without an answer the turn stays: the next try, or the watch, shows what became of the write.
    if (!isRefusal(error)) throw error;
    parts.noteRefusal(record, regardingDaemonSet(daemonSet), error);
    await passOn(error.status < 500);
    throw error;
  });
  // A webhook may have taken the change out of the spec.
  const hasRolled = written.kind === 'written' && readDaemonSet(written.object).generation !== daemonSet.generation;
  if (!hasRolled) await passOn(written.kind !== 'conflict');
  if (written.kind === 'written') parts.contention.wrote(record, intentOf(change));
  if (written.kind !== 'conflict') note(record, 'refused', undefined);
  return written;
}

/** Returns a change whose record says which generation it leads to, and whether that rollout is waited for. */
function begun({ generation, rolledOut, recorded }: DaemonSet, change: Change): Change {
  if (!change.rolls) return change;
  // A second write does not end the wait for the first one.
  const isAwaited = rolledOut || rolloutOf(readRecord(recorded).basis?.rollout, generation) === 'awaited';
  return { ...change, recorded: withRollout(change.recorded, isAwaited ? awaited(generation + 1) : undefined) };
}

/** How long a refused record is left alone. The policies of an earlier version refuse it. */
const REFUSED_MS = 10 * 60_000;

/**
 * Writes the record of a template again that has archaware's tolerations and whose record somebody removed. Returns the result if that is
 * all for now, else the DaemonSet to decide (in `plan`, as it would be), and when to try again to write a record that cannot be written now.
 */
export async function recordAgain(
  parts: TemplateParts,
  at: TemplateCase,
): Promise<Result | { readonly daemonSet: DaemonSet; readonly againInMs?: number }> {
  const { daemonSet, record } = at;
  const { taints } = at.settings;
  const { clock } = parts;
  const lost = lostTolerations(daemonSet, taints);
  if (lost.length === 0) {
    note(record, 'unrecordedUntil', undefined);
    return { daemonSet };
  }
  const change = foundAgain(daemonSet, lost, taints);
  const refusedMs = (record.notes?.unrecordedUntil ?? 0) - clock.monotonic();
  const againInMs = refusedMs > 0 ? refusedMs : contestedMs(parts, at, change);
  if (againInMs > 0) return { daemonSet, againInMs };
  try {
    const written = await send(parts, at, change);
    switch (written.kind) {
      case 'conflict':
        return { outcome: 'conflict' };
      case 'gone':
        return { daemonSet };
      case 'recorded':
        return { daemonSet: { ...daemonSet, recorded: change.recorded } };
      case 'written':
        parts.contention.wrote(record, intentOf(change));
        wrote(parts, at, readDaemonSet(written.object).resourceVersion);
        return { outcome: 'written', detail: 'recorded its tolerations again' };
      default:
        return written satisfies never;
    }
  } catch (error) {
    if (!isRefusal(error)) throw error;
    // The component without-taints takes the right away on purpose.
    if (error.status !== 403) parts.onRefused?.();
    note(record, 'unrecordedUntil', clock.monotonic() + REFUSED_MS);
    return { daemonSet, againInMs: REFUSED_MS };
  }
}
