import type { Result } from '../../kube/control-loop.ts';
import { isRefusal } from '../../kube/errors.ts';
import type { WriteResult } from '../../kube/writer.ts';
import { ARCHITECTURE_LABEL } from '../../names.ts';
import type { Decision, Placement } from '../../placement/decide.ts';
import { readDaemonSet } from '../../placement/objects/daemonset.ts';
import { isIn } from '../../placement/patch/affinity.ts';
import { onlyObserves, placingText, templateRequires, wantedTolerations } from '../../placement/placing.ts';
import { decisionNote } from '../../placement/reasons.ts';
import type { Want } from '../../placement/rollout/brake.ts';
import { decideTemplate } from '../../placement/rollout/template.ts';
import { recordBasis } from '../../placement/standing.ts';
import { answered, HELD_AGAIN_MS, type Memory, OPEN_AGAIN_MS } from '../memory.ts';
import { NO_ROOM_AGAIN_MS } from '../waiting.ts';
import { guessBasis, type TemplateWriter } from './change.ts';
import type { DaemonSetControllerOptions } from './contract.ts';
import type { Ownership } from './give-back.ts';
import type { RolloutTurn } from './rollout.ts';
import type { TemplateCase } from './template-decision.ts';
import type { Unserved } from './unserved.ts';

type ActParts = Pick<DaemonSetControllerOptions, 'daemonSets' | 'liveTaints' | 'isPaced' | 'clock'> & {
  readonly memory: Memory;
  readonly ownership: Ownership;
  readonly turn: RolloutTurn;
  readonly unserved: Unserved;
  readonly writer: TemplateWriter;
};

/** How often a DaemonSet in line is checked for its turn. A change of any DaemonSet also leads to a check of the next one. */
export const TURN_AGAIN_MS = 15_000;
export const WAITS_FOR_TURN: Result = { outcome: 'waiting', againInMs: TURN_AGAIN_MS };

/** Creates the functions that carry out the decision about a template and remember it. */
export function createAct(parts: ActParts): (at: TemplateCase, decision: Decision) => Promise<Result> | Result {
  const { memory, turn, unserved, writer, clock } = parts;

  function keep({ key, record, subject, settings }: TemplateCase, decision: Decision): boolean {
    return memory.remember(key, record, { subjectKey: subject.key, settings }, decision);
  }

  async function place(at: TemplateCase, decision: Placement): Promise<Result> {
    const { key, daemonSet, record, subject, settings } = at;
    const againInMs = decision.unknown.length > 0 ? OPEN_AGAIN_MS : undefined;
    const wanted = wantedTolerations(settings, decision.architectures);
    const basis = decision.unknown.length > 0 ? guessBasis(daemonSet) : recordBasis(subject);
    const requires = templateRequires(settings, decision);
    const change = decideTemplate(daemonSet, wanted, parts.liveTaints(), basis, requires);
    const lacks = (why: Want, answer = '') =>
      unserved.lacks(key, { architectures: wanted.map(({ value }) => value), why, answer });
    if (change.kind === 'unchanged') {
      unserved.served(key);
      keep(at, decision);
      return { outcome: 'unchanged', againInMs };
    }
    const waitMs = writer.contestedMs(record, daemonSet, change);
    if (waitMs > 0) {
      lacks('contested');
      return { outcome: 'conflict', againInMs: waitMs };
    }
    if (change.rolls && parts.isPaced && !turn.take(key, daemonSet)) {
      keep(at, decision);
      lacks('in-line');
      return WAITS_FOR_TURN;
    }
    let written: WriteResult;
    try {
      written = await writer.write(at, change);
    } catch (error) {
      if (isRefusal(error)) lacks('refused', error.message);
      else lacks('failed');
      throw error;
    }
    if (written.kind === 'conflict') {
      lacks('failed');
      return { outcome: 'conflict' };
    }
    if (written.kind === 'gone') return { outcome: 'unchanged' };
    // Only the watch shows whether a webhook took the tolerations out of the same write.
    if (change.rolls && written.kind === 'written') lacks('failed');
    else unserved.served(key);
    keep(at, decision);
    if (written.kind === 'written' && !(await takeOver(at, written.object))) return { outcome: 'conflict' };
    const required = requires.length > 0 ? [isIn(ARCHITECTURE_LABEL, requires)] : [];
    const detail = `template ${placingText({ tolerations: wanted, affinity: { required, preferred: [] } })}`;
    return { outcome: 'written', againInMs, detail };
  }

  /** Takes the answer to a write over, and gives the list of tolerations back. False if the write changed nothing. */
  async function takeOver(
    { key, daemonSet, record, signal }: TemplateCase,
    object: Parameters<typeof readDaemonSet>[0],
  ): Promise<boolean> {
    const answer = readDaemonSet(object);
    if (answer.resourceVersion === daemonSet.resourceVersion) return false;
    const resourceVersion = await parts.ownership.afterWrite(record, answer, signal);
    answered(record, resourceVersion, parts.daemonSets.get(key), clock.monotonic());
    return true;
  }

  return (at, decision) => {
    const { key, daemonSet, settings } = at;
    if (decision.kind !== 'place' || onlyObserves(settings)) unserved.served(key);
    switch (decision.kind) {
      case 'wait': {
        const isReported = keep(at, decision);
        return { outcome: 'waiting', againInMs: isReported ? decision.againInMs : NO_ROOM_AGAIN_MS };
      }
      case 'hold': {
        keep(at, decision);
        const detail = decisionNote(decision, daemonSet.template.os, settings.schedulable);
        return { outcome: 'held', againInMs: HELD_AGAIN_MS, detail };
      }
      case 'place':
        if (!onlyObserves(settings)) return place(at, decision);
        keep(at, decision);
        return { outcome: 'unchanged', againInMs: decision.unknown.length > 0 ? OPEN_AGAIN_MS : undefined };
      default:
        return decision satisfies never;
    }
  };
}
