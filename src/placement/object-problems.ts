import { messageOf } from '../kit/errors.ts';
import { ARCHITECTURES_ANNOTATION, type EventReason, PREFERRED } from '../names.ts';
import type { Decision, FailedImage, ImageSet, QueuedImage } from './decide.ts';
import { readStatement } from './images.ts';
import { isDaemonSet, replaceAdvice } from './objects/kinds.ts';
import type { Pod, PodTemplate } from './objects/pod.ts';
import { tooLargeNote } from './objects/too-large.ts';
import { onlyObserves, type PlacementIntent } from './placing.ts';
import { preferredProblems, readPreferred } from './preference.ts';
import {
  contradictionOf,
  heldNote,
  noCommonArchitectureNote,
  openNote,
  queuedNote,
  staleUnder,
  unresolvableNote,
} from './reasons.ts';
import type { Settings } from './settings.ts';
import type { Subject } from './subject.ts';

/**
 * A problem of an object, for its Event. `estimate`: what changes all the time, added to the note; a problem with another one is the
 * same. `outlook`: what will happen, added to the note. A problem with another outlook is
 * reported at once; without an outlook it is the same problem.
 */
export type Problem = {
  readonly reason: EventReason;
  /** What the controller was doing, in the form that Events use: `Resolving`, `Placing`. */
  readonly action: string;
  readonly note: string;
  readonly estimate?: string;
  readonly outlook?: string;
};

/** A pull secret that cannot be used. The name may describe several (`x and all after it`). */
export type SecretProblem = { readonly name: string; readonly reason: string };

const GUESSED: ReadonlySet<string> = new Set(['open', 'fallback', 'released']);

/** How many of an object's unresolvable images get an Event. The others get one when these are resolved. */
const MOST_FAILED = 8;
const RESOLVING = { reason: 'ImageUnresolvable', action: 'Resolving' } as const;

/** The parts of an object from which the problems for its author are made. Pods have more of them than templates of DaemonSets. */
type Announced = Pick<PodTemplate, 'statement' | 'tolerations' | 'runtime' | 'asked'> & Partial<Pick<Pod, 'owner'>>;

/** Returns the problems that a decision shows. `outlook`: how long a pod that waits for a lookup will wait; empty: nothing is known. */
export function problemsOf(
  template: Announced,
  namespace: string,
  decision: Decision,
  settings: Settings,
  outlook = '',
): Problem[] {
  const placing = (reason: Problem['reason'], said: string): Problem => ({ reason, action: 'Placing', note: said });
  const by = settings.policy === undefined ? '' : `policy ${settings.policy}: `;
  const unresolvable = (failed: readonly FailedImage[], queued: readonly QueuedImage[] = []): Problem[] => [
    ...failed.slice(0, MOST_FAILED).map((each) => ({ ...RESOLVING, note: unresolvableNote(each), outlook })),
    ...queued.slice(0, MOST_FAILED).map((each) => {
      const [note, estimate] = queuedNote(each);
      return { ...RESOLVING, note, estimate, outlook };
    }),
  ];
  const nothingInCommon = (images: readonly ImageSet[]) =>
    placing('NoCommonArchitecture', by + noCommonArchitectureNote(images, template.runtime.os, settings.schedulable));
  const problems = statementProblem(template).map((said) => placing('ConfigurationRejected', said));
  switch (decision.kind) {
    case 'wait':
      return [...problems, ...unresolvable(decision.failed, decision.queued)];
    case 'hold':
      return [
        ...problems,
        placing('NoCommonArchitecture', by + heldNote(decision, template.runtime.os, settings.schedulable)),
      ];
    case 'place': {
      problems.push(...unresolvable(decision.failed));
      if (GUESSED.has(decision.basis)) {
        const verb = onlyObserves(settings) ? 'would tolerate' : 'tolerates';
        problems.push(placing('OpenPlacement', by + openNote(decision, verb)));
      }
      if (decision.images.length > 0) problems.push(nothingInCommon(decision.images));
      const contradiction = contradictionOf(decision, template.asked, settings);
      if (contradiction !== undefined) problems.push(placing('NoCommonArchitecture', by + contradiction));
      if (settings.mode === 'affinity') return problems;
      const stale = staleUnder(decision, template.tolerations ?? [], settings.taints).map(({ value }) => value);
      if (stale.length > 0) {
        const set = decision.architectures.join(', ');
        const what = `still tolerates ${stale.join(', ')}, but its images now run on ${set}`;
        problems.push(placing('StaleToleration', `${what}: ${renewAdvice(namespace, template.owner)}`));
      }
      return problems;
    }
    default:
      return decision satisfies never;
  }
}

/** Returns the problem of an object's own statement of its architectures, which then counts as absent. */
export function statementProblem({ statement }: Pick<PodTemplate, 'statement'>): string[] {
  if (statement === undefined) return [];
  try {
    readStatement(statement);
    return [];
  } catch (error) {
    return [`annotation ${ARCHITECTURES_ANNOTATION}: ${messageOf(error)}`];
  }
}

/**
 * Says how a pod gets the tolerations of its present images. A DaemonSet would bring a deleted pod back with the tolerations of
 * its template, and a change of the template by its author is what makes the controller decide it again.
 */
function renewAdvice(namespace: string, owner: Pod['owner']): string {
  if (owner === undefined) return 'delete the pod and create it again';
  if (!isDaemonSet(owner)) return replaceAdvice(owner);
  const restart = `kubectl -n ${namespace} rollout restart daemonset/${owner.name}`;
  return (
    `they come from the template of DaemonSet ${owner.name}; run ${restart}: the controller then decides the template again ` +
    '(with the update strategy OnDelete, delete the pod afterwards). What the template still tolerates then is its ' +
    "author's: remove it from the source of the DaemonSet"
  );
}

/** Returns the problems of preferences of a pod and of its namespace, which are ignored. */
export function preferenceProblems(subject: Pick<Subject, 'namespace' | 'labels' | 'preferred'>): Problem[] {
  const { namespace, preferred } = subject;
  const problems = preferredProblems(subject);
  try {
    if (preferred !== undefined) readPreferred(preferred);
  } catch (error) {
    problems.push(`annotation ${PREFERRED} of namespace ${namespace}: ${messageOf(error)}`);
  }
  return problems.map((said) => ({ reason: 'ConfigurationRejected', action: 'Placing', note: said }));
}

/** Returns the problem of a pod that was released without its affinity or its tolerations because the API server refuses them. */
export function refusalProblem(refusal: Error, placing: PlacementIntent | undefined): Problem {
  const left = placing?.affinity === undefined ? 'node affinity' : 'tolerations';
  const without = placing === undefined ? 'node affinity and tolerations' : left;
  const said = `released without ${without}, because the API server refuses the change: ${refusal.message}`;
  return { reason: 'OpenPlacement', action: 'Placing', note: said };
}

/** Returns the problem of an object that is too large to be served. */
export function tooLargeProblems({ tooLarge }: Pick<PodTemplate, 'tooLarge'>): Problem[] {
  return tooLarge === undefined ? [] : [{ reason: 'TooLarge', action: 'Placing', note: tooLargeNote(tooLarge) }];
}

/** How many unusable pull secrets one Event names. */
const MOST_NAMED = 3;

/** Returns one problem for all pull secrets of an object that cannot be used. */
export function secretProblems(unusable: readonly SecretProblem[]): Problem[] {
  const [first] = unusable;
  if (first === undefined) return [];
  const named = unusable.slice(0, MOST_NAMED).map(({ name, reason }) => `${name} (${reason})`);
  const more = unusable.length > named.length ? ` and ${unusable.length - named.length} more` : '';
  const said =
    unusable.length === 1
      ? `pull secret ${first.name} cannot be used: ${first.reason}`
      : `pull secrets cannot be used: ${named.join(', ')}${more}`;
  return [{ reason: 'PullSecretUnusable', action: 'Resolving', note: said }];
}
