import { isDigest, matchesDigest } from '../digest.ts';
import { labelOf } from '../endpoints/endpoint.ts';
import { isSuccess, type SendRequest, statusError } from '../http/transport.ts';
import { MANIFEST_ACCEPT, MAX_MANIFEST } from '../manifest.ts';
import type { Health } from './health.ts';
import type { Target } from './place.ts';
import { type QueriedEndpoint, requestFor } from './request.ts';

type PresenceOptions = {
  readonly send: SendRequest;
  readonly health: Pick<Health, 'isHeadless' | 'sawHead'>;
  readonly now: () => number;
};

/**
 * Creates the function that finds out whether an endpoint serves a manifest, by HEAD, or by GET where HEAD does not work. Only
 * an answer about the manifest is a verdict: a time-out, a limit of requests or a broken server is an error.
 *
 * @throws (the returned function) ImageError, or the signal's reason
 */
export function createPresence({ send, health, now }: PresenceOptions) {
  return async (asked: QueriedEndpoint & Pick<Target, 'place'>, digest: string): Promise<boolean> => {
    const ask = (method: 'GET' | 'HEAD') =>
      send(
        requestFor(asked, `manifests/${digest}`, {
          method,
          headers: { accept: MANIFEST_ACCEPT },
          maxBytes: MAX_MANIFEST,
        }),
      );
    if (!health.isHeadless(asked.place)) {
      const { status, headers } = await ask('HEAD');
      const claimed = headers['docker-content-digest'] ?? '';
      const isOther = isDigest(claimed) && claimed !== digest;
      if (isSuccess({ status }) && !isOther) return true;
      if (status === 404 || status === 410) return false;
      // All else may be an answer to HEAD and not about the manifest; a limit or an outage is GET's as well.
    }
    const response = await ask('GET');
    if (isSuccess(response)) {
      if (!matchesDigest(response.body, digest)) return false;
      health.sawHead(asked.place, 'doubtful');
      return true;
    }
    const error = statusError(response, labelOf(asked), 'the manifest', now());
    if (error.temporary) throw error;
    return false;
  };
}
