import type { NodeCount } from '../../placement/nodes/counts.ts';
import { type Facts, hasLeader, isGuess, metricsOf, type PoolFact, readValue, type WebhookFact } from './facts.ts';
import { isMissing, type Problem } from './problems.ts';

/** The output of `status` for programs. What could not be read is null; the reason is on standard error. */
export type Status = {
  readonly version: {
    /** Versions of the replicas; empty if none could be read. */
    readonly controller: readonly string[];
    readonly command: string;
    readonly installed: boolean;
    /** Null: there is none, or it could not be read. */
    readonly deployment: { namespace: string; name: string; ready: number; wanted: number } | null;
    readonly replicas: readonly ReplicaStatus[] | null;
  };
  readonly mode: { readonly placement: Facts['mode']; readonly configuration: Facts['origin'] };
  readonly leader: {
    readonly lease: string;
    readonly holder: string;
    readonly renewedSecondsAgo: number;
    readonly leads: boolean;
  } | null;
  readonly nodes: readonly NodeCount[] | null;
  /** Pods by outcome, as the leader counts them. */
  readonly pods: Readonly<Record<string, number>> | null;
  readonly waiting: {
    readonly count: number;
    readonly oldest: readonly { namespace: string; name: string; ageSeconds: number; gated: boolean; reason: string }[];
  } | null;
  readonly pools: readonly PoolFact[] | null;
  readonly webhook: WebhookFact;
  readonly problems: readonly Problem[];
};

type ReplicaStatus = {
  readonly name: string;
  readonly ready: boolean;
  readonly version: string | null;
  readonly leads: boolean | null;
  readonly configurationInUse: boolean | null;
};

/** Returns the facts in the documented shape. */
export function statusOf(facts: Facts, problems: readonly Problem[]): Status {
  const { commandVersion, mode, origin, deployment, replicas, lease, leaseName, nodes, waiting, pools, webhook } =
    facts;
  const held = readValue(lease);
  const seen = readValue(waiting);
  return {
    version: {
      controller: [...new Set(metricsOf(replicas).flatMap(({ version }) => version ?? []))].sort(),
      command: commandVersion,
      installed: !isMissing(facts),
      deployment: readValue(deployment) ?? null,
      replicas:
        readValue(replicas)?.map(({ name, ready, metrics }) => {
          const { version, leads, configurationInUse } = readValue(metrics) ?? {};
          const known = {
            version: version ?? null,
            leads: leads ?? null,
            configurationInUse: configurationInUse ?? null,
          };
          return { name, ready, ...known };
        }) ?? null,
    },
    mode: { placement: mode, configuration: origin },
    leader:
      held === undefined
        ? null
        : {
            lease: leaseName,
            holder: held.holder,
            renewedSecondsAgo: Math.round(held.ageMs / 1000),
            leads: hasLeader(facts) === true,
          },
    nodes: readValue(nodes)?.counts ?? null,
    pods: metricsOf(replicas).find(({ leads }) => leads)?.pods ?? null,
    waiting:
      seen === undefined
        ? null
        : {
            count: seen.count,
            oldest: seen.oldest.map(({ ageMs, ...pod }) => ({ ...pod, ageSeconds: Math.round(ageMs / 1000) })),
          },
    pools: readValue(pools) ?? null,
    webhook,
    problems,
  };
}

/** Returns one line for each part that could not be read, each reason once. */
export function unreadLines(facts: Facts): string[] {
  const { deployment, replicas, lease, nodes, waiting, troubles, pools, webhookConfiguration: webhook } = facts;
  const verdict = readValue(facts.guard);
  const guard = verdict?.kind === 'unknown' ? ({ kind: 'unread', why: verdict.why } as const) : facts.guard;
  const parts = { deployment, replicas, lease, nodes, waiting, troubles, pools, webhook, guard };
  const lines = Object.entries(parts).flatMap(([part, read]) =>
    read.kind === 'unread' ? [`${part}: ${read.why}`] : [],
  );
  const metrics = (readValue(replicas) ?? []).flatMap(({ metrics: read }) =>
    read.kind === 'unread' ? [`metrics: ${read.why}`] : [],
  );
  const configuration = isGuess(facts) ? ['configuration: not known; give it with --config'] : [];
  return [...configuration, ...lines, ...new Set(metrics)];
}
