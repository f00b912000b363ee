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

/** What the source of self-signed certificates works with and knows. */
type SelfSignedState = SelfSignedOptions & {
  readonly lifetimeMs: number;
  readonly secret: ReturnType<typeof secretAt>;
  readonly set: ReturnType<typeof createHolder>['set'];
  readonly report: ReturnType<typeof createProblemReporter>;
  /** What is served, and what was in the Secret with it. */
  served: (KeptSecret & { readonly serving: Pair }) | undefined;
  /** The Secret as it was read last, and what is in it: most checks find it as it was. */
  last: { readonly text: string; readonly kept: KeptSecret } | undefined;
  /** The number of checks in a row that found no certificates. */
  missing: number;
};

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
  const { client, namespace, lifetimeMs = LIFETIME_MS, onProblem } = options;
  const { set, ...held } = createHolder();
  const secret = secretAt(client, namespace, WEBHOOK_SECRET);
  const state: SelfSignedState = {
    ...{ ...options, lifetimeMs, secret, set, report: createProblemReporter(onProblem) },
    ...{ served: undefined, last: undefined, missing: 0 },
  };
  return { ...held, run: (signal) => run(state, signal) };
}

async function run(state: SelfSignedState, signal: AbortSignal): Promise<void> {
  const { clock, report } = state;
  const title = `Secret ${state.namespace}/${WEBHOOK_SECRET}`;
  const whatIsWrong = () => state.served && timeProblem(state.served.serving, clock.wall());
  while (!signal.aborted) {
    try {
      reportState(state, title, await look(state, signal), whatIsWrong());
    } catch (error) {
      if (signal.aborted) return;
      const wrong = whatIsWrong();
      if (wrong !== undefined) report(`${title}: tls.crt ${wrong}, and cannot be renewed: ${messageOf(error)}`);
      else report(`${title} cannot be read or renewed: ${messageOf(error)}`, PATIENCE);
    }
    await clock.delay(state.served === undefined ? SEARCH_MS : LOOK_MS, signal);
  }
}

function reportState({ served, report }: SelfSignedState, title: string, found: string[], wrong?: string): void {
  if (found.length > 0) {
    report(
      `${title}: ${found.join(', ')}; the leader replaces it, and until then the last valid certificate stays in use`,
    );
  } else if (wrong !== undefined) report(`${title}: tls.crt ${wrong}; it stays in use until it is replaced`);
  else if (served === undefined)
    report(`${title} has no certificate yet: this replica waits until the leader creates one`, PATIENCE);
  else report(undefined);
}

/** Checks once and renews what is due. Returns the problems of the Secret as it was found. */
async function look(state: SelfSignedState, signal: AbortSignal): Promise<string[]> {
  const { secret } = state;
  let read = await secret.read(signal);
  let kept = keptIn(state, read);
  state.missing = isEmpty(kept) ? state.missing + 1 : 0;
  const problems = problemsOf(kept, state.clock.wall());
  load(state, kept);
  for (let steps = 0; steps < MOST_STEPS && !signal.aborted && (await mayMake(state, kept, signal)); steps += 1) {
    const after = await renew(state, read, kept, signal);
    if (after === 'nothing to do') break;
    // If another writer was faster, its version counts.
    read = after ?? (await secret.read(signal));
    kept = keptIn(state, read);
  }
  load(state, kept);
  return problems;
}

function keptIn(state: SelfSignedState, read: JsonObject | undefined): KeptSecret {
  const text = JSON.stringify(read?.data);
  if (state.last === undefined || state.last.text !== text) state.last = { text, kept: readKept(read) };
  return state.last.kept;
}

function load(state: SelfSignedState, kept: KeptSecret): void {
  const { served } = state;
  // If the path is missing now, the leader writes the former one back, because callers use it.
  const { serving, authority = served?.authority, path = served?.path, bundle } = kept;
  if (serving === undefined) return;
  state.served = { ...kept, serving, authority, path };
  const { cert, key, notAfter } = serving;
  state.set({ cert, key, ca: bundleText(bundle), notAfter, path });
}

async function mayMake(state: SelfSignedState, kept: KeptSecret, signal: AbortSignal): Promise<boolean> {
  if (state.mayWrite()) return true;
  if (!isEmpty(kept) || state.served !== undefined) return false;
  return state.missing >= LOOKS_FOR_LEADER || !trustsAny(await readConfiguration(state.client, signal));
}

async function renew(
  state: SelfSignedState,
  read: JsonObject | undefined,
  found: KeptSecret,
  signal: AbortSignal,
): Promise<JsonObject | undefined | 'nothing to do'> {
  const { lifetimeMs } = state;
  // It has the names by which the webhook is called, and the authorities that callers trust.
  const configuration = await readConfiguration(state.client, signal);
  const names = servingNames(configuration, state.namespace);
  const now = state.clock.wall();
  const kept = withServed(state, found, now);
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
  if (!state.mayWrite() && !isEmpty(found)) return 'nothing to do';
  return state.secret.write(read, entriesOf(wanted), signal);
}

/** Takes what is missing in the Secret, or damaged there, from what this replica has read before: the callers trust it. */
function withServed({ served }: SelfSignedState, kept: KeptSecret, now: number): KeptSecret {
  const isWhole = [kept.serving, kept.authority, kept.path].every((part) => part !== undefined);
  if (served === undefined || isWhole) return kept;
  const { serving = served.serving, authority = served.authority, path = served.path, problems } = kept;
  const bundle = extendBundle({ serving, authority, bundle: [...kept.bundle, ...served.bundle] }, now);
  return { serving, authority, bundle, path, problems };
}

/** Whether the Secret has none of the entries, not even a damaged one. */
function isEmpty({ serving, authority, problems }: KeptSecret): boolean {
  return serving === undefined && authority === undefined && problems.length === 0;
}

function problemsOf({ problems, serving }: KeptSecret, now: number): string[] {
  const wrong = serving === undefined ? undefined : timeProblem(serving, now);
  return wrong === undefined ? [...problems] : [...problems, `tls.crt ${wrong}`];
}

function lacksNames({ chain: [certificate] }: Pair, { dns, ips }: ServingNames): boolean {
  const hasAll = dns.every((name) => certificate?.checkHost(name)) && ips.every((ip) => certificate?.checkIP(ip));
  return !hasAll;
}
