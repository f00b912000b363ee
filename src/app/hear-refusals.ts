import { createRefusedCreations } from '../controllers/refused-creations.ts';
import type { Watches } from '../controllers/watches.ts';
import type { JsonObject } from '../kit/json.ts';
import type { EventRecorder, Regarding } from '../kube/events.ts';
import { follow } from '../kube/watch/follower.ts';
import { skipTemplate } from '../placement/eligibility.ts';
import { readRecord } from '../placement/objects/template-record.ts';
import { onlyObserves, usesTaints } from '../placement/placing.ts';
import {
  addedParts,
  type PlacedPart,
  readFailedCreation,
  refusedNote,
  refusedParts,
} from '../placement/refused-parts.ts';
import type { Settings } from '../placement/settings.ts';
import type { Base } from './replica/base.ts';

type RefusedCreationsParts = Pick<Base, 'config' | 'client' | 'clock' | 'log'> & {
  readonly events: Pick<EventRecorder, 'emit'>;
  readonly settings: () => Settings;
  readonly watches: { readonly [kind in 'namespaces' | 'daemonSets']: Pick<Watches[kind], 'store'> };
  readonly signal: AbortSignal;
};

const UNWATCHED = 'Events cannot be watched, so pods that are refused for what archaware adds are not noticed';
/** The Events of the controllers of workloads about a pod that they could not create. */
const EVENTS = '/apis/events.k8s.io/v1/events?fieldSelector=reason%3DFailedCreate';

/**
 * Starts to notice pods that the API server refuses because of what archaware adds to them: at admission, or to the template of a
 * DaemonSet. Every replica does, because every replica answers reviews; the leader writes the Events. Returns what is refused.
 */
export function startRefusedCreations(
  parts: RefusedCreationsParts,
): Pick<ReturnType<typeof createRefusedCreations>, 'refused' | 'refusing'> {
  const { config, client, clock, log, events, settings, watches, signal } = parts;
  const memory = createRefusedCreations(clock);
  const changesTemplates = config.loops.includes('daemonsets') && usesTaints(settings());
  const adds = config.webhook.enabled || config.placement.publish;
  if (onlyObserves(settings()) || !(adds || changesTemplates)) return memory;

  /** Whether the template of this owner has tolerations of archaware, so that admission has no part in its pods' tolerations. */
  function isOfTemplate({ kind, namespace = '', name, uid }: Regarding): boolean {
    const daemonSet = kind === 'DaemonSet' ? watches.daemonSets.store.get(`${namespace}/${name}`) : undefined;
    return daemonSet?.uid === uid && readRecord(daemonSet.recorded).tolerations.length > 0;
  }

  /** Returns what the webhook, or the policy archaware-place, may add to pods of this owner. */
  function addedTo({ kind, namespace = '' }: Regarding): readonly PlacedPart[] {
    const now = settings();
    const seen = watches.namespaces.store.get(namespace) ?? { name: namespace, labels: {} };
    if (!adds || skipTemplate({ labels: {} }, seen, now) !== undefined) return [];
    return addedParts(now, config.webhook.enabled && kind !== 'DaemonSet');
  }

  function onEvent(event: JsonObject): void {
    const failed = readFailedCreation(event);
    if (failed === undefined) return;
    const { owner, message } = failed;
    const { taints, refused } = settings();
    const named = refusedParts(message, taints.key);
    if (named.length === 0) return;
    const isTemplate = isOfTemplate(owner);
    const added: readonly PlacedPart[] = isTemplate ? ['tolerations'] : addedTo(owner);
    const ours = named.filter((part) => added.includes(part));
    if (ours.length === 0) return;
    const isLeftOut = refused === 'withdraw' && !isTemplate;
    if (memory.note(owner, ours, isLeftOut) !== 'say') return;
    const note = refusedNote(failed, ours, isTemplate ? 'template' : refused, taints.key);
    const what = { type: 'Warning', reason: 'RefusedByPolicy', action: 'Placing', note } as const;
    if (!events.emit({ regarding: owner, ...what })) return;
    memory.said(owner);
    const { kind, namespace, name } = owner;
    log.warn({ owner: `${kind} ${namespace}/${name}`, parts: ours, isLeftOut }, 'pods refused for what archaware adds');
  }

  void follow(
    {
      path: EVENTS,
      client,
      clock,
      onObject: onEvent,
      onTrouble: (_, reason) => log.warn({ reason }, UNWATCHED),
      onWorking: () => log.info('Events can be watched again'),
    },
    signal,
  );
  return memory;
}
