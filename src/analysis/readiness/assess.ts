import { ARCHITECTURE_LABEL, OS_LABEL } from '../../names.ts';
import { type Decision, decide } from '../../placement/decide.ts';
import { type SkipReason, settingsFor } from '../../placement/eligibility.ts';
import type { Demands } from '../../placement/fit.ts';
import { type ImageAnswer, type NarrowedImage, narrow, statementOf } from '../../placement/images.ts';
import type { PodImage } from '../../placement/objects/containers.ts';
import { isDaemonSetOfAnyGroup } from '../../placement/objects/kinds.ts';
import type { Namespace } from '../../placement/objects/namespace.ts';
import { readWorkloadSubject } from '../../placement/objects/workload.ts';
import { placingFor, usesAffinity } from '../../placement/placing.ts';
import type { Settings } from '../../placement/settings.ts';
import type { Subject } from '../../placement/subject.ts';
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

/** What `run` would decide for a candidate once all lookups have ended, and on what it rests. */
export type Assessment = {
  readonly subject: Subject;
  readonly settings: Settings;
  readonly outcome: Decision | { readonly kind: 'skip'; readonly reason: SkipReason };
  /** How each image narrows the architectures; empty if images were not asked about. */
  readonly narrowed: readonly NarrowedImage[];
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
  const reason = circumstances.assessesAll === true ? undefined : subject.skipped;
  // A daemon pod whose DaemonSet was not read stands for its template.
  if (reason !== undefined && reason !== 'daemon-pod') {
    return { subject, settings, outcome: { kind: 'skip', reason }, narrowed: [] };
  }
  const { architectures: clusterArchitectures, namesOf } = circumstances;
  const knowledge = { clusterArchitectures, namesOf, answerOf, waitedMs: Number.POSITIVE_INFINITY };
  const isStated = statementOf(subject.statement) !== undefined;
  return {
    subject,
    settings,
    outcome: decide(subject, knowledge),
    narrowed: isStated ? [] : narrow(subject, knowledge),
  };
}

/** Returns the node labels that `pods.matchNodeLabels` makes archaware require of nodes for these pods, as a node selector. */
export function labelsRequired(
  { kind, demands }: Pick<Candidate, 'kind' | 'demands'>,
  { subject, outcome }: Assessment,
): Demands['nodeSelector'] {
  if (outcome.kind !== 'place' || isDaemonSetOfAnyGroup(kind) || !usesAffinity(subject.settings)) return {};
  const required = placingFor(outcome, subject).affinity?.required ?? [];
  const mentioned = (demands.terms ?? []).flatMap(({ expressions }) => expressions.map(({ key }) => key));
  const own = [ARCHITECTURE_LABEL, OS_LABEL, ...Object.keys(demands.nodeSelector), ...mentioned];
  return Object.fromEntries(
    required.flatMap(({ key, values: [value] }) => (own.includes(key) || value === undefined ? [] : [[key, value]])),
  );
}
