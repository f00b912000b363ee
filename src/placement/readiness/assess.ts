import { ARCHITECTURE_LABEL, OS_LABEL } from '../../names.ts';
import { type Decision, type DecisionInput, decide } from '../decide.ts';
import type { Namespace, SkipReason } from '../eligibility.ts';
import type { Demands } from '../fit.ts';
import { type ImageAnswer, type Narrowing, narrowingOf, statementOf } from '../images.ts';
import type { PodImage } from '../objects/image.ts';
import { isDaemonSetOfAnyGroup } from '../objects/kinds.ts';
import { skipWorkload } from '../objects/workload.ts';
import { placingFor, usesAffinity } from '../placing.ts';
import { settingsFor } from '../policy.ts';
import type { Settings } from '../settings.ts';
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
  readonly settings: Settings;
  readonly outcome: Decision | { readonly kind: 'skip'; readonly reason: SkipReason };
  /** How each image narrows the architectures; empty if images were not asked about. */
  readonly narrowed: readonly { readonly image: PodImage; readonly said: Narrowing }[];
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
  const { template } = candidate;
  const namespace = circumstances.namespaceOf(candidate.namespace);
  const settings = settingsFor(circumstances.settings, { namespace, labels: template.labels });
  const reason = circumstances.assessesAll === true ? undefined : skipWorkload(candidate, namespace, settings);
  // A daemon pod whose DaemonSet was not read stands for its template.
  if (reason !== undefined && reason !== 'daemon-pod') {
    return { settings, outcome: { kind: 'skip', reason }, narrowed: [] };
  }
  const input: DecisionInput = {
    template,
    namespace: namespace.name,
    settings,
    clusterArchitectures: circumstances.architectures,
    namesOf: circumstances.namesOf,
    answerOf,
    waitedMs: Number.POSITIVE_INFINITY,
  };
  return { settings, outcome: decide(input), narrowed: narrow(input) };
}

function narrow({ template, settings, namesOf, answerOf }: DecisionInput): Assessment['narrowed'] {
  if (statementOf(template.statement) !== undefined) return [];
  return template.images.map((image) => ({
    image,
    said: narrowingOf(image, template, settings, namesOf(image.image), answerOf),
  }));
}

/** Returns the node labels that `pods.matchNodeLabels` makes archaware require of nodes for these pods, as a node selector. */
export function labelsRequired(
  { kind, template, demands }: Pick<Candidate, 'kind' | 'template' | 'demands'>,
  { settings, outcome }: Assessment,
): Demands['nodeSelector'] {
  if (outcome.kind !== 'place' || isDaemonSetOfAnyGroup(kind) || !usesAffinity(settings)) return {};
  const required = placingFor(outcome, template, { preferred: undefined }, settings).affinity?.required ?? [];
  const mentioned = (demands.terms ?? []).flatMap(({ expressions }) => expressions.map(({ key }) => key));
  const own = [ARCHITECTURE_LABEL, OS_LABEL, ...Object.keys(demands.nodeSelector), ...mentioned];
  return Object.fromEntries(
    required.flatMap(({ key, values: [value] }) => (own.includes(key) || value === undefined ? [] : [[key, value]])),
  );
}
