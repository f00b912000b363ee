import { isSame, type JsonObject, objectAt, stringsAt } from '../../kit/json.ts';
import { printable } from '../../kit/printable.ts';
import type { Knowledge } from '../decide.ts';
import { settingsFor, skipTemplate } from '../eligibility.ts';
import { intersect, type NarrowedImage, narrow, onlySchedulable } from '../images.ts';
import { readTemplate } from '../objects/pod.ts';
import { withinText } from '../reasons.ts';
import { readTemplateSubject, type Subject } from '../subject.ts';
import type { ReviewedObject } from './pod.ts';

export type WarningsInput = Pick<Knowledge, 'clusterArchitectures' | 'namesOf' | 'answerOf'> &
  Pick<ReviewedObject, 'namespace' | 'settings'> & {
    /** The `metadata` of the pod, or of the object that makes pods. */
    readonly metadata: JsonObject;
    /** The template of its pods, or the pod itself; `before`: that before an update. */
    readonly template: JsonObject;
    readonly before: JsonObject | undefined;
  };

/** The API server cuts what is longer than 4 KiB in all, and clients print each one. */
const MOST_WARNINGS = 3;
const MOST_OF_ONE = 256;
const MOST_OF_NAME = 100;

const WITHOUT_COMMON = { hold: 'be held', release: 'run on nodes of any architecture', reject: 'be rejected' } as const;

/**
 * Returns what the author of a workload should know of its architectures: at most three sentences, from what is known already. Nothing
 * for an update that changes neither images nor what its pods ask for.
 */
export function warningsFor(input: WarningsInput): string[] {
  const { settings, namespace } = input;
  const read = (template: JsonObject) => {
    const found = readTemplate(objectAt(template, 'metadata'), objectAt(template, 'spec'));
    return readTemplateSubject(found, namespace, settingsFor(settings, { namespace, labels: found.labels }));
  };
  const subject = read(input.template);
  const before = input.before && read(input.before);
  const own = { labels: stringsAt(input.metadata, 'labels') };
  if (subject.skipped !== undefined || skipTemplate(own, namespace, settings) !== undefined) return [];
  // Its author has said where it runs.
  if (subject.statement !== undefined || (before !== undefined && isSame(before, subject))) return [];
  return sentences(subject, before, input)
    .slice(0, MOST_WARNINGS)
    .map((text) => printable(text, MOST_OF_ONE));
}

function sentences(subject: Subject, before: Subject | undefined, input: WarningsInput): string[] {
  const { asked, settings } = subject;
  const sets = setsOf(narrow(subject, input));
  const common = intersect(sets.map(({ architectures }) => architectures));
  if (common === undefined) return [];
  if (onlySchedulable(common, settings).length === 0) {
    const { schedulable, noCommonArchitecture } = settings;
    const isReleased = noCommonArchitecture === 'release' && schedulable.length > 0;
    const then = isReleased ? `run on ${schedulable.join(' and ')} nodes` : WITHOUT_COMMON[noCommonArchitecture];
    const each = sets.map(({ image, architectures }) => `${image}: ${architectures.join(', ') || 'none'}`).join('; ');
    return [`the images have no architecture in common${withinText(schedulable)}, so the pods will ${then} (${each})`];
  }
  const lacking =
    asked && sets.find(({ architectures }) => !architectures.some((one) => asked.architectures.includes(one)));
  if (lacking !== undefined) {
    const { image, architectures } = lacking;
    return [`the pods ask for ${asked?.text}, and image ${image} runs on ${architectures.join(' and ')} only`];
  }
  const cluster = onlySchedulable(input.clusterArchitectures, settings);
  const there = cluster.filter((one) => common.includes(one));
  const was = before && intersect(setsOf(narrow(before, input)).map(({ architectures }) => architectures));
  const dropped = cluster.filter((one) => was?.includes(one) && !common.includes(one));
  // Where its author chose the nodes, it is known that the others are not used.
  const narrowing =
    asked === undefined ? sets.filter(({ architectures }) => !cluster.every((one) => architectures.includes(one))) : [];
  const then =
    there.length === 0 ? 'no node has that: the pods will wait' : `the pods will run on ${there.join(' and ')} nodes`;
  return [
    ...(dropped.length > 0 ? [`${dropped.join(' and ')} was dropped: the running version has it`] : []),
    ...narrowing.map(
      ({ image, architectures }) => `image ${image} runs on ${architectures.join(' and ')} only; ${then}`,
    ),
  ];
}

function setsOf(narrowed: readonly NarrowedImage[]) {
  return narrowed.flatMap(({ image, said }) =>
    said.kind === 'set' ? [{ image: printable(image.image, MOST_OF_NAME), architectures: said.architectures }] : [],
  );
}
