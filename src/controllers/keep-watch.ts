import { messageOf } from '../kit/errors.ts';
import { isObject } from '../kit/json.ts';
import type { ApiClient } from '../kube/api-client.ts';
import { ApiError, ConnectionError, isConflict, isGone } from '../kube/errors.ts';
import { readServerVersion } from '../kube/read.ts';
import { isTemporary } from '../kube/retry.ts';
import { pathOf } from '../kube/writer.ts';
import { PROBE_FIELD_MANAGER } from '../names.ts';
import { isKept, type KeepProbe } from '../placement/patch/keep-probe.ts';

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
 * Sends the updates as dry runs (`dryRun=All`), which the API server checks and changes as real ones, and does not store. It is enough if
 * the tolerations of one DaemonSet come back: the policy and the webhook treat all of these alike. Throws only the reason of the signal.
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
      const answer = await client.request('patch', path, { body: patch, signal });
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

/** What one term of leadership knows about the protection of DaemonSets. */
export type KeepWatch = ReturnType<typeof createKeepWatch>;

/** Creates the knowledge of a term; nothing is tried before the first call of `look`. */
export function createKeepWatch(options: {
  readonly client: Pick<ApiClient, 'request'>;
  /** Returns the updates to try now. */
  readonly probes: () => readonly KeepProbe[];
  /** Called when the protection is found broken, when it holds again, and with each new reason why it is not known. */
  readonly onNews: (verdict: KeepVerdict) => void;
}) {
  const { client, probes, onNews } = options;
  /** Whether the protection held at the last try with a verdict; undefined: there was none, or nothing to protect. */
  let holds: boolean | undefined;
  /** Why the last try gave no verdict; empty: it gave one. */
  let unknown = '';
  /** The version of the API server with which the protection held. */
  let heldWith: string | undefined;
  let isLooking = false;

  async function tryNow(signal: AbortSignal): Promise<void> {
    const version = await readServerVersion(client, signal);
    if (version === heldWith) return;
    const verdict = await tryKeep(client, probes(), signal);
    heldWith = verdict.kind === 'holds' ? version : undefined;
    if (verdict.kind === 'unknown') {
      // It leaves the last verdict as it is.
      if (verdict.why !== unknown) onNews(verdict);
      unknown = verdict.why;
      return;
    }
    const before = holds;
    holds = verdict.kind === 'nothing' ? undefined : verdict.kind === 'holds';
    unknown = '';
    if (holds !== before && (holds === false || before === false)) onNews(verdict);
  }

  return {
    /** Whether the protection holds; undefined: not known, or nothing to protect. */
    holds: (): boolean | undefined => holds,
    /**
     * Tries it, unless it held before with this version of the API server. Call it when the term begins, and whenever a watch was
     * opened again: an API server of another version closes the watches of the one before it. Never throws.
     */
    async look(signal: AbortSignal): Promise<void> {
      if (isLooking) return;
      isLooking = true;
      // An API server that does not even tell its version is asked again with the next watch.
      await tryNow(signal).catch(() => undefined);
      isLooking = false;
    },
  };
}
