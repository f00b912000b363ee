import type { Clock } from '../../kit/clock.ts';
import { isoTime } from '../../kit/duration.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { isGone } from '../../kube/errors.ts';
import { APP_LABEL, DEPLOYMENT, FIELD_MANAGER, STATUS_CONFIG_MAP } from '../../names.ts';
import type { Logger } from '../../observability/log.ts';
import { type LeaderStatus, statusData, statusPath } from '../leader-status.ts';

/** The time after the start of a term at which the status is first written: by then most is decided. */
const FIRST_MS = 2_000;
const AGAIN_MS = 30_000;

type KeepingOptions = {
  readonly client: Pick<ApiClient, 'request'>;
  readonly namespace: string;
  readonly mayWrite: () => boolean;
  /** Returns what the leader knows now; undefined between terms. */
  readonly gather: () => Promise<LeaderStatus | undefined>;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
};

/**
 * Writes what the leader knows into a ConfigMap, for the command `status`: at most once in 30 s, and only if it changed. Returns when the
 * term is over. A write that fails is tried again after that time: nothing depends on it.
 */
export async function keepStatus(options: KeepingOptions, over: AbortSignal): Promise<void> {
  const { client, namespace, mayWrite, gather, clock, log } = options;
  let written = '';
  let isFailing = false;
  for (let waitMs = FIRST_MS; !over.aborted; waitMs = AGAIN_MS) {
    await clock.delay(waitMs, over);
    const status = over.aborted ? undefined : await gather();
    const text = JSON.stringify(status);
    if (status === undefined || text === written || !mayWrite()) continue;
    try {
      await put(client, namespace, { ...status, at: isoTime(clock.wall()) }, over);
      written = text;
      isFailing = false;
    } catch (err) {
      if (!isFailing && !over.aborted) log.warn({ err }, 'status not written, so the command status shows less');
      isFailing = true;
    }
  }
}

async function put(
  client: KeepingOptions['client'],
  namespace: string,
  status: Parameters<typeof statusData>[0],
  signal: AbortSignal,
): Promise<void> {
  const metadata = { labels: { [APP_LABEL]: DEPLOYMENT } };
  const data = statusData(status);
  const query = `?fieldManager=${FIELD_MANAGER}`;
  const path = statusPath(namespace);
  try {
    const contentType = 'application/merge-patch+json';
    await client.request('patch', `${path}${query}`, { contentType, body: { metadata, data }, signal });
  } catch (error) {
    if (!isGone(error)) throw error;
    const named = { ...metadata, namespace, name: STATUS_CONFIG_MAP };
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: named, data };
    await client.request('create', `${path.slice(0, path.lastIndexOf('/'))}${query}`, { body, signal });
  }
}
