import { NEVER } from '../../controllers/image-source.ts';
import type { ObjectRecord } from '../../controllers/object-record.ts';
import { createTurns, inTurns } from '../../kit/fairness/event-loop.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import { queuedNote } from '../../placement/reasons.ts';
import type { LeaderStatus } from '../leader-status.ts';
import { VERSION } from '../version.ts';
import type { Base } from './base.ts';
import { isWaiting, knownProblems, taintedNodes, waitingPod } from './known.ts';
import type { Parts } from './parts.ts';
import { outcomeOf } from './serve-state.ts';

const MOST_WAITING = 5;

function nameOf({ pod: { namespace, name } }: { readonly pod: Pod }): string {
  return `${namespace}/${name}`;
}

function isTooLarge({ decision }: ObjectRecord): boolean {
  return decision?.kind === 'skip' && decision.reason === 'too-large';
}

/** Returns the place of a pod's images in a registry's line; undefined if none of them waits there. */
function queuedText({ images }: Parts['running'], { images: wanted, namespace, pullSecrets }: Pod): string | undefined {
  const texts = wanted.flatMap((image) => {
    const answer = images.answer(image, namespace, pullSecrets, NEVER);
    const line = 'line' in answer ? answer.line : undefined;
    return line === undefined ? [] : queuedNote({ image: image.image, ...line }).join('');
  });
  return texts[0] === undefined ? undefined : `ImageUnresolvable: ${texts[0]}`;
}

/** Returns what the leader knows now; undefined between terms. */
export async function gatherStatus(base: Base, parts: Parts): Promise<LeaderStatus | undefined> {
  const { running, watches, refused, admission, terms } = parts;
  const loops = running.loops();
  if (loops === undefined) return undefined;
  const turns = createTurns(base.clock);
  const settings = running.settings();
  const nodes = taintedNodes(watches.nodes.store.values(), settings);
  const pods = { placed: 0, waiting: 0, held: 0, open: 0, ignored: 0 };
  const oldest: { readonly pod: Pod; readonly record: ObjectRecord }[] = [];
  let [tooLarge, count] = [0, 0];
  await inTurns(turns, loops.podStates, ([key, record]) => {
    const outcome = record.decision && outcomeOf(record.decision);
    if (outcome !== undefined) pods[outcome]++;
    if (isTooLarge(record)) tooLarge++;
    const pod = watches.pods.store.get(key);
    if (pod === undefined || !isWaiting(pod, record, record.settings ?? settings, nodes)) return;
    count++;
    oldest.push({ pod, record });
    oldest.sort((one, other) => one.pod.createdAt - other.pod.createdAt || (nameOf(one) < nameOf(other) ? -1 : 1));
    oldest.splice(MOST_WAITING);
  });
  for (const record of loops.daemonSetStates.values()) if (isTooLarge(record)) tooLarge++;
  const said = [...parts.events.said()].filter(({ regarding, reason }) =>
    reason === 'RefusedByPolicy'
      ? refused.refused(regarding.namespace ?? '', regarding.uid).length > 0
      : loops.isStill(reason, regarding),
  );
  const counts = {
    ...{ contested: loops.contested(), heldBack: loops.heldBack(), stopped: loops.rolloutsStopped() },
    ...{ onWrongNodes: loops.onWrongNodes(), configurationInUse: parts.configurationInUse },
    certificateExpiry: admission?.expiry(),
  };
  return {
    writer: running.identity,
    version: VERSION,
    pods,
    tooLarge,
    waiting: {
      count,
      oldest: oldest.map(({ pod, record }) =>
        waitingPod(pod, record, record.settings ?? settings, queuedText(running, pod)),
      ),
    },
    keepsDaemonSets: terms.keepsDaemonSets(),
    published: terms.published(),
    problems: knownProblems(counts, said, base.clock.wall()),
  };
}
