import { doubled } from '../../kit/clock.ts';
import { isRefusal } from '../../kube/errors.ts';
import { type DaemonSet, readDaemonSet } from '../../placement/objects/daemonset.ts';
import { giveBackPatch } from '../../placement/patch/disown.ts';
import type { WritingOptions } from '../controller-options.ts';
import { note, type ObjectRecord } from '../memory.ts';

/** What giving back needs. */
export type OwnershipOptions = Pick<WritingOptions, 'write' | 'clock' | 'onRefused'>;

/** The pause after a conflict: the status was written meanwhile, and the entries have other places. */
const CONFLICT_MS = 1_000;
/** The pause after a try for one DaemonSet; it doubles. Its author could make archaware's entry own the list again and again. */
const PAUSE_MS = 60_000;
const LONGEST_MS = 24 * 60 * 60_000;

/**
 * Gives a list of tolerations that archaware wrote back to its author, so that the next server-side apply does not conflict. It never
 * fails: the template is right without it. Returns the newest resource version, or why it was not written.
 */
async function giveBack(
  { write, onRefused }: OwnershipOptions,
  record: ObjectRecord,
  daemonSet: DaemonSet,
  signal: AbortSignal,
): Promise<{ readonly resourceVersion: string } | 'conflict' | 'failed'> {
  const { namespace, name } = daemonSet;
  try {
    const target = { kind: 'DaemonSet', namespace, name, action: 'give-back' } as const;
    const written = await write(target, giveBackPatch(daemonSet), signal);
    if (written.kind !== 'written') return written.kind === 'conflict' ? 'conflict' : 'failed';
    const answer = readDaemonSet(written.object);
    // The API server does not let go of it, and would not the next time.
    if (answer.entry?.ownsSpec) note(record, 'givenBack', { count: 0, notBefore: Number.POSITIVE_INFINITY });
    return { resourceVersion: answer.resourceVersion };
  } catch (error) {
    signal.throwIfAborted();
    // A lost Lease or connection does not count as a refusal: the next leader gives the list back. Nor does a missing right, which
    // the component without-taints takes away on purpose.
    if (isRefusal(error) && error.status !== 403) onRefused?.();
    return 'failed';
  }
}

/** Gives a list back at once, by the answer to the write that changed it. Returns the newest resource version. */
export async function giveBackAfterWrite(
  parts: OwnershipOptions,
  record: ObjectRecord,
  answer: DaemonSet,
  signal: AbortSignal,
): Promise<string> {
  if (answer.entry?.ownsSpec !== true) return answer.resourceVersion;
  const given = await giveBack(parts, record, answer, signal);
  return typeof given === 'string' ? answer.resourceVersion : given.resourceVersion;
}

/**
 * Gives a list back that was not given back after its write, less and less often. `resourceVersion`: that of the write, if there was
 * one; `againInMs`: until the next try.
 */
export async function giveBackAtSight(
  parts: OwnershipOptions,
  record: ObjectRecord,
  daemonSet: DaemonSet,
  signal: AbortSignal,
): Promise<{ readonly resourceVersion?: string; readonly againInMs?: number }> {
  if (daemonSet.entry?.ownsSpec !== true) return {};
  const now = parts.clock.monotonic();
  const { count, notBefore } = record.notes?.givenBack ?? { count: 0, notBefore: now };
  if (notBefore > now) return notBefore === Number.POSITIVE_INFINITY ? {} : { againInMs: notBefore - now };
  const pauseMs = doubled(count, PAUSE_MS, LONGEST_MS);
  note(record, 'givenBack', { count: count + 1, notBefore: now + pauseMs });
  const given = await giveBack(parts, record, daemonSet, signal);
  if (typeof given !== 'string') return given;
  if (given === 'failed') return { againInMs: pauseMs };
  note(record, 'givenBack', { count, notBefore: now + CONFLICT_MS });
  return { againInMs: CONFLICT_MS };
}
