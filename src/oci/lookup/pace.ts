import { onAbort } from '../../kit/abort.ts';
import { type Askers, waitForTurn } from '../../kit/fairness/askers.ts';
import { createFairQueue } from '../../kit/fairness/fair-queue.ts';
import { createLru } from '../../kit/lru.ts';
import { labelOf } from '../endpoints/endpoint.ts';
import { ImageError } from '../errors.ts';
import type { Credential } from '../http/transport.ts';
import { createLimits, FORGOTTEN, type Left, type Limited, LONGEST_PAUSE } from './limit.ts';
import type { Logins } from './logins.ts';
import type { Target } from './place.ts';

/**
 * What a try has shown of its account: the registry answered (and accepted the login), refused it because of a limit, or failed.
 * Nothing: it was not made, and leaves its time to the next one.
 */
type Outcome =
  | { readonly kind: 'answered'; readonly hasWorked: boolean; readonly left?: Left | undefined }
  | { readonly kind: 'limited'; readonly retryAfterMs: number | undefined }
  | { readonly kind: 'failed' };

/** A try that counts for its account until it ends. Only the first end counts. */
export type Try = { readonly account: object; end(outcome?: Outcome): void };

/** For how long somebody waits for a turn. */
type Patience = {
  /** When the lookup began to wait. */
  readonly since: number;
  /** Whether there is no other endpoint to go on to, so that it is worth waiting for an account that does not answer at all. */
  readonly isLast: boolean;
};

/** The pace at which one account (a host and a login) may be asked for the images of one project. */
export type Pace = {
  /** That of a {@link Try} at this pace. */
  readonly account: object;
  /** Begins a try; undefined if the account is not to be asked now. */
  start(): Try | undefined;
  /**
   * Begins a try when it is the turn of one of the namespaces; namespaces take turns.
   *
   * @throws ImageError as {@link Pace.refusal} if the account makes no progress, or the wait gets too long; the signal's reason
   */
  turn(target: Target, askers: Askers, patience: Patience, signal: AbortSignal): Promise<Try>;
  /** Whether the account has answered lately, so that it is worth waiting for a turn. */
  isProgressing(): boolean;
  /** Why the account is not to be asked now. */
  refusal(target: Target): ImageError;
};

/**
 * Keeps to the limits that registries put on an account. Registries rarely say what their limit is, so the pace is found out
 * (limit.ts). A limit is a queue and not a failure: who waits in it is not refused as long as it moves.
 *
 * A registry may pass on the limit of another one for one project. So only projects that met a limit share the pace of their
 * account, and one that is refused while the others are answered gets a pace of its own.
 *
 * A login that has not worked at a host yet (logins.ts) has one try at a time there, in one line for all its projects.
 */
export type Paces = ReturnType<typeof createPaces>;

export type PacesOptions = {
  readonly logins: Pick<Logins, 'isProven' | 'worked'>;
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

type Account = Limited & {
  readonly host: string;
  /** For the line of a login that had not worked at the host: whether it has by now. */
  readonly isProven: (() => boolean) | undefined;
  readonly line: ReturnType<typeof createFairQueue<() => void>>;
  running: number;
  /** When the last try began. */
  startedAt: number;
  stopTick?: (() => void) | undefined;
};

/** Creates the paces; no account is limited yet. */
export function createPaces({ logins, now, after, patienceMs = NO_PROGRESS, waitsUntil = NEVER }: PacesOptions) {
  const limits = createLimits(now, patienceMs);
  const { isProgressing } = limits;
  const accounts = new Map<string, Account>();
  /** Those in whose line somebody waits. */
  const waitedFor = new Set<Account>();
  /** By project and login: those that met a limit, until when that counts, and their refusals in a row. */
  const projects = createLru<{
    readonly until: number;
    readonly refusals: number;
    readonly refusedAt: number;
    readonly isOwn: boolean;
  }>(MAX_BYTES, (_value, key) => 200 + 2 * key.length);

  /** What is known of a project that met a limit lately. */
  function limitOf(project: string) {
    const known = projects.get(project);
    return known !== undefined && known.until > now() ? known : undefined;
  }

  function accountOf(key: string, host: string, isProven?: () => boolean): Account {
    const known = accounts.get(key);
    if (known !== undefined) return known;
    // First those that met no limit: names cost nothing.
    for (const isKept of [(each: Account) => each.limit !== undefined, () => false]) {
      if (accounts.size < MOST_ACCOUNTS) break;
      for (const [other, each] of accounts)
        if (each.line.size + each.running === 0 && !isKept(each)) accounts.delete(other);
    }
    const account: Account = {
      host,
      isProven,
      line: createFairQueue(),
      running: 0,
      startedAt: 0,
      answeredAt: Number.NEGATIVE_INFINITY,
      recent: { at: 0, count: 0 },
    };
    accounts.set(key, account);
    return account;
  }

  /** Whether it is worth waiting: a limit that was met just now may be a short one. */
  function isHopeful(account: Account, { since, isLast }: Patience): boolean {
    if (waitsUntil.aborted || now() - since >= LONGEST_WAIT) return false;
    if (isProgressing(account)) return true;
    const { limit } = account;
    return isLast && limit !== undefined && limit.nextAt - now() < patienceMs && now() - since < patienceMs;
  }

  function mayStart(account: Account): boolean {
    const { running, startedAt, isProven } = account;
    const limit = limits.limitOf(account);
    const mayTry = running === 0 || now() - startedAt > PROBE;
    if (isProven !== undefined) return mayTry || isProven();
    return limit === undefined || (now() >= limit.nextAt && (!limit.isRefusing || mayTry));
  }

  /** Records that a project met a limit; returns the account whose limit it is. */
  function meet(project: string, own: Account, shared: Account, startedAt: number): Account {
    const before = limitOf(project);
    if (before !== undefined && startedAt < before.refusedAt) return before.isOwn ? own : shared;
    const refusals = (before?.refusals ?? 0) + 1;
    if (before === undefined) shared.answeredAt = Math.max(shared.answeredAt, own.answeredAt);
    const areOthersAnswered = before !== undefined && shared.answeredAt > before.refusedAt;
    const isOwn = before?.isOwn === true || (refusals >= OWN_LIMIT && areOthersAnswered);
    projects.set(project, { until: now() + FORGOTTEN, refusals, refusedAt: now(), isOwn });
    return isOwn ? own : shared;
  }

  function advance(account: Account): void {
    while (account.line.size > 0 && mayStart(account)) account.line.take()?.();
    account.stopTick?.();
    account.stopTick = undefined;
    if (account.line.size === 0) waitedFor.delete(account);
    else {
      waitedFor.add(account);
      // A try that does not end, and that nobody reports, lets the next one go after a while.
      const left = (account.limit?.nextAt ?? 0) - now();
      account.stopTick = after(left > 0 ? left : LOOK, () => advance(account));
    }
  }

  /** The pace of a project: of its own, or as one of those that share that of the account. */
  function paceOf(account: Account, project: string, own: Account, shared: Account, worked: () => void): Pace {
    function learnLeft(left: Left): void {
      const before = limitOf(project);
      const areFew = limits.learnLeft(before?.isOwn ? own : shared, left);
      if (areFew && before === undefined)
        projects.set(project, { until: now() + FORGOTTEN, refusals: 0, refusedAt: now(), isOwn: false });
    }

    function begin(): Try {
      const { limit } = account;
      const startedAt = now();
      account.running += 1;
      account.startedAt = startedAt;
      if (limit !== undefined) limit.nextAt = Math.max(startedAt, limit.nextAt) + 1000 / limit.rate;
      let hasEnded = false;
      return {
        account,
        end(outcome) {
          if (hasEnded) return;
          hasEnded = true;
          account.running -= 1;
          if (outcome === undefined && limit !== undefined && limit === account.limit)
            limit.nextAt -= 1000 / limit.rate;
          if (outcome?.kind === 'answered') {
            for (const each of [own, shared]) limits.countAnswer(each);
            limits.learnAnswer(account, startedAt);
            const before = limitOf(project);
            if (before !== undefined) projects.set(project, { ...before, refusals: 0 });
            if (outcome.left !== undefined) learnLeft(outcome.left);
            if (outcome.hasWorked) worked();
          } else if (outcome?.kind === 'limited') {
            const limited = meet(project, own, shared, startedAt);
            // A refused try of a project that had met no limit tells nothing new.
            if (limited === account || limits.limitOf(limited) === undefined)
              limits.learnRefusal(limited, startedAt, outcome.retryAfterMs);
          }
          advance(account);
        },
      };
    }

    const refusal = (target: Target): ImageError => {
      const label = labelOf(target);
      const { limit } = account;
      const inMs = Math.max(waitOf(account), 1000);
      const reached = limit?.isForeseen ? 'few requests are left' : 'the limit of requests is reached';
      const why = limit === undefined ? 'its login is being tried' : reached;
      return new ImageError(`waits for its turn at ${label}, about ${Math.ceil(inMs / 1000)} s: ${why}`, {
        code: 'rate-limited',
        // Nobody can say how long it takes until a login has worked.
        retryAfterMs: limit && Math.min(inMs, Math.max(limit.nextAt - now(), LONGEST_PAUSE)),
        endpoint: label,
        isUnasked: true,
      });
    };

    return {
      account,
      start: () => (account.line.size === 0 && mayStart(account) ? begin() : undefined),
      isProgressing: () => isProgressing(account),
      refusal,
      async turn(target, askers, patience, signal) {
        const over = new AbortController();
        let stop = (): void => {};
        const look = (): void => {
          if (isHopeful(account, patience)) stop = after(LOOK, look);
          else over.abort(refusal(target));
        };
        look();
        const forget = onAbort(signal, () => over.abort(signal.reason));
        const stay = onAbort(waitsUntil, look);
        try {
          const turn = waitForTurn<Try>(askers, over.signal, (namespace, start) =>
            account.line.add(namespace, () => start(begin())),
          );
          advance(account);
          return await turn;
        } finally {
          forget();
          stay();
          stop();
          // Nobody is left for whom a timer would be kept.
          if (account.line.size === 0) advance(account);
        }
      },
    };
  }

  function waitOf({ line, limit }: Account): number {
    if (limit === undefined) return 0;
    return Math.max(limit.nextAt - now(), 0) + (1000 * line.size) / limit.rate;
  }

  return {
    /** Returns the pace of an account. */
    of(target: Target, credential: Credential | undefined): Pace {
      const { endpoint, place } = target;
      const { host } = endpoint;
      const fingerprint = credential?.fingerprint ?? '';
      const project = `${place.project.key} ${fingerprint}`;
      const own = accountOf(project, host);
      const shared = accountOf(`${place.host.key} ${fingerprint}`, host);
      const limited = limitOf(project);
      const isProven = () => credential === undefined || logins.isProven(target, credential);
      const account =
        limited === undefined && !isProven()
          ? accountOf(`login ${host} ${fingerprint}`, host, isProven)
          : limited?.isOwn === false
            ? shared
            : own;
      return paceOf(account, project, own, shared, () => credential && logins.worked(target, credential));
    },
    /** Returns the milliseconds until everybody who waits at a host[:port] had a turn; undefined if nobody waits, or it does not move. */
    waitAt(host: string): number | undefined {
      const waits = [...waitedFor]
        .filter((account) => account.host === host && account.limit !== undefined && isProgressing(account))
        .map(waitOf);
      return waits.length === 0 ? undefined : Math.max(...waits);
    },
  };
}
