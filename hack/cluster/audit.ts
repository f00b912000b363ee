import { at } from './json.ts';

/** A request in the API server's audit log. */
export interface AuditedRequest {
  /** get, list, watch, create, update, patch, delete, deletecollection */
  readonly verb: string;
  readonly user: string;
  /** With the query. */
  readonly path: string;
  /** The status of the answer. */
  readonly status: number;
  /** The message of a failure; empty for a success. */
  readonly message: string;
  readonly userAgent: string;
}

/**
 * Parses audit.k8s.io/v1 Events, one on each line. A watch is logged once when it starts and not again when it ends.
 */
export const parseAuditLog = (log: string): AuditedRequest[] =>
  log.split('\n').flatMap((line) => {
    const event: unknown = line === '' ? undefined : parse(line);
    const stage = at(event, 'stage');
    // A watch completes when it ends, which may be never; every other request completes.
    const counted = at(event, 'verb') === 'watch' ? stage === 'ResponseStarted' : stage === 'ResponseComplete';
    return counted ? [requestOf(event)] : [];
  });

/** A request that is not over after this long is not waited for: the API server may have been killed meanwhile. */
const LONGEST_MS = 5_000;

/**
 * Returns the IDs of the requests that were received but are not over. Their effects may be seen already: the API server writes
 * the line about a request's end after its effects, on a busy machine long after.
 */
export function underWay(log: string, now: number): Set<string> {
  const ids = new Set<string>();
  for (const line of log.split('\n')) {
    const event: unknown = line === '' ? undefined : parse(line);
    const id = String(at(event, 'auditID'));
    const receivedAt = Date.parse(String(at(event, 'requestReceivedTimestamp')));
    if (at(event, 'stage') !== 'RequestReceived') ids.delete(id);
    else if (now - receivedAt < LONGEST_MS) ids.add(id);
  }
  return ids;
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    // The last line, which is still being written.
    return undefined;
  }
}

const requestOf = (event: unknown): AuditedRequest => ({
  verb: String(at(event, 'verb')),
  user: String(at(event, 'user', 'username')),
  path: String(at(event, 'requestURI')),
  status: Number(at(event, 'responseStatus', 'code') ?? 0),
  message: String(at(event, 'responseStatus', 'message') ?? ''),
  userAgent: String(at(event, 'userAgent') ?? ''),
});
