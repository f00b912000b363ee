import { messageOf } from '../../kit/errors.ts';
import { isObject } from '../../kit/json.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { ApiError, ConnectionError, isConflict, isGone } from '../../kube/errors.ts';
import { isTemporary } from '../../kube/retry.ts';
import { pathOf } from '../../kube/writer.ts';
import { PROBE_FIELD_MANAGER } from '../../names.ts';
import { isKept, type KeepProbe } from '../../placement/patch/keep-probe.ts';

/** What a probe found out about the protection of archaware's tolerations in DaemonSets. */
export type KeepVerdict =
  | { readonly kind: 'holds' }
  /** An update that drops the tolerations would be stored. `example`: a DaemonSet (`namespace/name`) that was tried. */
  | { readonly kind: 'broken'; readonly example: string }
  /** The API server did not answer, or refused the dry run for another reason. */
  | { readonly kind: 'unknown'; readonly why: string }
  /** No DaemonSet has tolerations of archaware. */
  | { readonly kind: 'nothing' };

/**
 * Sends the updates as dry runs (`dryRun=All`), which the API server checks and changes as real ones, and does not store. It is
 * enough if the tolerations of one DaemonSet come back: the policy and the webhook treat all of these alike. Throws only the reason
 * of the signal.
 */
export async function tryKeep(
  client: Pick<ApiClient, 'request'>,
  probes: readonly KeepProbe[],
  signal: AbortSignal,
): Promise<KeepVerdict> {
  if (probes.length === 0) return { kind: 'nothing' };
  let example: string | undefined;
  let why: string | undefined;
  for (const probe of probes) {
    const { namespace, name, patch } = probe;
    const path = `${pathOf({ kind: 'DaemonSet', namespace, name })}?dryRun=All&fieldManager=${PROBE_FIELD_MANAGER}`;
    try {
      const contentType = 'application/json-patch+json';
      const answer = await client.request('patch', path, { body: patch, contentType, signal });
      if (isObject(answer) && isKept(answer, probe)) return { kind: 'holds' };
      example ??= `${namespace}/${name}`;
    } catch (error) {
      signal.throwIfAborted();
      // What an API server does not answer now, it does not answer for the next DaemonSet.
      if (error instanceof ConnectionError || isTemporary(error)) return { kind: 'unknown', why: messageOf(error) };
      if (!isConflict(error) && !isGone(error)) why ??= refusalText(error, namespace);
    }
  }
  if (example !== undefined) return { kind: 'broken', example };
  return { kind: 'unknown', why: why ?? 'the DaemonSets that were tried have just changed' };
}

function refusalText(error: unknown, namespace: string): string {
  const isRight = error instanceof ApiError && error.status === 403 && /cannot patch resource/.test(error.message);
  return isRight ? `needs the right to patch daemonsets.apps in namespace ${namespace}` : messageOf(error);
}
