import type { Publication } from '../controllers/publish/publisher.ts';
import type { Clock } from '../kit/clock.ts';
import { isoTime } from '../kit/duration.ts';
import { type JsonObject, listAt, numberAt, objectAt, parseObject, stringAt } from '../kit/json.ts';
import { printable } from '../kit/printable.ts';
import type { ApiClient } from '../kube/api-client.ts';
import { isGone } from '../kube/errors.ts';
import { APP_LABEL, DEPLOYMENT, FIELD_MANAGER, STATUS_CONFIG_MAP } from '../names.ts';
import type { Logger } from '../observability/log.ts';

/** Something that is wrong, and what to do about it. */
export type StatusProblem = { readonly problem: string; readonly do: string };

/** A pod without a node, because of archaware. */
export type WaitingPod = {
  readonly namespace: string;
  readonly name: string;
  /** When it was created: `2026-01-01T00:00:00.000Z`. */
  readonly since: string;
  readonly gated: boolean;
  readonly reason: string;
  /** What will happen as long as a replica leads: `the pod starts by itself at …`. Empty: nothing is known. */
  readonly outlook: string;
};

/** What a leader knows, as it writes it into the ConfigMap. Whoever may write that ConfigMap can have written it. */
export type LeaderStatus = {
  /** The identity with which the writer held the Lease. */
  readonly writer: string;
  readonly version: string;
  /** Pods by outcome. */
  readonly pods: Readonly<Record<string, number>>;
  /** Pods and DaemonSets that are not served because of their size. */
  readonly tooLarge: number;
  readonly waiting: { readonly count: number; readonly oldest: readonly WaitingPod[] };
  /** Whether updates that drop archaware's tolerations from DaemonSets are corrected; undefined: not known. */
  readonly keepsDaemonSets: boolean | undefined;
  /** What is published for the policy archaware-place; undefined if nothing should be. */
  readonly published?: Publication | undefined;
  readonly problems: readonly StatusProblem[];
};

/** When a status was written: `2026-01-01T00:00:00.000Z`. */
type WrittenStatus = { readonly at: string };

const ENTRY = 'status';
/** The policy `archaware-guard-status` lets no longer text through. */
const LONGEST = 32 * 1024;
/** The longest list and the longest texts of what is read: they may be anybody's. */
const MOST = { problems: 20, waiting: 5, outcomes: 10, bytes: 1_024, name: 300 } as const;

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Returns the path of the ConfigMap. */
export function statusPath(namespace: string): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/configmaps/${STATUS_CONFIG_MAP}`;
}

/** Returns the data of the ConfigMap. Of a status that would be too long, the last problems are left out. */
export function statusData(status: LeaderStatus & WrittenStatus): Readonly<Record<string, string>> {
  const text = JSON.stringify(status);
  if (text.length <= LONGEST || status.problems.length === 0) return { [ENTRY]: text };
  return statusData({ ...status, problems: status.problems.slice(0, -1) });
}

/** Reads the ConfigMap; undefined if it has no status of this form. */
export function readStatus(configMap: JsonObject): (LeaderStatus & WrittenStatus) | undefined {
  const text = stringAt(objectAt(configMap, 'data'), ENTRY) ?? '';
  const status = text.length > LONGEST ? undefined : parseObject(text);
  const at = status && stringAt(status, 'at');
  if (status === undefined || at === undefined || !TIME.test(at)) return undefined;
  const waiting = objectAt(status, 'waiting');
  const outcomes = Object.entries(objectAt(status, 'pods')).slice(0, MOST.outcomes);
  return {
    at,
    writer: textAt(status, 'writer', MOST.name),
    version: textAt(status, 'version', MOST.name),
    pods: Object.fromEntries(outcomes.flatMap(([name, count]) => (typeof count === 'number' ? [[name, count]] : []))),
    tooLarge: numberAt(status, 'tooLarge') ?? 0,
    waiting: {
      count: numberAt(waiting, 'count') ?? 0,
      oldest: (listAt(waiting, 'oldest') ?? []).slice(0, MOST.waiting).map((pod) => ({
        namespace: textAt(pod, 'namespace', MOST.name),
        name: textAt(pod, 'name', MOST.name),
        since: timeAt(pod, 'since') ?? at,
        gated: pod.gated === true,
        reason: textAt(pod, 'reason'),
        outlook: textAt(pod, 'outlook'),
      })),
    },
    keepsDaemonSets: typeof status.keepsDaemonSets === 'boolean' ? status.keepsDaemonSets : undefined,
    ...(status.published === undefined ? {} : { published: readPublication(objectAt(status, 'published')) }),
    problems: (listAt(status, 'problems') ?? []).slice(0, MOST.problems).map((each) => ({
      problem: textAt(each, 'problem'),
      do: textAt(each, 'do'),
    })),
  };
}

function readPublication(published: JsonObject): Publication {
  return {
    images: numberAt(published, 'images') ?? 0,
    written: timeAt(published, 'written'),
    problem: textAt(published, 'problem') || undefined,
  };
}

function timeAt(object: JsonObject, field: string): string | undefined {
  const time = stringAt(object, field) ?? '';
  return TIME.test(time) ? time : undefined;
}

function textAt(object: JsonObject, field: string, most: number = MOST.bytes): string {
  return printable(stringAt(object, field) ?? '', most);
}

/** The time after the start of a term at which the status is first written: by then most is decided. */
const FIRST_MS = 2_000;
const AGAIN_MS = 30_000;

type KeepStatusOptions = {
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
export async function keepStatus(options: KeepStatusOptions, over: AbortSignal): Promise<void> {
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
  client: KeepStatusOptions['client'],
  namespace: string,
  status: LeaderStatus & WrittenStatus,
  signal: AbortSignal,
): Promise<void> {
  const metadata = { labels: { [APP_LABEL]: DEPLOYMENT } };
  const data = statusData(status);
  const query = `?fieldManager=${FIELD_MANAGER}`;
  const path = statusPath(namespace);
  try {
    await client.request('patch', `${path}${query}`, { body: { metadata, data }, signal });
  } catch (error) {
    if (!isGone(error)) throw error;
    const named = { ...metadata, namespace, name: STATUS_CONFIG_MAP };
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: named, data };
    await client.request('create', `${path.slice(0, path.lastIndexOf('/'))}${query}`, { body, signal });
  }
}
