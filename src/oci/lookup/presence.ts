import { isDigest, matchesDigest } from '../digest.ts';
import { isSuccess } from '../http/transport.ts';
import type { Health } from './health.ts';
import type { Target } from './place.ts';
import type { QueriedEndpoint, Requests } from './request.ts';

/**
 * Finds out whether an endpoint serves a manifest, by HEAD, or by GET where HEAD does not work. Only an answer about the manifest is a
 * verdict: a time-out, a limit of requests or a broken server is an error.
 *
 * @throws ImageError, or the signal's reason
 */
export async function isServed(
  asked: QueriedEndpoint & Pick<Target, 'place'>,
  digest: string,
  { ask, failed }: Requests,
  health: Pick<Health, 'isHeadless' | 'sawHead'>,
): Promise<boolean> {
  if (!health.isHeadless(asked.place)) {
    const { status, headers } = await ask(asked, 'HEAD', digest);
    const claimed = headers['docker-content-digest'] ?? '';
    const isOther = isDigest(claimed) && claimed !== digest;
    if (isSuccess({ status }) && !isOther) return true;
    if (status === 404 || status === 410) return false;
    // All else may be an answer to HEAD and not about the manifest; a limit or an outage is GET's as well.
  }
  const response = await ask(asked, 'GET', digest);
  if (isSuccess(response)) {
    if (!matchesDigest(response.body, digest)) return false;
    health.sawHead(asked.place, 'doubtful');
    return true;
  }
  const error = failed(response, asked, 'the manifest');
  if (error.temporary) throw error;
  return false;
}
