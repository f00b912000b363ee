import type { Clock } from '../../kit/clock.ts';
import { messageOf } from '../../kit/errors.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { WEBHOOK_SECRET } from '../../names.ts';
import { servingNames, trusts, trustsAny } from '../configuration.ts';
import { readConfiguration } from '../keep-configuration.ts';
import type { ServingNames } from './issue.ts';
import { isVouchedFor, type Pair, timeProblem } from './pair.ts';
import { dueNow, isInForce, isSettled, renewed } from './renewal.ts';
import { bundleText, entriesOf, extendBundle, type KeptSecret, readKept, secretAt } from './shared-secret.ts';
import { type CertificateSource, createHolder, createProblemReporter, type OnProblem } from './source.ts';

export type SelfSignedOptions = {
  readonly client: ApiClient;
  readonly namespace: string;
  /** Whether the lease is fresh at this moment: only the leader renews and replaces certificates. */
  readonly mayWrite: () => boolean;
  readonly clock: Clock;
  /** The lifetime of a serving certificate; default 90 days. An authority lives ten times as long. */
  readonly lifetimeMs?: number;
  readonly onProblem: OnProblem;
};

const LIFETIME_MS = 90 * 86_400_000;
/** The intervals between two checks of the Secret: without a pair, and with one. */
const SEARCH_MS = 2000;
const LOOK_MS = 10_000;
/** How many checks in a row must find nothing, or fail, before a problem is reported. */
const PATIENCE = 4;
/** How many checks must find no certificates before a follower creates them although callers trust another authority. */
const LOOKS_FOR_LEADER = 8;
/** The limit of steps in one check: an authority and a certificate may follow each other. Conflicts count too. */
const MOST_STEPS = 6;

/**
 * Creates the source of self-signed certificates. archaware's own authority and its certificates are in a Secret, so that all
 * replicas use the same. The leader renews them, with an overlap of the old and the new authority, and the other replicas load
 * them. What is deleted or damaged in the Secret the leader puts back from its memory; each replica serves its last good pair.
 *
 * If there are no certificates at all, every replica may create the first ones: the API server accepts one creation, and the
 * other replicas read it. This is needed when a rolling update turns the webhook on: the leader is then an old replica that does
 * not know of the webhook, and the update waits until a new replica is ready. If callers trust an authority already, a leader may
 * still have it in memory, and gets some time to put it back.
 */
export function createSelfSigned(options: SelfSignedOptions): CertificateSource {
  const { client, namespace, mayWrite, clock, lifetimeMs = LIFETIME_MS, onProblem } = options;
  const secret = secretAt(client, namespace, WEBHOOK_SECRET);
  const title = `Secret ${namespace}/${WEBHOOK_SECRET}`;
  const { set, ...held } = createHolder();
  const report = createProblemReporter(onProblem);
  /** What is served, and what was in the Secret with it. */
  let served: (KeptSecret & { readonly serving: Pair }) | undefined;
  /** The Secret as it was read last, and what is in it: most checks find it as it was. */
  let last: { readonly text: string; readonly kept: KeptSecret } | undefined;
  /** The number of checks in a row that found no certificates. */
  let missing = 0;

  function keptIn(read: JsonObject | undefined): KeptSecret {
    const text = JSON.stringify(read?.data);
    if (last === undefined || last.text !== text) last = { text, kept: readKept(read) };
    return last.kept;
  }

  /** Checks once and renews what is due. Returns the problems of the Secret as it was found. */
  async function look(signal: AbortSignal): Promise<string[]> {
    let read = await secret.read(signal);
    let kept = keptIn(read);
    missing = isEmpty(kept) ? missing + 1 : 0;
    const problems = problemsOf(kept, clock.wall());
    load(kept);
    for (let steps = 0; steps < MOST_STEPS && !signal.aborted && (await mayMake(kept, signal)); steps += 1) {
      const after = await renew(read, kept, signal);
      if (after === 'nothing to do') break;
      // If another writer was faster, its version counts.
      read = after ?? (await secret.read(signal));
      kept = keptIn(read);
    }
    load(kept);
    return problems;
  }

  async function mayMake(kept: KeptSecret, signal: AbortSignal): Promise<boolean> {
    if (mayWrite()) return true;
    if (!isEmpty(kept) || served !== undefined) return false;
    return missing >= LOOKS_FOR_LEADER || !trustsAny(await readConfiguration(client, signal));
  }

  async function renew(
    read: JsonObject | undefined,
    found: KeptSecret,
    signal: AbortSignal,
  ): Promise<JsonObject | undefined | 'nothing to do'> {
    // It has the names by which the webhook is called, and the authorities that callers trust.
    const configuration = await readConfiguration(client, signal);
    const names = servingNames(configuration, namespace);
    const now = clock.wall();
    const kept = withServed(found, now);
    const { serving, authority } = kept;
    const lacks = serving !== undefined && lacksNames(serving, names);
    let due = dueNow(kept, lacks, now);
    // Callers may not know a new authority yet. What the one before has signed is good enough until they do.
    const isNew = authority !== undefined && serving !== undefined && !isVouchedFor(serving, authority.chain);
    if (due === 'serving' && isNew && isInForce(serving, now)) {
      const isTrusted = isSettled(authority, { now, lifetimeMs }) && trusts(configuration, authority.cert);
      if (!isTrusted) due = 'nothing';
    }
    if (due === 'nothing' && kept === found && found.problems.length === 0) return 'nothing to do';
    const wanted = await renewed(due, kept, { names, now, lifetimeMs });
    // Creating certificates took some time, so the lease may have been lost.
    if (!mayWrite() && !isEmpty(found)) return 'nothing to do';
    return secret.write(read, entriesOf(wanted), signal);
  }

  /** Takes what is missing in the Secret, or damaged there, from what this replica has read before: the callers trust it. */
  function withServed(kept: KeptSecret, now: number): KeptSecret {
    const isWhole = [kept.serving, kept.authority, kept.path].every((part) => part !== undefined);
    if (served === undefined || isWhole) return kept;
    const { serving = served.serving, authority = served.authority, path = served.path, problems } = kept;
    const bundle = extendBundle({ serving, authority, bundle: [...kept.bundle, ...served.bundle] }, now);
    return { serving, authority, bundle, path, problems };
  }

  function load(kept: KeptSecret): void {
    // If the path is missing now, the leader writes the former one back, because callers use it.
    const { serving, authority = served?.authority, path = served?.path, bundle } = kept;
    if (serving === undefined) return;
    served = { ...kept, serving, authority, path };
    const { cert, key, notAfter } = serving;
    set({ cert, key, ca: bundleText(bundle), notAfter, path });
  }

  function reportState(found: readonly string[]): void {
    const wrong = served === undefined ? undefined : timeProblem(served.serving, clock.wall());
    if (found.length > 0) {
      report(
        `${title}: ${found.join(', ')}; the leader replaces it, and until then the last valid certificate stays in use`,
      );
    } else if (wrong !== undefined) report(`${title}: tls.crt ${wrong}; it stays in use until it is replaced`);
    else if (served === undefined)
      report(`${title} has no certificate yet: this replica waits until the leader creates one`, PATIENCE);
    else report(undefined);
  }

  return {
    ...held,
    async run(signal) {
      while (!signal.aborted) {
        try {
          reportState(await look(signal));
        } catch (error) {
          if (signal.aborted) return;
          const wrong = served === undefined ? undefined : timeProblem(served.serving, clock.wall());
          if (wrong !== undefined) report(`${title}: tls.crt ${wrong}, and cannot be renewed: ${messageOf(error)}`);
          else report(`${title} cannot be read or renewed: ${messageOf(error)}`, PATIENCE);
        }
        await clock.delay(served === undefined ? SEARCH_MS : LOOK_MS, signal);
      }
    },
  };
}

/** Whether the Secret has none of the entries, not even a damaged one. */
function isEmpty({ serving, authority, problems }: KeptSecret): boolean {
  return serving === undefined && authority === undefined && problems.length === 0;
}

function problemsOf({ problems, serving }: KeptSecret, now: number): string[] {
  const wrong = serving === undefined ? undefined : timeProblem(serving, now);
  return wrong === undefined ? [...problems] : [...problems, `tls.crt ${wrong}`];
}

/** Whether a wanted name is not in a certificate. */
function lacksNames({ chain: [certificate] }: Pair, { dns, ips }: ServingNames): boolean {
  const hasAll = dns.every((name) => certificate?.checkHost(name)) && ips.every((ip) => certificate?.checkIP(ip));
  return !hasAll;
}
