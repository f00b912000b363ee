import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { milliseconds } from '../../kit/duration.ts';
import type { Regarding } from '../../kube/events.ts';
import { createLease } from '../../kube/lease.ts';
import { checkLeaseNamespace } from '../connect.ts';
import type { Base } from './base.ts';
import { leadInTurns } from './lead.ts';

/** The leadership: whether this replica leads, and whether any does. */
export type Leadership = Awaited<ReturnType<typeof createLeadership>>;

/** Prepares to take the Lease. Throws if its namespace does not exist. */
export async function createLeadership(base: Base) {
  const { config, client, clock, leaseClient, leaseNamespace, signal, end, log } = base;
  const { enabled, name, leaseDuration } = config.leaderElection;
  const identity = `${hostname()}-${randomUUID()}`;
  if (enabled) await checkLeaseNamespace(client, leaseNamespace, signal);
  const lease = createLease({
    client: leaseClient,
    namespace: leaseNamespace,
    name,
    identity,
    durationMs: milliseconds(leaseDuration),
    clock,
    onError: (err) => log.warn({ err, lease: `${leaseNamespace}/${name}` }, 'lease not renewed'),
  });
  /** The object for Events that are about archaware itself. */
  const regarding: Regarding = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    namespace: leaseNamespace,
    name,
    uid: '',
  };
  return {
    identity,
    regarding,
    /** Undefined without leader election. */
    lease: enabled ? lease : undefined,
    mayWrite: () => !enabled || lease.fresh(),
    /** Whether this replica or another one leads now. */
    hasLeader: () => (enabled ? lease.live() : !signal.aborted),
    /** Whether this replica has seen a leader since it started. */
    hasSeenLeader: () => !enabled || lease.introduced(),
    /** Runs a term each time that this replica leads, until SIGTERM. */
    lead: (term: (lost: AbortSignal) => Promise<void>): Promise<void> =>
      enabled ? leadInTurns(lease, term, signal, () => log.warn('lease lost: another replica may lead')) : term(end),
  };
}
