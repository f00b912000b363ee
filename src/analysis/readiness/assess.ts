import { settingsFor, skipTemplate } from '../../placement/eligibility.ts';
import type { ImageAnswer } from '../../placement/images.ts';
import type { PodImage } from '../../placement/objects/containers.ts';
import type { Namespace } from '../../placement/objects/namespace.ts';
import { readWorkloadSubject } from '../../placement/objects/workload.ts';
import { type Assessment, assessSubject } from '../../placement/readiness/target-verdict.ts';
import type { Settings } from '../../placement/settings.ts';
import type { Candidate } from './candidate.ts';

/** The circumstances that all workloads of a report share. */
export type Circumstances = {
  /** The global settings; policies apply as in `run`. */
  readonly settings: Settings;
  /** The architectures of the cluster's nodes and the targets, sorted: what follows the cluster may go to any of them. */
  readonly architectures: readonly string[];
  readonly namespaceOf: (name: string) => Pick<Namespace, 'name' | 'labels' | 'preferred'>;
  /** The normalised names of an image, as `decide` takes them. */
  readonly namesOf: (image: string) => readonly string[];
  /** Whether what archaware leaves alone is assessed as well. */
  readonly assessesAll?: boolean;
};

/** Returns the images of a candidate that need a registry. */
export function imagesToAsk(candidate: Candidate, circumstances: Circumstances): PodImage[] {
  const asked: PodImage[] = [];
  assess(candidate, circumstances, (image) => {
    asked.push(image);
    return { kind: 'pending' };
  });
  return [...new Set(asked)];
}

/** Assesses a candidate. `answerOf`: the result of the lookup of an image; `sinceMs` in it should be infinite, as nothing is tried again. */
export function assess(
  candidate: Candidate,
  circumstances: Circumstances,
  answerOf: (image: PodImage) => ImageAnswer,
): Assessment {
  const namespace = circumstances.namespaceOf(candidate.namespace);
  const settings = settingsFor(circumstances.settings, { namespace, labels: candidate.template.labels });
  const subject = readWorkloadSubject(candidate, namespace, settings);
  const { architectures: clusterArchitectures, namesOf } = circumstances;
  const knowledge = { clusterArchitectures, namesOf, answerOf, waitedMs: Number.POSITIVE_INFINITY };
  // A daemon pod whose DaemonSet was not read stands for its template.
  const isDaemonPod = subject.skipped === 'daemon-pod';
  const skipped = isDaemonPod ? skipTemplate(candidate.template, namespace, settings) : subject.skipped;
  return assessSubject(subject, settings, knowledge, circumstances.assessesAll === true ? undefined : skipped);
}
