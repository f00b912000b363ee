import type { Clock } from '../kube/clock.ts';
import type { EventRecorder, Occurrence, Regarding } from '../kube/events.ts';
import { ARCHITECTURES_ANNOTATION } from '../names.ts';
import type { Decision } from '../placement/decide.ts';
import { readStatement } from '../placement/images.ts';
import type { PodTemplate } from '../placement/pod.ts';
import { noCommonArchitectureNote, openNote, staleUnder, unresolvableNote } from '../placement/reasons.ts';
import type { Settings } from '../placement/settings.ts';
import type { SecretProblem } from './images.ts';

/** Tells of an object's troubles, each once, and again from time to time while they last. */
export type Announcer = {
  tell(key: string, occurrence: Occurrence): void;
  /** The object is gone or has no troubles any more. */
  forget(key: string): void;
};

/** Events expire after an hour by default: what still holds is told again before that. */
const RETELL_MS = 30 * 60_000;

/** Creates the announcer. */
export function createAnnouncer(events: Pick<EventRecorder, 'emit'>, clock: Clock): Announcer {
  const told = new Map<string, Map<string, number>>();
  return {
    tell(key, occurrence) {
      const now = clock.monotonic();
      const notes = told.get(key) ?? new Map<string, number>();
      const id = `${occurrence.reason} ${occurrence.note}`;
      const last = notes.get(id);
      if (last !== undefined && now - last < RETELL_MS) return;
      notes.set(id, now);
      told.set(key, notes);
      events.emit(occurrence);
    },
    forget: (key) => told.delete(key),
  };
}

const GUESSED: ReadonlySet<string> = new Set(['open', 'fallback', 'released']);

/** Tells of what an operator should know about a decision. */
export function announce(
  key: string,
  regarding: Regarding,
  template: Pick<PodTemplate, 'statement' | 'tolerations' | 'os'>,
  decision: Decision,
  settings: Settings,
  announcer: Announcer,
): void {
  const warn = (reason: Parameters<Announcer['tell']>[1]['reason'], action: string, note: string) =>
    announcer.tell(key, { regarding, type: 'Warning', reason, action, note });
  const by = settings.policy === undefined ? '' : `policy ${settings.policy}: `;
  if (template.statement !== undefined) {
    try {
      readStatement(template.statement);
    } catch (error) {
      warn(
        'ConfigurationRejected',
        'Placing',
        `annotation ${ARCHITECTURES_ANNOTATION}: ${error instanceof Error ? error.message : error}`,
      );
    }
  }
  switch (decision.kind) {
    case 'wait':
      for (const failed of decision.failed) warn('ImageUnresolvable', 'Resolving', unresolvableNote(failed));
      return;
    case 'hold':
      warn(
        'NoCommonArchitecture',
        'Placing',
        by + noCommonArchitectureNote(decision.images, template.os, settings.schedulable),
      );
      return;
    case 'place': {
      for (const failed of decision.failed) warn('ImageUnresolvable', 'Resolving', unresolvableNote(failed));
      if (GUESSED.has(decision.basis)) warn('OpenPlacement', 'Placing', by + openNote(decision));
      if (decision.images.length > 0) {
        warn(
          'NoCommonArchitecture',
          'Placing',
          by + noCommonArchitectureNote(decision.images, template.os, settings.schedulable),
        );
      }
      const stale = staleUnder(decision, template.tolerations ?? [], settings.taints).map(({ value }) => value);
      if (stale.length > 0) {
        const set = decision.architectures.join(', ');
        const note = `still tolerates ${stale.join(', ')}, which is no longer in its set (${set}): delete the pod`;
        warn('StaleToleration', 'Placing', note);
      }
      return;
    }
    default:
      decision satisfies never;
  }
}

/** Tells of pull secrets that an object names and that are passed over. */
export function announceSecrets(
  key: string,
  regarding: Regarding,
  problems: readonly SecretProblem[],
  announcer: Announcer,
): void {
  for (const { name, reason } of problems) {
    announcer.tell(key, {
      regarding,
      type: 'Warning',
      reason: 'PullSecretUnusable',
      action: 'Resolving',
      note: `pull secret ${name} is passed over: ${reason}`,
    });
  }
}
