import type { Result } from '../../kube/control-loop.ts';
import { onlyObserves } from '../../placement/placing.ts';
import { createAnnouncer, problemsOf, secretProblems } from '../announce.ts';
import { createContention } from '../contention.ts';
import { answered, type Memory } from '../memory.ts';
import { createRefusals } from '../refusals.ts';
import { createAct, WAITS_FOR_TURN } from './act.ts';
import { createTemplateWriter, intentOf, regarding } from './change.ts';
import type { DaemonSetControllerOptions } from './contract.ts';
import { createOwnership } from './give-back.ts';
import { createLostRecords } from './lost-records.ts';
import type { RolloutTurn } from './rollout.ts';
import { createStops } from './stopped.ts';
import { decideForTemplate, type TemplateCase } from './template-decision.ts';
import type { Unserved } from './unserved.ts';

type ServeParts = DaemonSetControllerOptions & {
  readonly memory: Memory;
  readonly turn: RolloutTurn;
  readonly unserved: Unserved;
};

/** Serves templates: repairs the record, decides, writes, and gives the list of tolerations back to its author. */
type Serve = {
  serve(at: TemplateCase): Promise<Result>;
  contested(): number;
};

/** Creates the functions that serve the templates that archaware does not skip. */
export function createServe(parts: ServeParts): Serve {
  const { daemonSets, images, write, clock, onRefused, memory, turn, unserved } = parts;
  const announcer = createAnnouncer(parts.events, clock);
  const contention = createContention(announcer, clock);
  const noteRefusal = createRefusals({ ...parts, announcer });
  const ownership = createOwnership({ write, clock, onRefused });
  const writer = createTemplateWriter({ ...parts, contention, noteRefusal });
  const act = createAct({ ...parts, ownership, writer });
  const lost = createLostRecords({
    ...{ write, clock, contestedMs: writer.contestedMs, onRefused },
    onWritten: (record, change) => contention.wrote(record, intentOf(change)),
  });
  const actOnStop = createStops({ ...parts, announcer, noteRefusal });

  async function serve(at: TemplateCase): Promise<Result> {
    const { key, daemonSet, record, settings, signal } = at;
    if (onlyObserves(settings)) return decideAndWrite(at);
    const wrote = (version: string) => answered(record, version, daemonSets.get(key), clock.monotonic());
    const found = await lost.write(record, daemonSet, settings, signal);
    if (found?.kind === 'conflict') return { outcome: 'conflict' };
    if (found?.kind === 'written') {
      wrote(found.resourceVersion);
      return { outcome: 'written', detail: 'recorded its tolerations again' };
    }
    const result = await decideAndWrite(found === undefined ? at : { ...at, daemonSet: found.daemonSet });
    if (result === WAITS_FOR_TURN || parts.givesBack === false) return result;
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
      if (!turn.isUnproven(key)) parts.onDecided(key);
      // Once its author changes it, it is decided again. Until then a taint would cut it off.
      unserved.lacks(key, { architectures: undefined, why: 'in-line', answer: '' });
      return stopped;
    }
    const decision = await decideForTemplate(parts, at);
    const { namespace } = daemonSet;
    // The controller removes extra tolerations from templates, so no Event reports them as stale.
    const template = { ...daemonSet.template, tolerations: undefined };
    for (const problem of [
      ...problemsOf(template, namespace, decision, settings),
      ...secretProblems(images.unusableSecrets(namespace, template.pullSecrets)),
    ]) {
      announcer.report(record, regarding(daemonSet), problem);
    }
    if (decision.kind === 'wait' && decision.failed.length > 0) parts.onDecided(key);
    const result = await act(at, decision);
    const isDone = result.outcome !== 'conflict' && result.outcome !== 'waiting';
    if (isDone && !turn.isUnproven(key)) parts.onDecided(key);
    return result;
  }

  return { serve, contested: () => contention.count(memory.all.values()) };
}
