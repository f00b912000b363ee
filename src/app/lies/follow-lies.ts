import type { Clock } from '../../kit/clock.ts';
import { messageOf } from '../../kit/errors.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { isConflict, isForbidden } from '../../kube/errors.ts';
import type { Logger } from '../../observability/log.ts';
import type { Lies } from '../../placement/lies/lies.ts';
import { addFrom, readConfigMap, textOf, writeConfigMap } from './cluster-lies.ts';

export type FollowLiesOptions = {
  readonly client: Pick<ApiClient, 'request'>;
  /** The namespace of the Lease. */
  readonly namespace: string;
  readonly lies: Lies;
  /** Whether this replica leads and may write now. */
  readonly mayWrite: () => boolean;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn' | 'info'>;
  readonly signal: AbortSignal;
};

/** Milliseconds between two reads. All replicas answer admission, so a follower knows what the leader learned after this time. */
const EVERY_MS = 10_000;
/** After a change in this process. */
const SOON_MS = 500;
/** After an answer that another right is needed for, or any other failure. */
const FAILED_MS = 60_000;

/**
 * Keeps what was learned in a ConfigMap that all replicas read and the leader writes, until the signal aborts. Where it is deleted, what
 * was in it is forgotten. Where it is forbidden, everything goes on with memory and the cache file.
 */
export async function followLies(options: FollowLiesOptions): Promise<void> {
  const { lies, clock, log, signal } = options;
  let problem: string | undefined;
  let wake = (): void => undefined;
  let isChanged = false;
  lies.onChange(() => {
    isChanged = true;
    wake();
  });
  while (!signal.aborted) {
    let waitMs = EVERY_MS;
    try {
      isChanged = false;
      await synchronise(options);
      if (problem !== undefined) log.info('the ConfigMap of images that lie can be used again');
      problem = undefined;
    } catch (error) {
      if (signal.aborted) return;
      // The next round reads what the other replica wrote.
      if (!isConflict(error)) {
        waitMs = FAILED_MS;
        const said = isForbidden(error) ? 'forbidden' : messageOf(error);
        if (said !== problem) {
          log.warn(
            { err: error },
            'the ConfigMap of images that lie cannot be used: this replica remembers what its own pods show',
          );
        }
        problem = said;
      }
    }
    const early = new AbortController();
    wake = () => problem === undefined && early.abort();
    if (isChanged && problem === undefined) early.abort();
    await clock.delay(waitMs, AbortSignal.any([signal, early.signal]));
    if (early.signal.aborted) await clock.delay(SOON_MS, signal);
  }
}

async function synchronise(options: FollowLiesOptions): Promise<void> {
  const { lies, mayWrite, clock, signal } = options;
  const read = await readConfigMap(options, signal);
  const origin = lies.origin();
  // Somebody has deleted the object, and with it what it held. What was learned before there was an object stays.
  if (origin !== undefined && read?.uid !== origin) {
    lies.clear();
    lies.setOrigin(undefined);
  }
  if (read !== undefined) {
    lies.setOrigin(read.uid);
    addFrom(read, lies, clock.wall());
  }
  const text = textOf(lies);
  if (!mayWrite() || text === (read?.text ?? '')) return;
  const uid = await writeConfigMap(options, read, text, signal);
  if (uid !== undefined) lies.setOrigin(uid);
}
