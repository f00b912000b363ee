import { type Decision, decide, standing } from '../../placement/decide.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';
import type { Settings } from '../../placement/settings.ts';
import { overTemplate, standingTemplate } from '../../placement/standing.ts';
import type { Subject } from '../../placement/subject.ts';
import { HELD_AGAIN_MS, holds, waitedMs } from '../memory.ts';
import type { ObjectRecord } from '../object-record.ts';
import type { DaemonSetControllerOptions } from './contract.ts';

/** The DaemonSet of one reconciliation, with its namespace, settings and subject. */
export type TemplateCase = {
  readonly key: string;
  readonly daemonSet: DaemonSet;
  readonly record: ObjectRecord;
  readonly subject: Subject;
  readonly settings: Settings;
  readonly signal: AbortSignal;
};

type TemplateDecisionParts = Pick<
  DaemonSetControllerOptions,
  'images' | 'clusterArchitectures' | 'clock' | 'serviceAccountSecrets'
>;

/** Decides about the template of a DaemonSet. Images of an unchanged one are not looked up again at every event of its status. */
export async function decideForTemplate(parts: TemplateDecisionParts, at: TemplateCase): Promise<Decision> {
  const { daemonSet, record, subject, signal } = at;
  const { images, clock } = parts;
  if (holds(record, () => subject.key)) {
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
