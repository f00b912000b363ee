import { type JsonObject, objectAt } from '../../kit/json.ts';
import { difference, type Operation } from '../../kit/json-patch.ts';
import { FIELD_MANAGER, TOLERATIONS_ANNOTATION } from '../../names.ts';
import { decide, type Knowledge, type Placement } from '../decide.ts';
import { settingsFor } from '../eligibility.ts';
import { authoredTemplate, readDaemonSet } from '../objects/daemonset.ts';
import { readRecord } from '../objects/template-record.ts';
import { onlyObserves, recordBasis, templateRequires, wantedTolerations } from '../placing.ts';
import { carriedTolerations, decideTemplate } from '../rollout/template.ts';
import { readDaemonSetSubject, type Subject, type SubjectNamespace } from '../subject.ts';
import type { ReviewedObject } from './pod.ts';
import { put, withAnnotation } from './record.ts';

export type DaemonSetAdmissionInput = Omit<Knowledge, 'waitedMs'> &
  Omit<ReviewedObject, 'namespace'> & {
    readonly namespace: Pick<SubjectNamespace, 'name' | 'labels'>;
    /** The DaemonSet before an update; undefined for a new one. */
    readonly before: JsonObject | undefined;
    /** The `fieldManager` of the request. */
    readonly writer: string | undefined;
    /** The taints that nodes have, as `key:effect`. */
    readonly liveTaints: ReadonlySet<string>;
  };

/**
 * Returns the patch for a DaemonSet that is created or updated. A new DaemonSet, or one whose author changes its template, gets exactly the
 * tolerations of its images if these are known. Any other update keeps archaware's tolerations: an update that drops them would remove all
 * its pods from tainted nodes at once. The DaemonSet controller of archaware does the rest, one DaemonSet at a time.
 */
export function admitDaemonSet(input: DaemonSetAdmissionInput): Operation[] {
  const { object, before, namespace } = input;
  // The DaemonSet controller and `clean` remove tolerations on purpose.
  if (input.writer === FIELD_MANAGER) return [];
  const daemonSet = readDaemonSet(object);
  const settings = settingsFor(input.settings, { namespace, labels: daemonSet.template.labels });
  if (onlyObserves(settings)) return [];
  const old = before && readDaemonSet(before);
  const recorded = daemonSet.recorded ?? old?.recorded;
  const now = { ...daemonSet, recorded };
  const authored = authoredTemplate(
    objectAt(objectAt(object, 'spec'), 'template'),
    readRecord(recorded),
    now.isListApplied,
  );
  const isSame = old?.authored === authored;
  const subject = readDaemonSetSubject({ ...daemonSet, authored }, namespace, settings);
  if (subject.skipped !== undefined) return [];
  const known = isSame ? undefined : knownPlacement(input, subject);
  const basis = known && recordBasis(subject);
  // An undo may bring tolerations of archaware back. Until its images are known, they stay.
  const present = isSame ? [] : carriedTolerations(now);
  const record = readRecord(recorded);
  const wanted = known ? wantedTolerations(settings, known.architectures) : [...record.tolerations, ...present];
  const requires = known ? templateRequires(settings, known) : record.requires;
  const decision = decideTemplate(now, wanted, input.liveTaints, basis, requires);
  const tolerations = decision.kind === 'set' ? decision.tolerations : daemonSet.template.tolerations;
  const annotation = decision.kind === 'set' ? decision.recorded : recorded;
  const affinity = decision.kind === 'set' ? decision.affinity : daemonSet.affinity;
  const spec = ['spec', 'template', 'spec'];
  const narrowed = affinity === daemonSet.affinity ? object : put(object, [...spec, 'affinity'], affinity);
  const tolerating =
    tolerations === daemonSet.template.tolerations ? narrowed : put(narrowed, [...spec, 'tolerations'], tolerations);
  if (annotation === daemonSet.recorded) return difference(object, tolerating);
  if (annotation === undefined) {
    return difference(object, put(tolerating, ['metadata', 'annotations', TOLERATIONS_ANNOTATION], undefined));
  }
  // Without the record, archaware's tolerations would look like the author's.
  const after = withAnnotation(tolerating, TOLERATIONS_ANNOTATION, annotation);
  return after === undefined ? [] : difference(object, after);
}

/** Returns the placement for a template if all its images are known now, else undefined. */
function knownPlacement(input: DaemonSetAdmissionInput, subject: Subject): Placement | undefined {
  const decision = decide(subject, { ...input, waitedMs: 0 });
  return decision.kind !== 'place' || decision.unknown.length > 0 ? undefined : decision;
}
