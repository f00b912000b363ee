import { onAbort } from '../../kit/abort.ts';
import { type Askers, waitForTurn } from '../../kit/fairness/asking-namespaces.ts';
import { createFairQueue } from '../../kit/fairness/fair-queue.ts';
import { createLru } from '../../kit/lru.ts';
import { labelOf } from '../endpoints/endpoint.ts';
import { ImageError, type RateLimit } from '../errors.ts';
import type { Credential } from '../http/transport.ts';
import type { Target } from './health.ts';
import type { Logins } from './logins.ts';

export type LeftOfLimit = Omit<RateLimit, 'registry'>;

/**
 * What a try has shown of its account: the registry answered (and accepted the login), refused it because of a limit, or failed.
 * Nothing: it was not made, and leaves its time to the next one.
 */
type PaceOutcome =
  | { readonly kind: 'answered'; readonly hasWorked: boolean; readonly left?: LeftOfLimit | undefined }
  | { readonly kind: 'limited'; readonly retryAfterMs: number | undefined }
  | { readonly kind: 'failed' };

/** A try that counts for its account until it ends. Only the first end counts. */
export type Try = { readonly account: object; end(outcome?: PaceOutcome): void };

/** For how long somebody waits for a turn. */
type Patience = {
  /** When the lookup began to wait. */
  readonly since: number;
  /** Whether there is no other endpoint to go on to, so that it is worth waiting for an account that does not answer at all. */
  readonly isLast: boolean;
};

/**
 * Keeps to the limits that registries put on an account. Registries rarely say what their limit is, so the pace is found out: a refusal
 * stops all tries of an account for as long as the registry asks, else for a second, doubled while refusals go on. Then one try goes first.
 * The pace grows with each answer, fast until the second refusal, and falls by a fifth with each refusal. Where a registry says how much is
 * left, the last tenth is asked for slowly. A limit is a queue and not a failure: who waits in it is not refused as long as it moves.
 *
 * A registry may pass on the limit of another one for one project. So only projects that met a limit share the pace of their account, and
 * one that is refused while the others are answered gets a pace of its own.
 *
 * A login that has not worked at a host yet (logins.ts) has one try at a time there, in one line for all its projects.
 */
export type PacesState = ReturnType<typeof createPaces>;

export type PacesOptions = {
  readonly logins: Pick<Logins, 'isProven' | 'accepted'>;
  readonly now: () => number;
  readonly after: (ms: number, action: () => void) => () => void;
  /** Milliseconds without an answer after which nobody waits for an account any more. Default: 30 s. */
  readonly patienceMs?: number | undefined;
  /** Ends all waits; default: never. */
  readonly waitsUntil?: AbortSignal | undefined;
};

const NO_PROGRESS = 30_000;
const NEVER = new AbortController().signal;
/** The longest time in a queue, in milliseconds, however well it moves. */
export const LONGEST_WAIT = 900_000;
/** The longest time for which one try that does not end keeps the next one from being made, in milliseconds. */
const PROBE = 5000;
/** The refusals in a row of one project, while others of its account are answered, that show that its limit is its own. */
const OWN_LIMIT = 3;
/** Authors of pods choose names and logins. What is forgotten is learned again. */
const MAX_BYTES = 2 * 1024 * 1024;
const MOST_ACCOUNTS = 5000;
/** Milliseconds between two looks whether it is worth waiting on. */
const LOOK = 1000;
/** Milliseconds to pause where the registry names no time; doubled up to the longest: a used-up account is asked once a minute. */
const [FIRST_PAUSE, LONGEST_PAUSE] = [1000, 60_000];
/** The longest pause that a registry may ask for, in milliseconds. */
const LONGEST_RETRY_AFTER = 300_000;
/** The longest pause after which an account that answered before it is waited for, in times of the patience. */
const MOST_HOPEFUL = 3;
/** Tries per second: the slowest pace, what each answer adds to it before the second refusal and after it, and what a refusal leaves. */
const SLOWEST = 0.2;
const FAST_GROWTH = 0.5;
const GROWTH = 0.07;
const DECREASE = 0.8;
/** The part of a limit after which tries slow down if the registry says how much is left, and the window if it names none. */
const FEW = 0.1;
const WINDOW_SECONDS = 60;
/** A limit that refused nothing for so long is forgotten, in milliseconds. */
const FORGOTTEN = 600_000;

type Limit = {
  /** Tries per second. */
  rate: number;
  pauseMs: number;
  readonly refusedAt: number;
  /** When the next try may begin. */
  nextAt: number;
  readonly growth: number;
  /** Until when it counts as answering, because it answered before its last pause. */
  readonly hopeUntil: number;
  /** Whether nothing was answered since the last refusal. */
  isRefusing: boolean;
  /** Whether the registry refused nothing yet, and only says that few requests are left. */
  readonly isForeseen: boolean;
};

type Account = {
  readonly host: string;
  /** For the line of a login that had not worked at the host: whether it has by now. */
  readonly isProven: (() => boolean) | undefined;
  readonly line: ReturnType<typeof createFairQueue<() => void>>;
  running: number;
  /** When the last try began. */
  startedAt: number;
  /** When a project was last answered that keeps to the pace. */
  answeredAt: number;
  /** When the present second of answers began, and how many there were. */
  recent: { at: number; count: number };
  limit?: Limit | undefined;
  stopTick?: (() => void) | undefined;
};

/** A project that met a limit lately, with one login: until when that counts, its refusals in a row, and the account of its own. */
type Met = Readonly<Record<'until' | 'refusals' | 'refusedAt', number>> & { readonly own: Account | undefined };

/** Creates the paces; no account is limited yet. */
export function createPaces({ patienceMs = NO_PROGRESS, waitsUntil = NEVER, ...options }: PacesOptions) {
  return {
    ...{ ...options, patienceMs, waitsUntil, accounts: createLru<Account>(MOST_ACCOUNTS) },
    /** For projects that met no limit. */
    free: createAccount(''),
    /** Those in whose line somebody waits. */
    waitedFor: new Set<Account>(),
    projects: createLru<Met>(MAX_BYTES, (_value, key) => 500 + 2 * key.length),
  };
}

/** The pace at which one account (a host and a login) may be asked for the images of one project. */
export type Pace = ReturnType<typeof paceOf>;

/** Returns the pace for a project: of its own, or as one of those that share that of the account. `account`: the one that is asked. */
export function paceOf(paces: PacesState, target: Target, credential: Credential | undefined) {
  const { host } = target.endpoint;
  const fingerprint = credential?.fingerprint ?? '';
  const project = `${target.place.project.key} ${fingerprint}`;
  const shared = accountOf(paces, `${target.place.host.key} ${fingerprint}`, host);
  const isProven = () => credential === undefined || paces.logins.isProven(target, credential);
  const met = metBy(paces, project);
  const unmet = () => (isProven() ? paces.free : accountOf(paces, `login ${host} ${fingerprint}`, host, isProven));
  const account = met === undefined ? unmet() : (met.own ?? shared);
  return { paces, target, credential, project, shared, account };
}

/** Begins a try, or goes on with the one whose turn it is; undefined if the account is not to be asked now. */
export function startTry(pace: Pace, turn?: Try): Try | undefined {
  if (turn?.account === pace.account) return turn;
  return pace.account.line.size === 0 && mayStart(pace.paces, pace.account) ? begin(pace) : undefined;
}

/**
 * Begins a try when it is the turn of one of the namespaces; namespaces take turns.
 *
 * @throws ImageError as {@link paceRefusal} if the account makes no progress, or the wait gets too long; the signal's reason
 */
export async function turnOf(pace: Pace, askers: Askers, patience: Patience, signal: AbortSignal): Promise<Try> {
  const { paces, account } = pace;
  const over = new AbortController();
  let stop = (): void => {};
  const look = (): void => {
    if (isHopeful(paces, account, patience)) stop = paces.after(LOOK, look);
    else over.abort(paceRefusal(pace));
  };
  look();
  const forget = onAbort(signal, () => over.abort(signal.reason));
  const stay = onAbort(paces.waitsUntil, look);
  try {
    const turn = waitForTurn<Try>(askers, over.signal, (namespace, start) =>
      account.line.add(namespace, () => start(begin(pace))),
    );
    advance(paces, account);
    return await turn;
  } finally {
    forget();
    stay();
    stop();
    // Nobody is left for whom a timer would be kept.
    if (account.line.size === 0) advance(paces, account);
  }
}

/** Returns why the account is not to be asked now. */
export function paceRefusal({ paces, target, account }: Pace): ImageError {
  const label = labelOf(target);
  const { limit } = account;
  const inMs = Math.max(waitOf(paces, account), 1000);
  const reached = limit?.isForeseen ? 'few requests are left' : 'the limit of requests is reached';
  const why = limit === undefined ? 'its login is being tried' : reached;
  return new ImageError(`waits for its turn at ${label}, about ${Math.ceil(inMs / 1000)} s: ${why}`, {
    code: 'rate-limited',
    // Nobody can say how long it takes until a login has worked.
    retryAfterMs: limit && Math.min(inMs, Math.max(limit.nextAt - paces.now(), LONGEST_PAUSE)),
    endpoint: label,
    isUnasked: true,
  });
}

/** Returns the milliseconds until everybody who waits at a host[:port] had a turn; undefined if nobody waits, or it does not move. */
export function waitAt(paces: PacesState, host: string): number | undefined {
  const waits = [...paces.waitedFor]
    .filter((account) => account.host === host && account.limit !== undefined && isProgressing(paces, account))
    .map((account) => waitOf(paces, account));
  return waits.length === 0 ? undefined : Math.max(...waits);
}

function begin(pace: Pace): Try {
  const { paces, account } = pace;
  const { limit } = account;
  const startedAt = paces.now();
  account.running += 1;
  account.startedAt = startedAt;
  if (limit !== undefined) limit.nextAt = Math.max(startedAt, limit.nextAt) + 1000 / limit.rate;
  let hasEnded = false;
  const end = (outcome?: PaceOutcome): void => {
    if (hasEnded) return;
    hasEnded = true;
    account.running -= 1;
    if (outcome === undefined && limit !== undefined && limit === account.limit) limit.nextAt -= 1000 / limit.rate;
    if (outcome?.kind === 'answered') learnAnswer(pace, startedAt, outcome);
    else if (outcome?.kind === 'limited') meet(pace, startedAt, outcome.retryAfterMs);
    advance(paces, account);
  };
  return { account, end };
}

function advance(paces: PacesState, account: Account): void {
  while (account.line.size > 0 && mayStart(paces, account)) account.line.take()?.();
  account.stopTick?.();
  account.stopTick = undefined;
  if (account.line.size === 0) paces.waitedFor.delete(account);
  else {
    paces.waitedFor.add(account);
    // A try that does not end, and that nobody reports, lets the next one go after a while.
    const left = (account.limit?.nextAt ?? 0) - paces.now();
    account.stopTick = paces.after(left > 0 ? left : LOOK, () => advance(paces, account));
  }
}

function mayStart(paces: PacesState, account: Account): boolean {
  const now = paces.now();
  const { running, startedAt, isProven } = account;
  const limit = limitOf(paces, account);
  const mayTry = running === 0 || now - startedAt > PROBE;
  if (isProven !== undefined) return mayTry || isProven();
  return limit === undefined || (now >= limit.nextAt && (!limit.isRefusing || mayTry));
}

/** Whether it is worth waiting: a limit that was met just now may be a short one. */
function isHopeful(paces: PacesState, account: Account, { since, isLast }: Patience): boolean {
  const now = paces.now();
  if (paces.waitsUntil.aborted || now - since >= LONGEST_WAIT) return false;
  if (isProgressing(paces, account)) return true;
  const nextInMs = (account.limit?.nextAt ?? now) - now;
  return isLast && Math.max(nextInMs, now - since) < paces.patienceMs;
}

/** Whether the account has answered lately, so that it is worth waiting for a turn. */
export function isProgressing({ now, patienceMs }: PacesState, { answeredAt, limit }: Account): boolean {
  return limit === undefined || now() - answeredAt < patienceMs || now() < limit.hopeUntil;
}

function waitOf({ now }: PacesState, { line, limit }: Account): number {
  return limit === undefined ? 0 : Math.max(limit.nextAt - now(), 0) + (1000 * line.size) / limit.rate;
}

/** Returns the limit of an account, unless it has refused nothing for long. */
function limitOf({ now }: PacesState, account: Account): Limit | undefined {
  if (account.limit !== undefined && now() - account.limit.refusedAt >= FORGOTTEN) account.limit = undefined;
  return account.limit;
}

function metBy({ projects, now }: PacesState, project: string): Met | undefined {
  const known = projects.get(project);
  return known !== undefined && known.until > now() ? known : undefined;
}

function learnAnswer(pace: Pace, startedAt: number, { hasWorked, left }: PaceOutcome & { kind: 'answered' }): void {
  const { paces, account, shared, project, credential } = pace;
  const now = paces.now();
  const { limit } = account;
  account.answeredAt = now;
  if (limit !== undefined && startedAt >= limit.refusedAt) {
    limit.isRefusing = false;
    limit.pauseMs = FIRST_PAUSE;
    limit.rate += limit.growth;
  }
  if (now - shared.recent.at >= 1000) shared.recent = { at: now, count: 0 };
  shared.recent.count += 1;
  const before = metBy(paces, project);
  if (before !== undefined) paces.projects.set(project, { ...before, refusals: 0 });
  if (left !== undefined) learnLeft(pace, left);
  if (hasWorked && credential !== undefined) paces.logins.accepted(pace.target, credential);
}

/** Records that a project met a limit, and what that says of the account whose limit it is. */
function meet({ paces, project, shared, account }: Pace, startedAt: number, retryAfterMs: number | undefined): void {
  const now = paces.now();
  const before = metBy(paces, project);
  let own = before?.own;
  if (before === undefined || startedAt >= before.refusedAt) {
    const refusals = (before?.refusals ?? 0) + 1;
    if (before === undefined) shared.answeredAt = Math.max(shared.answeredAt, shared.recent.at);
    const areOthersAnswered = before !== undefined && shared.answeredAt > before.refusedAt;
    const { host, answeredAt, recent } = shared;
    const isOwn = refusals >= OWN_LIMIT && areOthersAnswered;
    own ??= isOwn ? { ...createAccount(host), answeredAt, recent } : undefined;
    paces.projects.set(project, { until: now + FORGOTTEN, refusals, refusedAt: now, own });
  }
  const limited = own ?? shared;
  // A refused try of a project that had met no limit tells nothing new.
  if (limited === account || limitOf(paces, limited) === undefined)
    learnRefusal(paces, limited, startedAt, retryAfterMs);
}

function learnRefusal(paces: PacesState, account: Account, startedAt: number, retryAfterMs: number | undefined): void {
  const now = paces.now();
  const limit = limitOf(paces, account);
  const asked = retryAfterMs === undefined ? undefined : Math.min(retryAfterMs, LONGEST_RETRY_AFTER);
  // Those that were under way at the last refusal tell nothing new.
  if (limit !== undefined && startedAt < limit.refusedAt) {
    limit.nextAt = Math.max(limit.nextAt, now + (asked ?? 0));
    return;
  }
  const rate = limit?.rate ?? account.recent.count;
  const pauseMs = limit?.isRefusing ? Math.min(limit.pauseMs * 2, LONGEST_PAUSE) : FIRST_PAUSE;
  const pause = asked ?? pauseMs;
  const hasAnswered = limit === undefined ? account.answeredAt > Number.NEGATIVE_INFINITY : !limit.isRefusing;
  // It answered before the pause, so it is likely to answer after it.
  const isShort = hasAnswered && pause <= MOST_HOPEFUL * paces.patienceMs;
  account.limit = {
    hopeUntil: isShort ? now + pause + paces.patienceMs : (limit?.hopeUntil ?? 0),
    // A refused probe says nothing of the pace.
    rate: limit?.isRefusing ? rate : Math.max(rate * DECREASE, SLOWEST),
    growth: limit === undefined ? FAST_GROWTH : GROWTH,
    pauseMs,
    refusedAt: now,
    nextAt: now + pause,
    isRefusing: true,
    isForeseen: false,
  };
}

/**
 * Learns what the registry says. What is left is spread over the window, but never slower than {@link SLOWEST}: a word may delay
 * no more than refusals.
 */
function learnLeft({ paces, project, shared }: Pace, { limit: most, remaining, windowSeconds }: LeftOfLimit): void {
  const now = paces.now();
  const met = metBy(paces, project);
  const account = met?.own ?? shared;
  const limit = limitOf(paces, account);
  const rate = Math.max(remaining / (windowSeconds || WINDOW_SECONDS), SLOWEST);
  if (remaining > most * FEW) {
    if (limit?.isForeseen) account.limit = undefined;
    return;
  }
  if (limit !== undefined) limit.rate = Math.min(limit.rate, rate);
  else {
    const nextAt = now + 1000 / rate;
    const usual = { growth: FAST_GROWTH, pauseMs: FIRST_PAUSE, refusedAt: now, isRefusing: false };
    account.limit = { ...usual, hopeUntil: now + paces.patienceMs, rate, nextAt, isForeseen: true };
  }
  if (met === undefined)
    paces.projects.set(project, { until: now + FORGOTTEN, refusals: 0, refusedAt: now, own: undefined });
}

function accountOf({ accounts }: PacesState, key: string, host: string, isProven?: () => boolean): Account {
  const account = accounts.get(key) ?? createAccount(host, isProven);
  accounts.set(key, account);
  return account;
}

function createAccount(host: string, isProven?: () => boolean): Account {
  return {
    ...{ host, isProven, line: createFairQueue<() => void>(), running: 0, startedAt: 0 },
    answeredAt: Number.NEGATIVE_INFINITY,
    recent: { at: Number.NEGATIVE_INFINITY, count: 0 },
  };
}
