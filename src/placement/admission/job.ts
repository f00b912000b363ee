import { isObject, listAt, objectAt, stringAt, stringsAt } from '../../kit/json.ts';
import { difference, type Operation } from '../../kit/json-patch.ts';
import { KUEUE_QUEUE } from '../../names.ts';
import { decide, type Knowledge } from '../decide.ts';
import { settingsFor, skipTemplate } from '../eligibility.ts';
import { readTemplate } from '../objects/pod.ts';
import { withAffinity } from '../patch/affinity.ts';
import { lacking } from '../patch/tolerations.ts';
import { placingFor } from '../placing.ts';
import { readTemplateSubject } from '../subject.ts';
import type { ReviewedObject } from './pod.ts';
import { put } from './record.ts';

/** Where the spec of its pods is in a Job. */
const POD_SPEC = ['spec', 'template', 'spec'] as const;

/**
 * Returns the patch for a new Job of a queue of Kueue: the tolerations and the required node affinity of its pods, so that Kueue
 * chooses a flavor whose nodes can run them. Kueue decides by the template, before there is a pod. Empty if an image is not known
 * (yet), or if the images have nothing in common: the review of each pod decides later, as for any other Job. Nothing is recorded:
 * the template says all, and a second review of the same Job adds nothing.
 *
 * Whether the Job is suspended does not matter. Kueue's own webhook suspends it, and the API server calls that webhook after ours.
 */
export function admitJob(input: Omit<Knowledge, 'waitedMs'> & ReviewedObject): Operation[] {
  const { object, namespace } = input;
  const { labels } = objectAt(object, 'metadata');
  if (!isObject(labels) || (stringAt(labels, KUEUE_QUEUE) ?? '') === '') return [];
  const template = objectAt(objectAt(object, 'spec'), 'template');
  const spec = objectAt(template, 'spec');
  // The author has chosen the node.
  if ((stringAt(spec, 'nodeName') ?? '') !== '') return [];
  const read = readTemplate(objectAt(template, 'metadata'), spec);
  const settings = settingsFor(input.settings, { namespace, labels: read.labels });
  const ofJob = { labels: stringsAt(objectAt(object, 'metadata'), 'labels') };
  const subject = readTemplateSubject(read, namespace, settings);
  if (subject.skipped !== undefined || skipTemplate(ofJob, namespace, settings) !== undefined) return [];
  const decision = decide(subject, { ...input, waitedMs: 0 });
  if (decision.kind !== 'place' || decision.unknown.length > 0 || decision.basis === 'released') return [];
  const { tolerations, affinity } = placingFor(decision, subject);
  const present = listAt(spec, 'tolerations') ?? [];
  const missing = lacking(present, tolerations);
  const tolerating =
    missing.length === 0 ? object : put(object, [...POD_SPEC, 'tolerations'], [...present, ...missing]);
  // No flavor is chosen by a preference. The review of each pod adds those.
  const required = affinity && withAffinity(spec, { required: affinity.required, preferred: [] });
  const after = required === undefined ? tolerating : put(tolerating, [...POD_SPEC, 'affinity'], required);
  return difference(object, after);
}
