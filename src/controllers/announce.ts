import { hash } from 'node:crypto';
import type { Clock } from '../kit/clock.ts';
import { messageOf } from '../kit/errors.ts';
import { printable } from '../kit/printable.ts';
import type { EventRecorder, Occurrence, Regarding } from '../kube/events.ts';
import { ARCHITECTURE_GATE, ARCHITECTURES_ANNOTATION, NOTE_BYTES, PREFERRED } from '../names.ts';
import { contradictionOf } from '../placement/contradiction.ts';
import type { Decision, FailedImage } from '../placement/decide.ts';
import { readStatement } from '../placement/images.ts';
import { isDaemonSet } from '../placement/objects/kinds.ts';
import type { Namespace } from '../placement/objects/namespace.ts';
import type { Pod, PodTemplate } from '../placement/objects/pod.ts';
import { onlyObserves, type PlacementIntent } from '../placement/placing.ts';
import { preferredProblems, readPreferred } from '../placement/preference.ts';
import { noCommonArchitectureNote, openNote, staleUnder, unresolvableNote } from '../placement/reasons.ts';
import type { Settings } from '../placement/settings.ts';
import type { SecretProblem } from './images.ts';

/**
 * Writes Events about an object's problems: each problem once, and again every half hour while it lasts. An Event that could not
 * be written is tried again at the next call.
 */
export type Announcer = {
  /**
   * Reports a problem. `outlook`: what will happen, added to the note. Another outlook makes the problem a new one; none says
   * nothing new.
   */
  report(key: string, occurrence: Occurrence, outlook?: string): void;
  /** Call it when the object is gone or has no problems any more. */
  forget(key: string): void;
};

/** Events expire after an hour by default, so a problem that lasts is reported again before that. */
const REPORT_AGAIN_MS = 30 * 60_000;

/** How many problems of one object are remembered. */
const MOST_REMEMBERED = 32;
/** The longest problem that is remembered as text: names of images make it long. */
const LONGEST_REMEMBERED = 256;

function idOf({ reason, note }: Occurrence): string {
  const id = `${reason} ${note}`;
  return id.length > LONGEST_REMEMBERED ? hash('sha256', id, 'base64') : id;
}

/** Creates an announcer over the recorder of Events. */
export function createAnnouncer(events: Pick<EventRecorder, 'emit'>, clock: Clock): Announcer {
  const reported = new Map<string, Map<string, { readonly at: number; readonly outlook: string }>>();
  return {
    report(key, occurrence, outlook = '') {
      const now = clock.monotonic();
      const notes = reported.get(key) ?? new Map<string, { readonly at: number; readonly outlook: string }>();
      const id = idOf(occurrence);
      const last = notes.get(id);
      const isSame = last !== undefined && (outlook === '' || outlook === last.outlook);
      if (isSame && now - last.at < REPORT_AGAIN_MS) return;
      if (!events.emit({ ...occurrence, note: withOutlook(occurrence.note, outlook) })) return;
      const [first] = notes.keys();
      if (last === undefined && notes.size >= MOST_REMEMBERED && first !== undefined) notes.delete(first);
      notes.set(id, { at: now, outlook });
      reported.set(key, notes);
    },
    forget: (key) => reported.delete(key),
  };
}

/** Adds the outlook to a note. A note that is too long for an Event loses its own end, not the outlook. */
function withOutlook(note: string, outlook: string): string {
  if (outlook === '') return note;
  const end = `; ${outlook}`;
  return printable(note, NOTE_BYTES - Buffer.byteLength(end)) + end;
}

const GUESSED: ReadonlySet<string> = new Set(['open', 'fallback', 'released']);

/** How many of an object's unresolvable images get an Event. The others get one when these are resolved. */
const MOST_FAILED = 8;

/** Writes the Events for a decision. `outlook`: how long a pod that waits for a lookup will wait; empty: nothing is known. */
export function announce(
  key: string,
  regarding: Regarding,
  template: Pick<PodTemplate, 'statement' | 'tolerations' | 'os' | 'asked'> & Partial<Pick<Pod, 'owner'>>,
  decision: Decision,
  settings: Settings,
  announcer: Announcer,
  outlook = '',
): void {
  const warn = (reason: Parameters<Announcer['report']>[1]['reason'], action: string, note: string) =>
    announcer.report(key, { regarding, type: 'Warning', reason, action, note });
  const warnOf = (failed: readonly FailedImage[]) => {
    for (const each of failed.slice(0, MOST_FAILED)) {
      const note = unresolvableNote(each);
      announcer.report(
        key,
        { regarding, type: 'Warning', reason: 'ImageUnresolvable', action: 'Resolving', note },
        outlook,
      );
    }
  };
  const by = settings.policy === undefined ? '' : `policy ${settings.policy}: `;
  if (template.statement !== undefined) {
    try {
      readStatement(template.statement);
    } catch (error) {
      warn('ConfigurationRejected', 'Placing', `annotation ${ARCHITECTURES_ANNOTATION}: ${messageOf(error)}`);
    }
  }
  switch (decision.kind) {
    case 'wait':
      warnOf(decision.failed);
      return;
    case 'hold':
      warn(
        'NoCommonArchitecture',
        'Placing',
        by + noCommonArchitectureNote(decision.images, template.os, settings.schedulable),
      );
      return;
    case 'place': {
      warnOf(decision.failed);
      if (GUESSED.has(decision.basis))
        warn(
          'OpenPlacement',
          'Placing',
          by + openNote(decision, onlyObserves(settings) ? 'would tolerate' : 'tolerates'),
        );
      if (decision.images.length > 0) {
        warn(
          'NoCommonArchitecture',
          'Placing',
          by + noCommonArchitectureNote(decision.images, template.os, settings.schedulable),
        );
      }
      const contradiction = contradictionOf(decision, template.asked, settings);
      if (contradiction !== undefined) warn('NoCommonArchitecture', 'Placing', by + contradiction);
      if (settings.mode === 'affinity') return;
      const stale = staleUnder(decision, template.tolerations ?? [], settings.taints).map(({ value }) => value);
      if (stale.length > 0) {
        const set = decision.architectures.join(', ');
        const what = `still tolerates ${stale.join(', ')}, but its images now run on ${set}`;
        warn('StaleToleration', 'Placing', `${what}: ${renewAdvice(regarding, template.owner)}`);
      }
      return;
    }
    default:
      decision satisfies never;
  }
}

/**
 * Says how a pod gets the tolerations of its present images. A DaemonSet would bring a deleted pod back with the tolerations of
 * its template, and a change of the template by its author is what makes the controller decide it again.
 */
function renewAdvice({ namespace }: Regarding, owner: Pod['owner']): string {
  if (!isDaemonSet(owner)) return 'delete the pod';
  const restart = `kubectl -n ${namespace} rollout restart daemonset/${owner.name}`;
  return (
    `they come from the template of DaemonSet ${owner.name}; run ${restart}: the controller then decides the template again ` +
    '(with the update strategy OnDelete, delete the pod afterwards). What the template still tolerates then is its ' +
    "author's: remove it from the source of the DaemonSet"
  );
}

/** Writes Events for invalid preferences of a pod and of its namespace, which are ignored. */
export function announcePreferred(
  key: string,
  regarding: Regarding,
  pod: Pick<PodTemplate, 'labels'>,
  { name, preferred }: Pick<Namespace, 'name' | 'preferred'>,
  announcer: Announcer,
): void {
  const problems = preferredProblems(pod);
  try {
    if (preferred !== undefined) readPreferred(preferred);
  } catch (error) {
    const problem = messageOf(error);
    problems.push(`annotation ${PREFERRED} of namespace ${name}: ${problem}`);
  }
  for (const note of problems) {
    announcer.report(key, { regarding, type: 'Warning', reason: 'ConfigurationRejected', action: 'Placing', note });
  }
}

/** Writes the Event for a pod that was released without its affinity or its tolerations because the API server refuses them. */
export function announceRefusal(
  key: string,
  regarding: Regarding,
  refusal: Error,
  placing: PlacementIntent | undefined,
  announcer: Announcer,
): void {
  const left = placing?.affinity === undefined ? 'node affinity' : 'tolerations';
  const without = placing === undefined ? 'node affinity and tolerations' : left;
  const note = `released without ${without}, because the API server refuses the change: ${refusal.message}`;
  announcer.report(key, { regarding, type: 'Warning', reason: 'OpenPlacement', action: 'Placing', note });
}

/** Writes the Event for a pod that holds archaware's gate in the mode `observe`, which releases no pod. */
export function announceGate(
  key: string,
  regarding: Regarding,
  { gated }: Pick<Pod, 'gated'>,
  settings: Settings,
  announcer: Announcer,
): void {
  if (gated === undefined || !onlyObserves(settings)) return;
  const note =
    `the pod holds the scheduling gate ${ARCHITECTURE_GATE} of archaware, and placement.mode observe removes nothing: ` +
    'run archaware-controller clean; archaware is not ready until then';
  announcer.report(key, { regarding, type: 'Warning', reason: 'UnmanagedTaint', action: 'Placing', note });
}

/** How many unusable pull secrets one Event names. */
const MOST_NAMED = 3;

/** Writes one Event for all pull secrets of an object that cannot be used. */
export function announceSecrets(
  key: string,
  regarding: Regarding,
  problems: readonly SecretProblem[],
  announcer: Announcer,
): void {
  const [first] = problems;
  if (first === undefined) return;
  const named = problems.slice(0, MOST_NAMED).map(({ name, reason }) => `${name} (${reason})`);
  const more = problems.length > named.length ? ` and ${problems.length - named.length} more` : '';
  const note =
    problems.length === 1
      ? `pull secret ${first.name} cannot be used: ${first.reason}`
      : `pull secrets cannot be used: ${named.join(', ')}${more}`;
  announcer.report(key, { regarding, type: 'Warning', reason: 'PullSecretUnusable', action: 'Resolving', note });
}
