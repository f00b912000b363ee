import { onAbort } from '../../kit/abort.ts';
import { type Clock, systemClock } from '../../kit/clock.ts';
import type { Askers } from '../../kit/fairness/asking-namespaces.ts';
import { type Endpoint, labelOf } from '../endpoints/endpoint.ts';
import { ImageError, type ResolverTelemetry } from '../errors.ts';
import { type Credential, withDeadline } from '../http/transport.ts';
import type { Reference } from '../reference.ts';
import { refusedText } from '../sentences.ts';
import { createHealth, type Target, targetOf } from './health.ts';
import { createLimiter } from './limiter.ts';
import { createLogins, type LoginTry } from './logins.ts';
import {
  createPaces,
  isProgressing,
  type LeftOfLimit,
  type Pace,
  type PacesOptions,
  paceOf,
  paceRefusal,
  startTry,
  type Try,
  turnOf,
} from './pace.ts';
import type { QueriedTarget } from './request.ts';

type LookupTask = {
  readonly reference: Reference;
  /** In the order in which they are asked; not empty. */
  readonly endpoints: readonly Endpoint[];
  /** Returns the credentials for an image's name at an endpoint, in the order in which they are tried; an anonymous try follows them. */
  readonly credentials: (credentialName: string, signal: AbortSignal, askers: Askers) => Promise<readonly Credential[]>;
  /** The namespaces for which the lookup runs. */
  readonly askers: Askers;
  /** Called when the lookup has begun to wait for its turn at an account that met a limit. */
  readonly onWait?: () => void;
  /** Milliseconds for asking. Each endpoint gets an equal share of the time that is left, with the endpoints after it. */
  readonly budgetMs: number;
  readonly signal: AbortSignal;
};

/** Asks one endpoint with one credential. Throws ImageError, or the signal's reason. */
type Work<T> = (asked: QueriedTarget) => Promise<T>;

export type LookupOptions = Pick<PacesOptions, 'now' | 'patienceMs' | 'waitsUntil'> & {
  readonly telemetry?: Partial<Pick<ResolverTelemetry, 'waits' | 'rateLimited'>>;
  /** Whether an image's name must never be requested anonymously; default: none. */
  readonly isPrivate?: (name: string) => boolean;
  /** Milliseconds for which a refused credential is not tried again. */
  readonly ttl: { readonly failure: number };
  /** The most lookups in flight at one host. */
  readonly maxInFlight: number;
  /** Called with the key of a place (health.ts) that failed and has answered now. */
  readonly recovered?: (place: string) => void;
  /** For deadlines; default: the timers of the machine. */
  readonly after?: Clock['after'];
};

/** The longest wait for a turn at a host that answers, in multiples of the time budget. */
const PATIENCE = 10;

/** What lookups have learned, and the places of those in flight. */
export type LookupsState = ReturnType<typeof createLookups>;

/** Creates the memory of lookups, which {@link lookup} uses. */
export function createLookups({ after = systemClock.after, ...options }: LookupOptions) {
  const logins = createLogins({ refusedMs: options.ttl.failure, now: options.now });
  const paces = createPaces({ ...options, logins, after });
  const health = createHealth(options.now, options.recovered);
  const limiter = createLimiter({ perHost: options.maxInFlight, standing: health.standing });
  /** The account for whose turn the lookup has to wait, by the failure that says so. */
  const waitsFor = new WeakMap<ImageError, Pace>();
  return { ...options, after, logins, paces, health, limiter, waitsFor };
}

/** A lookup under way. */
interface LookupRun<T> extends LookupTask {
  readonly lookups: LookupsState;
  readonly work: Work<T>;
  /** Milliseconds of asking. */
  spent: number;
}

/**
 * Asks the endpoints of one image, each with its credentials, until one answers.
 *
 * @throws ImageError, or the signal's reason
 */
export async function lookup<T>(lookups: LookupsState, task: LookupTask, work: Work<T>): Promise<T> {
  const run: LookupRun<T> = { ...task, lookups, work, spent: 0 };
  const { reference } = task;
  const failures: { endpoint: Endpoint; error: ImageError }[] = [];
  const able = task.endpoints.filter((endpoint) => endpoint.resolvesTags || reference.digest !== undefined);
  for (const [index, endpoint] of able.entries()) {
    const target = targetOf(endpoint, reference);
    try {
      return await within(run, target, able.length - index);
    } catch (error) {
      if (task.signal.aborted || !(error instanceof ImageError)) throw error;
      failures.push({ endpoint, error });
    }
  }
  throw summary(failures, reference);
}

/** Asks an endpoint. Where the account has reached a limit, it gives the slot back and waits for its turn, as long as it takes. */
async function within<T>(run: LookupRun<T>, target: Target, endpointsLeft: number): Promise<T> {
  const { lookups, askers, signal } = run;
  let since: number | undefined;
  let turn: Try | undefined;
  for (;;) {
    let pace: Pace | undefined;
    try {
      return await once(run, target, endpointsLeft, turn);
    } catch (error) {
      pace = error instanceof ImageError ? lookups.waitsFor.get(error) : undefined;
      if (pace === undefined || signal.aborted) throw error;
    } finally {
      turn?.end();
    }
    since ??= lookups.now();
    const { endpoint: registry = '', retryAfterMs: inMs } = paceRefusal(pace);
    const waiting = turnOf(pace, askers, { since, isLast: endpointsLeft === 1 }, signal);
    if (inMs !== undefined) {
      lookups.telemetry?.waits?.({ registry, inMs });
      run.onWait?.();
    }
    turn = await waiting;
  }
}

/**
 * Asks an endpoint with a slot there, in its share of the time that is left. For the slot it waits for as long as the host answers
 * other lookups, up to a limit: a busy host is not a failure of the image.
 *
 * @throws ImageError with `isUnasked` if no slot gets free in time
 */
async function once<T>(run: LookupRun<T>, target: Target, endpointsLeft: number, turn?: Try): Promise<T> {
  const { health, limiter, now, after } = run.lookups;
  const { askers, budgetMs, signal } = run;
  const { place } = target;
  const open = health.refusal(place, askers.names());
  if (open !== undefined) throw open;
  const patience = new AbortController();
  const forget = onAbort(signal, () => patience.abort(signal.reason));
  let cancel = (): void => {};
  const wait = (round: number): void => {
    cancel = after(budgetMs, () => {
      if (['proven', 'new'].includes(health.standing(place)) && round < PATIENCE) return wait(round + 1);
      const problem = `had no free request slot for its project ${place.project.name}`;
      patience.abort(late(target, problem, round * budgetMs, true));
    });
  };
  wait(1);
  try {
    return await limiter.run(place, askers, patience.signal, async () => {
      cancel();
      // The place may have failed for others meanwhile.
      const refusal = health.start(place, askers.names());
      if (refusal !== undefined) throw refusal;
      const since = now();
      const share = Math.max((budgetMs - run.spent) / endpointsLeft, 1);
      const silent = (): ImageError => late(target, 'did not answer', share);
      try {
        return await withDeadline(share, signal, silent, (until) => ask(run, target, turn, until), after);
      } finally {
        run.spent += now() - since;
      }
    });
  } finally {
    cancel();
    forget();
  }
}

/** Asks an endpoint with one credential after the other. */
async function ask<T>(run: LookupRun<T>, target: Target, turn: Try | undefined, until: AbortSignal): Promise<T> {
  const { telemetry, isPrivate: isPrivateName, logins, paces, health, waitsFor } = run.lookups;
  const { reference, askers } = run;
  const { endpoint, place } = target;
  const refusals: ImageError[] = [];
  const own: LoginTry[] = [...(await run.credentials(endpoint.credentialName, until, askers))];
  const names = [reference.name, endpoint.credentialName];
  const isPrivate = isPrivateName !== undefined && names.some(isPrivateName);
  if (!isPrivate) own.push(undefined);
  const ordered = logins.order(target, own);
  const generation = logins.generation();
  for (const [index, credential] of ordered.entries()) {
    const refusal = logins.refusal(target, credential, askers.names());
    if (refusal !== undefined) {
      refusals.push(ofLogin(refusal, credential));
      continue;
    }
    const pace = paceOf(paces, target, credential);
    const trial = startTry(pace, turn);
    if (trial === undefined) {
      const full = paceRefusal(pace);
      waitsFor.set(full, pace);
      refusals.push(full);
      // Another login would only be a way round a queue that moves.
      if (isProgressing(paces, pace.account)) break;
      continue;
    }
    const seen: { hasWorked: boolean; left?: LeftOfLimit } = { hasWorked: false };
    const onAccepted = (): void => {
      seen.hasWorked = true;
    };
    const onRateLimit = (left: LeftOfLimit): void => {
      seen.left = left;
      telemetry?.rateLimited?.({ registry: labelOf(target), ...left });
    };
    const sent = credential && { ...credential, onAccepted };
    try {
      const answer = await run.work({ ...target, credential: sent, isPrivate, signal: until, onRateLimit });
      health.answered(place);
      // What anybody may read says nothing of a login.
      if (seen.hasWorked || credential === undefined) logins.worked(target, credential);
      trial.end({ kind: 'answered', ...seen });
      return answer;
    } catch (caught) {
      if (!(caught instanceof ImageError)) throw caught;
      const isBusy = caught.status === 503 && !caught.byCredential && !isLimit(caught) && health.mayBeLimit(place);
      const isRefusal = isBusy || isLimit(caught);
      const isFailure = ['unavailable', 'timeout'].includes(caught.code) && !isRefusal;
      if (!isFailure && !isBusy && caught.code !== 'forbidden-address') health.answered(place);
      const error = isFailure ? health.failed(place, askers.names(), caught) : caught;
      if (isRefusal) {
        trial.end({ kind: 'limited', retryAfterMs: error.retryAfterMs });
        waitsFor.set(error, paceOf(paces, target, credential));
      } else trial.end(isFailure ? { kind: 'failed' } : { kind: 'answered', ...seen });
      if (!error.byCredential && !['denied', 'not-found', 'rate-limited'].includes(error.code)) throw error;
      refusals.push(ofLogin(error, credential));
      // The other credentials would not have been sent either, so their requests would be the same one.
      const tried = error.isAnonymous && !isPrivate ? ordered.slice(index) : [credential];
      for (const each of tried) logins.failed(target, each, error, generation, askers.names());
      if (tried.length > 1) break;
    } finally {
      trial.end();
    }
  }
  const useful = withRefusals(mostUseful(refusals), refusals);
  if (useful !== undefined) throw useful;
  const { name } = reference;
  throw new ImageError(`registries.private allows no anonymous request for ${name}, and no credential matches it`, {
    code: 'denied',
    endpoint: labelOf(target),
  });
}

/** Whether the account has reached a limit: 429, or 503 with a time (RFC 9110, section 15.6.4). */
function isLimit({ code, status, retryAfterMs }: ImageError): boolean {
  return code === 'rate-limited' || (status === 503 && retryAfterMs !== undefined);
}

/**
 * Chooses the failure to report: first one that may pass by itself, then one that another credential could change, of these the first.
 * Without credentials, "does not exist" is the registry's answer; if some credentials were refused, it is not reliable.
 */
function mostUseful(failures: readonly ImageError[]): ImageError | undefined {
  const limited = failures.filter(({ code }) => code === 'rate-limited');
  return (
    // The failure whose pause ends first may be retried first.
    limited.toSorted((one, other) => (one.retryAfterMs ?? 0) - (other.retryAfterMs ?? 0))[0] ??
    failures.find(({ byCredential, temporary }) => byCredential && temporary) ??
    failures.find(({ byCredential, code }) => byCredential || code === 'denied') ??
    failures.find(({ code }) => code === 'not-found') ??
    failures[0]
  );
}

/** Returns a refusal with the login that was refused; the request of an anonymous one was sent without. */
function ofLogin(error: ImageError, credential: LoginTry): ImageError {
  const isSent = !error.isAnonymous && error.host?.is !== 'blob store';
  if (error.code !== 'denied' || !isSent || credential?.source === undefined) return error;
  return new ImageError(error.message, { ...error, login: credential.source, cause: error });
}

/** Returns a refusal that says which logins were refused, if there were any. */
function withRefusals(chosen: ImageError | undefined, failures: readonly ImageError[]): ImageError | undefined {
  const refused = failures.filter(({ code, status }) => code === 'denied' && status !== undefined);
  const first = refused.find(({ login }) => login !== undefined);
  if (chosen?.code !== 'denied' || first === undefined) return chosen;
  return new ImageError(refusedText(first.endpoint ?? '', refused), { ...first, cause: first });
}

/**
 * Returns the failure of the source if it was asked, otherwise that of its mirrors, as temporary: "not found" in a
 * mirror may mean "not yet".
 */
function summary(failures: readonly { endpoint: Endpoint; error: ImageError }[], { registry }: Reference): ImageError {
  const source = failures.find(({ endpoint }) => endpoint.isSource)?.error;
  const mirrors = failures.filter(({ endpoint }) => !endpoint.isSource);
  if (source !== undefined && mirrors.length === 0) return source;
  const errors = mirrors.map((failure) => failure.error);
  const chosen = source ?? mostUseful(errors);
  // A mirror that fails for the moment may have what the others lack.
  const error =
    source === undefined && chosen?.code === 'not-found'
      ? (errors.find(({ code, temporary }) => temporary && code !== 'not-found') ?? chosen)
      : chosen;
  if (error === undefined) {
    return new ImageError(`none of the mirrors of ${registry} may resolve tags`, {
      code: 'unsupported',
      endpoint: registry,
    });
  }
  const asked = mirrors.map(({ endpoint, error: { code } }) => `${endpoint.name} ${code}`).join(', ');
  const retry = failures.flatMap((failure) => failure.error.retryAfterMs ?? []);
  return new ImageError(
    `${error.message}; asked ${source === undefined ? 'instead of' : 'before'} ${registry}: ${asked}`,
    {
      ...error,
      temporary: source?.temporary ?? true,
      retryAfterMs: error.retryAfterMs === undefined ? undefined : Math.min(...retry),
      cause: error,
    },
  );
}

function late(target: Target, problem: string, milliseconds: number, isUnasked = false): ImageError {
  const endpoint = labelOf(target);
  const message = `${endpoint} ${problem} within ${Math.round(milliseconds / 100) / 10} s`;
  return new ImageError(message, { code: 'timeout', endpoint, isUnasked });
}
