import type { NodeCount } from '../../analysis/nodes/counts.ts';
import type { LeaderStatus } from '../../app/leader-status.ts';
import type { Context } from '../../app/surroundings.ts';
import type { KeepVerdict } from '../../controllers/keep-watch.ts';
import { ApiError } from '../../kube/errors.ts';
import type { FoundDeployment, FoundLease } from '../../kube/installation.ts';
import type { Settings } from '../../placement/settings.ts';
import type { PoolProblem } from '../survey/survey.ts';

/** Something that was read, or the reason why not: a missing right, or what the API server answered. */
export type Read<T> = { readonly kind: 'read'; readonly value: T } | { readonly kind: 'unread'; readonly why: string };

/** A pod of archaware. */
export type Replica = {
  readonly name: string;
  readonly ready: boolean;
  /** Why it is not ready; empty if it is, or if the status does not say. */
  readonly trouble: string;
};

/** The Lease by which a leader is elected. */
export type LeaseFact = Pick<FoundLease, 'holder' | 'durationMs'> & {
  /** Milliseconds since the holder renewed it, by the clock of this machine. */
  readonly ageMs: number;
};

/** What a leader wrote, and what is known about that writer. */
export type LeaderWord = LeaderStatus & {
  /** Milliseconds since it was written, by the clock of this machine. A leader writes only if something changes. */
  readonly ageMs: number;
};

/** Whether the API server reaches the webhook. */
export type WebhookFact = { readonly state: 'off' | 'reached' | 'not-reached' | 'unknown'; readonly why: string };

/** Everything that `status` found out. */
export type Facts = {
  readonly commandVersion: string;
  /** The wall time of this machine. */
  readonly now: number;
  readonly mode: Settings['mode'];
  readonly taint: string;
  readonly origin: Context['origin'];
  /** Whether a leader is elected; without that, every replica works. */
  readonly elects: boolean;
  /** `namespace/name` of the Deployment. */
  readonly installation: string;
  /** `namespace/name` of the Lease. */
  readonly leaseName: string;
  /** Undefined: there is no Deployment. */
  readonly deployment: Read<FoundDeployment | undefined>;
  readonly replicas: Read<readonly Replica[]>;
  /** Undefined: there is no Lease. */
  readonly lease: Read<LeaseFact | undefined>;
  readonly nodes: Read<{
    readonly counts: readonly NodeCount[];
    /** Nodes that have no taint although the configuration gives them one. */
    readonly lacking: readonly string[];
    /** Nodes with taints of archaware that the configuration does not manage. */
    readonly unmanaged: readonly string[];
  }>;
  /** What the last leader wrote; undefined: nothing. */
  readonly word: Read<LeaderWord | undefined>;
  /** `namespace/name` of the ConfigMap in which it stands. */
  readonly wordName: string;
  /** The pools whose templates do not have what they need. */
  readonly pools: Read<readonly PoolProblem[]>;
  readonly webhook: WebhookFact;
  /** Whether updates that drop archaware's tolerations from DaemonSets are corrected, as a dry run found out. */
  readonly guard: Read<KeepVerdict>;
  /**
   * Whether the policy archaware-place places pods of published images; undefined: nothing should be published. Its value is undefined
   * if nothing is published yet.
   */
  readonly publication: Read<boolean | undefined> | undefined;
  /** Whether that policy still places pods although nothing should be published. */
  readonly placesByLeftovers: boolean;
  /** Whether the MutatingWebhookConfiguration is there; true where the configuration has no webhook. */
  readonly webhookConfiguration: Read<boolean>;
};

/** Runs one read. A refusal of the API server becomes the reason why there is no result; `right` names the missing right. */
export async function tried<T>(right: string, read: () => Promise<T>): Promise<Read<T>> {
  try {
    return { kind: 'read', value: await read() };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { kind: 'unread', why: error.status === 403 ? `needs the right to ${right}` : error.message };
  }
}

/** Returns the value that was read; undefined if it was not. */
export function readValue<T>(read: Read<T>): T | undefined {
  return read.kind === 'read' ? read.value : undefined;
}

/** Changes the value that was read. */
export function mapped<T, U>(read: Read<T>, change: (value: T) => U): Read<U> {
  return read.kind === 'read' ? { kind: 'read', value: change(read.value) } : read;
}

/** Whether a replica leads: its Lease is not older than it may be. Undefined: not known. */
export function hasLeader({ elects, lease }: Pick<Facts, 'elects' | 'lease'>): boolean | undefined {
  if (!elects || lease.kind === 'unread') return undefined;
  return lease.value !== undefined && lease.value.holder !== '' && lease.value.ageMs <= lease.value.durationMs;
}

/**
 * Whether what was written is the word of a leader of the past: its writer does not hold the Lease now. Where the Lease says nothing, the
 * writer may lead.
 */
export function isOfThePast(facts: Pick<Facts, 'elects' | 'lease'>, { writer }: Pick<LeaderWord, 'writer'>): boolean {
  const leads = hasLeader(facts);
  return leads === false || (leads === true && readValue(facts.lease)?.holder !== writer);
}

/** Returns what the present leader wrote; undefined if nothing can be said to be its word. */
export function presentWord(facts: Facts): LeaderWord | undefined {
  const word = readValue(facts.word);
  return word === undefined || isOfThePast(facts, word) ? undefined : word;
}

/** Whether something of the controller's was found, but not its configuration: what depends on that would be a guess. */
export function isGuess(facts: Facts): boolean {
  const isThere = readValue(facts.deployment) !== undefined || hasLeader(facts) === true;
  return facts.origin === 'unreadable' || (facts.origin === 'defaults' && isThere);
}

/** Whether neither the Deployment nor a leader could be looked for, so that nothing is known about the controller. */
export function isBlind(facts: Facts): boolean {
  return facts.deployment.kind === 'unread' && hasLeader(facts) === undefined;
}
