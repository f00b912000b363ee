import type { NodeCount } from '../../analysis/nodes/counts.ts';
import type { Problem } from '../../app/leader-status.ts';
import {
  type Facts,
  hasLeader,
  isGuess,
  isOfThePast,
  type PoolFact,
  presentWord,
  type Replica,
  readValue,
  type WebhookFact,
} from './facts.ts';
import { isMissing } from './problems.ts';

/** The output of `status` for programs. What could not be read is null; the reason is on standard error. */
export type Status = {
  readonly version: {
    /** The version of the leader; null: not known. */
    readonly controller: string | null;
    readonly command: string;
    readonly installed: boolean;
    /** Null: there is none, or it could not be read. */
    readonly deployment: { namespace: string; name: string; ready: number; wanted: number } | null;
    readonly replicas: readonly Pick<Replica, 'name' | 'ready'>[] | null;
  };
  readonly mode: { readonly placement: Facts['mode']; readonly configuration: Facts['origin'] };
  readonly leader: {
    readonly lease: string;
    readonly holder: string;
    readonly renewedSecondsAgo: number;
    readonly leads: boolean;
  } | null;
  /** Who wrote `pods`, `tooLarge` and `waiting`, and when. `leads`: whether the writer may lead now. */
  readonly written: { readonly by: string; readonly secondsAgo: number; readonly leads: boolean } | null;
  readonly nodes: readonly NodeCount[] | null;
  /** Pods by outcome, as that leader counted them. */
  readonly pods: Readonly<Record<string, number>> | null;
  /** Pods and DaemonSets that are not served because of their size. */
  readonly tooLarge: number | null;
  readonly waiting: {
    readonly count: number;
    readonly oldest: readonly { namespace: string; name: string; ageSeconds: number; gated: boolean; reason: string }[];
  } | null;
  readonly pools: readonly PoolFact[] | null;
  /** With `placement.publish`: what the leader has published, and whether pods are placed by it; null: not known. */
  readonly published?: {
    readonly images: number | null;
    readonly written: string | null;
    readonly inForce: boolean | null;
  };
  readonly webhook: WebhookFact;
  readonly problems: readonly Problem[];
};

/** Returns the facts in the documented shape. */
export function statusOf(facts: Facts, problems: readonly Problem[]): Status {
  const { commandVersion, mode, origin, deployment, replicas, lease, leaseName, nodes, pools, webhook } = facts;
  const held = readValue(lease);
  const word = readValue(facts.word);
  return {
    version: {
      controller: presentWord(facts)?.version ?? null,
      command: commandVersion,
      installed: !isMissing(facts),
      deployment: readValue(deployment) ?? null,
      replicas: readValue(replicas)?.map(({ name, ready }) => ({ name, ready })) ?? null,
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
    written:
      word === undefined
        ? null
        : { by: word.writer, secondsAgo: Math.round(word.ageMs / 1000), leads: !isOfThePast(facts, word) },
    nodes: readValue(nodes)?.counts ?? null,
    pods: word?.pods ?? null,
    tooLarge: word?.tooLarge ?? null,
    waiting:
      word === undefined
        ? null
        : {
            count: word.waiting.count,
            oldest: word.waiting.oldest.map(({ since, outlook: _, ...pod }) => ({
              ...pod,
              ageSeconds: Math.round((facts.now - Date.parse(since)) / 1000),
            })),
          },
    pools: readValue(pools) ?? null,
    ...publishedOf(facts),
    webhook,
    problems,
  };
}

function publishedOf(facts: Facts): Pick<Status, 'published'> {
  if (facts.publication === undefined) return {};
  const word = presentWord(facts)?.published;
  const inForce = readValue(facts.publication) ?? null;
  return { published: { images: word?.images ?? null, written: word?.written ?? null, inForce } };
}

/** Returns one line for each part that could not be read, each reason once. */
export function unreadLines(facts: Facts): string[] {
  const { deployment, replicas, lease, word, nodes, pools, webhookConfiguration: webhook } = facts;
  const verdict = readValue(facts.guard);
  const guard = verdict?.kind === 'unknown' ? ({ kind: 'unread', why: verdict.why } as const) : facts.guard;
  const parts = { deployment, replicas, lease, written: word, nodes, pools, webhook, guard };
  const lines = Object.entries(parts).flatMap(([part, read]) =>
    read.kind === 'unread' ? [`${part}: ${read.why}`] : [],
  );
  const configuration = isGuess(facts) ? ['configuration: not known; give it with --config'] : [];
  return [...configuration, ...lines];
}
