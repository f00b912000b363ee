import { FIELD_MANAGER, TOLERATIONS_ANNOTATION } from '../names.ts';
import { decideTemplate, readDaemonSet, readRecorded } from './daemonset.ts';
import { type DecisionInput, decide } from './decide.ts';
import { difference } from './diff.ts';
import { type Namespace, skipDaemonSet } from './eligibility.ts';
import type { JsonObject } from './json.ts';
import type { Operation } from './patch.ts';
import { usesTaints, wantedTolerations } from './placing.ts';
import type { PodTemplate } from './pod.ts';
import { put, withAnnotation } from './pod-managed.ts';
import { settingsFor } from './policy.ts';
import type { Settings } from './settings.ts';
import { basisOf } from './standing.ts';
import type { Toleration } from './tolerations.ts';

export type DaemonSetAdmissionInput = Pick<DecisionInput, 'clusterArchitectures' | 'namesOf' | 'answerOf'> & {
  /** The DaemonSet as the API server sent it, every field kept. */
  readonly object: JsonObject;
  /** As it was before an update; undefined for a new one. */
  readonly before: JsonObject | undefined;
  /** `fieldManager` of the request. */
  readonly writer: string | undefined;
  readonly namespace: Pick<Namespace, 'name' | 'labels'>;
  /** The global ones; a policy's are found here. */
  readonly settings: Settings;
  /** Taints of ours that nodes carry, as `key:effect`. */
  readonly liveTaints: ReadonlySet<string>;
};

/**
 * The patch for a DaemonSet that is made or updated. A new one, and one whose images change, gets exactly its set where that
 * is known; any other update keeps the tolerations that are ours: on tainted nodes one that drops them takes every pod of it
 * away at once. Its own loop does the rest, so that only one DaemonSet at a time rolls because of us.
 */
export function admitDaemonSet(input: DaemonSetAdmissionInput): Operation[] {
  const { object, before, namespace } = input;
  // The loop and clean take tolerations away on purpose.
  if (input.writer === FIELD_MANAGER) return [];
  const daemonSet = readDaemonSet(object);
  const settings = settingsFor(input.settings, { namespace, labels: daemonSet.template.labels });
  if (!usesTaints(settings) || skipDaemonSet(daemonSet, namespace, settings) !== undefined) return [];
  const old = before && readDaemonSet(before);
  const recorded = daemonSet.recorded ?? old?.recorded;
  const isOther = old === undefined || whatDecides(old.template) !== whatDecides(daemonSet.template);
  const known = isOther ? knownTolerations(input, daemonSet.template, settings) : undefined;
  const basis = known && basisOf(daemonSet.template, settings);
  const decision = decideTemplate({ ...daemonSet, recorded }, known ?? readRecorded(recorded), input.liveTaints, basis);
  const tolerations = decision.kind === 'set' ? decision.tolerations : daemonSet.template.tolerations;
  const annotation = decision.kind === 'set' ? decision.recorded : recorded;
  const tolerating =
    tolerations === daemonSet.template.tolerations
      ? object
      : put(object, ['spec', 'template', 'spec', 'tolerations'], tolerations);
  if (annotation === daemonSet.recorded) return difference(object, tolerating);
  if (annotation === undefined) {
    return difference(object, put(tolerating, ['metadata', 'annotations', TOLERATIONS_ANNOTATION], undefined));
  }
  // Without the record they would be taken for its author's.
  const after = withAnnotation(tolerating, TOLERATIONS_ANNOTATION, annotation);
  return after === undefined ? [] : difference(object, after);
}

/** The tolerations for a template's set, where that is known now. */
function knownTolerations(
  input: DaemonSetAdmissionInput,
  template: PodTemplate,
  settings: Settings,
): Toleration[] | undefined {
  const decision = decide({ ...input, template, namespace: input.namespace.name, settings, waitedMs: 0 });
  if (decision.kind !== 'place' || decision.unknown.length > 0) return undefined;
  return wantedTolerations(settings, decision.architectures);
}

/** What of a template decides about its set: without it, an update changes nothing that we had given. */
function whatDecides({ images, os, hasRuntimeClass, statement, labels }: PodTemplate): string {
  return JSON.stringify([images, os, hasRuntimeClass, statement, labels]);
}
