import { onAbort } from '../kit/abort.ts';
import type { Askers } from './askers.ts';
import { EVERYBODY, type ImageCache, type Owner, type TagEntry } from './cache.ts';
import { type Candidate, createCandidates } from './candidates.ts';
import type { Circuits } from './circuit.ts';
import { type Endpoint, labelOf, type Target } from './endpoint.ts';
import { ImageError } from './errors.ts';
import type { Limiter } from './limiter.ts';
import { type Answer, createQuery } from './query.ts';
import type { Reference } from './reference.ts';
import { type Credential, type Send, withDeadline } from './transport.ts';

export type LookupTask = {
  readonly reference: Reference;
  /** In the order to be asked; not empty. */
  readonly endpoints: readonly Endpoint[];
  /** The credentials for an image's name at an endpoint, in the order to be tried; an anonymous try follows them. */
  readonly credentials: (credentialName: string, signal: AbortSignal) => Promise<readonly Credential[]>;
  /** What the tag stood for when it was last looked at. */
  readonly previous?: TagEntry;
  /** On whose behalf. */
  readonly askers: Askers;
  /** Milliseconds for asking. Of what is left, an endpoint gets an equal share with those after it. */
  readonly budgetMs: number;
  readonly signal: AbortSignal;
};

export type LookupAnswer = Answer & { readonly owner: Owner };

export type LookupOptions = {
  readonly send: Send;
  readonly cache: ImageCache;
  readonly circuits: Circuits;
  readonly limiter: Limiter;
  /** Whether an image's name may never be asked for anonymously. */
  readonly isPrivate: (name: string) => boolean;
  /** Milliseconds for which a refused credential is not tried again. */
  readonly refusedMs: number;
  readonly now: () => number;
};

/** So many budgets long a look-up waits for its turn at a host that answers. */
const PATIENCE = 10;

/** Asks for one image wherever it may be, with as few requests as will do. */
export type Lookup = {
  /** @throws ImageError, or the signal's reason */
  (task: LookupTask): Promise<LookupAnswer>;
  /** Tries credentials again that were refused. */
  forgive(): void;
};

export function createLookup(options: LookupOptions): Lookup {
  const { circuits, now } = options;
  const query = createQuery(options);
  const candidates = createCandidates(options);

  async function lookup(task: LookupTask): Promise<LookupAnswer> {
    const { reference, endpoints, budgetMs } = task;
    const failures: { endpoint: Endpoint; error: ImageError }[] = [];
    const able = endpoints.filter((endpoint) => endpoint.resolvesTags || reference.digest !== undefined);
    let spent = 0;
    for (const [index, endpoint] of able.entries()) {
      try {
        const open = circuits.open(endpoint.host, task.askers.names());
        if (open !== undefined) throw open;
        const release = await takePlace(endpoint, task);
        const started = now();
        const share = Math.max((budgetMs - spent) / (able.length - index), 1);
        try {
          // The host may have failed others while this one waited.
          const refusal = circuits.refusal(endpoint.host, task.askers.names());
          if (refusal !== undefined) throw refusal;
          return await withDeadline(
            share,
            task.signal,
            () => late(labelOf({ endpoint, reference }), 'did not answer', share),
            (signal) => askEndpoint(endpoint, { ...task, signal }),
          );
        } finally {
          release();
          spent += now() - started;
        }
      } catch (error) {
        if (task.signal.aborted || !(error instanceof ImageError)) throw error;
        failures.push({ endpoint, error });
      }
    }
    throw summary(failures, reference);
  }

  /** Waits for as long as the host answers others, within reason: that it has much to do is no failure of the image. */
  async function takePlace(endpoint: Endpoint, { askers, reference, budgetMs, signal }: LookupTask) {
    const isProven = (): boolean => circuits.isHealthy(endpoint.host);
    const patience = new AbortController();
    const forget = onAbort(signal, () => patience.abort(signal.reason));
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
      if (isProven() && turns < PATIENCE) return;
      patience.abort(late(labelOf({ endpoint, reference }), 'had no free place', turns * budgetMs));
    }, budgetMs);
    try {
      return await options.limiter.acquire({ host: endpoint.host, askers, isProven }, patience.signal);
    } finally {
      clearInterval(timer);
      forget();
    }
  }

  async function askEndpoint(endpoint: Endpoint, task: LookupTask): Promise<LookupAnswer> {
    const { reference, signal, previous } = task;
    const target = { endpoint, reference };
    const own: Candidate[] = [...(await task.credentials(endpoint.credentialName, signal))];
    const isPrivate = options.isPrivate(reference.name) || options.isPrivate(endpoint.credentialName);
    if (!isPrivate) own.push(undefined);
    const failures: ImageError[] = [];
    const generation = candidates.generation();
    for (const credential of candidates.order(target, own)) {
      const refusal = candidates.refusal(target, credential);
      if (refusal !== undefined) {
        failures.push(refusal);
        continue;
      }
      try {
        const answer = await query({ ...target, credential, isPrivate, signal }, previous);
        circuits.settled(endpoint.host, task.askers.names(), undefined);
        candidates.worked(target, credential);
        return { ...answer, owner: credential === undefined || credential.shared ? EVERYBODY : credential.fingerprint };
      } catch (error) {
        if (!(error instanceof ImageError)) throw error;
        // A token service that fails for each credential in turn has failed once.
        if (!failures.some(isOutage) || !isOutage(error)) circuits.settled(endpoint.host, task.askers.names(), error);
        if (!error.byCredential && !['denied', 'not-found', 'rate-limited'].includes(error.code)) throw error;
        candidates.failed(target, credential, error, generation);
        failures.push(error);
      }
    }
    throw mostTelling(failures) ?? withoutCredential(target);
  }

  return Object.assign(lookup, { forgive: candidates.forgive });
}

function isOutage({ code }: ImageError): boolean {
  return code === 'unavailable' || code === 'timeout';
}

/**
 * Of all that was tried: what may pass by itself, then what a credential could change, that of the first credential
 * first. Without credentials a "does not exist" is the registry's word; with some of them refused it is not.
 */
function mostTelling(failures: readonly ImageError[]): ImageError | undefined {
  const limited = failures.filter(({ code }) => code === 'rate-limited');
  if (limited.length > 0) {
    // Whose pause is over first may be asked first.
    return limited.reduce((one, other) => ((other.retryAfterMs ?? 0) < (one.retryAfterMs ?? 0) ? other : one));
  }
  return (
    failures.find(({ byCredential, temporary }) => byCredential && temporary) ??
    failures.find(({ byCredential, code }) => byCredential || code === 'denied') ??
    failures.find(({ code }) => code === 'not-found') ??
    failures[0]
  );
}

/** The source's word where it was asked, else what its mirrors said, which may pass: "not found" may be "not yet". */
function summary(failures: readonly { endpoint: Endpoint; error: ImageError }[], { registry }: Reference): ImageError {
  const source = failures.find(({ endpoint }) => endpoint.isSource)?.error;
  const mirrors = failures.filter(({ endpoint }) => !endpoint.isSource);
  if (source !== undefined && mirrors.length === 0) return source;
  const error = source ?? mostTelling(mirrors.map((failure) => failure.error));
  if (error === undefined) {
    return new ImageError(`none of the mirrors of ${registry} may say what a tag stands for`, {
      code: 'unsupported',
      temporary: false,
      endpoint: registry,
    });
  }
  const told = mirrors.map(({ endpoint, error: { code } }) => `${endpoint.name} ${code}`).join(', ');
  const retry = failures.flatMap((failure) => failure.error.retryAfterMs ?? []);
  return new ImageError(
    `${error.message}; asked ${source === undefined ? 'in place of' : 'before'} ${registry}: ${told}`,
    {
      code: error.code,
      temporary: source?.temporary ?? true,
      ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: Math.min(...retry) }),
      ...(error.endpoint === undefined ? {} : { endpoint: error.endpoint }),
      isSingleManifest: error.isSingleManifest,
      cause: error,
    },
  );
}

function withoutCredential(target: Target): ImageError {
  const { name } = target.reference;
  return new ImageError(`registries.private allows no anonymous request for ${name}, and no credential matches it`, {
    code: 'denied',
    temporary: false,
    endpoint: labelOf(target),
  });
}

function late(endpoint: string, problem: string, milliseconds: number): ImageError {
  return new ImageError(`${endpoint} ${problem} within ${Math.round(milliseconds / 100) / 10} s`, {
    code: 'timeout',
    temporary: true,
    endpoint,
  });
}
