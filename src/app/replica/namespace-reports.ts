import type { ObjectRecord } from '../../controllers/memory.ts';
import { labelOf } from '../../controllers/readiness.ts';
import type { Clock } from '../../kit/clock.ts';
import { isoTime } from '../../kit/duration.ts';
import { createTurns, inTurns } from '../../kit/fairness/event-loop.ts';
import { LeaseLostError } from '../../kube/errors.ts';
import type { Writer } from '../../kube/writer.ts';
import type { Logger } from '../../observability/log.ts';
import { nodeArchitecture } from '../../placement/nodes/node.ts';
import { hasEnded } from '../../placement/objects/containers.ts';
import {
  LONGEST_REPORT,
  type Namespace,
  type NamespaceReport,
  readNamespaceReport,
  reportPatch,
} from '../../placement/objects/namespace.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import type { Base } from './base.ts';
import { isWaiting, taintedNodes } from './known.ts';
import type { Parts } from './parts.ts';
import { outcomeOf } from './serve-state.ts';

/** What a pod adds to the report about its namespace. */
export type CountedPod = {
  readonly pod: Pick<Pod, 'name' | 'createdAt'>;
  /** Undefined: it is not decided yet. */
  readonly record: Pick<ObjectRecord, 'decision' | 'settings'> | undefined;
  /** The architecture of its node; undefined: it runs nowhere. */
  readonly runsOn: string | undefined;
  /** Whether it has no node because of archaware. */
  readonly waits: boolean;
};

/** Counts the pods of a namespace, one after the other. */
export function createTally() {
  const policies = new Set<string>();
  const [pods, runsOn] = [new Map<string, number>(), new Map<string, number>()];
  let oldest: CountedPod['pod'] | undefined;
  const count = (counts: Map<string, number>, what: string | undefined) =>
    what === undefined ? undefined : counts.set(what, (counts.get(what) ?? 0) + 1);

  return {
    add({ pod, record, runsOn: architecture, waits }: CountedPod): void {
      count(runsOn, architecture);
      if (record?.decision !== undefined) {
        policies.add(record.settings?.policy ?? 'default');
        count(pods, outcomeOf(record.decision));
      }
      if (waits && (oldest === undefined || isBefore(pod, oldest))) oldest = pod;
    },
    /** Returns the report as JSON. If it would be too long, the last policies are left out. */
    report(time: string): string {
      const named = [...policies].sort();
      const text = (): string => {
        const report: NamespaceReport = {
          ...{ time, policies: named, pods: sorted(pods), runsOn: sorted(runsOn) },
          ...(oldest && { oldestWaiting: { name: oldest.name, since: isoTime(oldest.createdAt) } }),
        };
        return JSON.stringify(report);
      };
      while (named.length > 0 && Buffer.byteLength(text()) > LONGEST_REPORT) named.pop();
      return text();
    },
  };
}

function isBefore(one: CountedPod['pod'], other: CountedPod['pod']): boolean {
  return one.createdAt < other.createdAt || (one.createdAt === other.createdAt && one.name < other.name);
}

function sorted(counts: ReadonlyMap<string, number>): Readonly<Record<string, number>> {
  return Object.fromEntries([...counts].sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Returns the reports about these namespaces, by name, from what is in memory; undefined between terms. */
export async function gatherReports(
  { clock }: Pick<Base, 'clock'>,
  { running, watches }: Pick<Parts, 'running' | 'watches'>,
  wanted: ReadonlySet<string>,
): Promise<ReadonlyMap<string, string> | undefined> {
  const loops = running.loops();
  if (loops === undefined) return undefined;
  const settings = running.settings();
  const nodes = taintedNodes(watches.nodes.store.values(), settings);
  const tallies = new Map([...wanted].map((name) => [name, createTally()]));
  await inTurns(createTurns(clock), watches.pods.store.values(), (pod) => {
    const tally = tallies.get(pod.namespace);
    if (tally === undefined) return;
    const record = loops.podStates.get(`${pod.namespace}/${pod.name}`);
    const node = pod.nodeName === undefined ? undefined : watches.nodes.store.get(pod.nodeName);
    const runsOn =
      pod.nodeName === undefined || hasEnded(pod.phase) ? undefined : labelOf(node && nodeArchitecture(node));
    const waits = record !== undefined && isWaiting(pod, record, record.settings ?? settings, nodes);
    tally.add({ pod, record, runsOn, waits });
  });
  const time = isoTime(clock.wall());
  return new Map([...tallies].map(([name, tally]) => [name, tally.report(time)]));
}

const LOOK_MS = 30_000;
/** The least time between two writes to a namespace. */
const AGAIN_MS = 60_000;

type KeepReportsOptions = {
  readonly write: Writer;
  readonly namespaces: () => Iterable<Namespace>;
  /** Returns the reports about these namespaces; undefined between terms. Where one has none, what is there is removed. */
  readonly gather: (
    wanted: ReadonlySet<string>,
  ) => ReadonlyMap<string, string> | undefined | Promise<ReadonlyMap<string, string> | undefined>;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
};

/**
 * Keeps the report on the namespaces that ask for it, and removes it from all others: at most once in 60 s each, and only if more
 * than the time changed. Returns when the term is over. A write that fails is tried again after that time: nothing depends on it.
 */
export async function keepReports(options: KeepReportsOptions, over: AbortSignal): Promise<void> {
  const { write, namespaces, gather, clock, log } = options;
  /** When which namespace was last written to, by uid. */
  const written = new Map<string, number>();
  let isFailing = false;
  while (!over.aborted) {
    await clock.delay(LOOK_MS, over);
    const now = clock.monotonic();
    for (const [uid, at] of written) if (now - at >= AGAIN_MS) written.delete(uid);
    const concerned = [...namespaces()].filter(({ wantsReport, report }) => wantsReport ?? report !== undefined);
    const wanted = concerned.filter(({ wantsReport }) => wantsReport).map(({ name }) => name);
    const reports = over.aborted || concerned.length === 0 ? undefined : await gather(new Set(wanted));
    if (reports === undefined) continue;
    for (const namespace of concerned) {
      const { uid, name } = namespace;
      const report = reports.get(name);
      if (over.aborted || written.has(uid) || !differs(namespace, report, clock.wall())) continue;
      written.set(uid, now);
      try {
        await write({ kind: 'Namespace', name, action: 'report' }, reportPatch(namespace, report), over);
        isFailing = false;
      } catch (err) {
        if (err instanceof LeaseLostError) break;
        if (!isFailing && !over.aborted) log.warn({ err, namespace: name }, 'report not written to a namespace');
        isFailing = true;
      }
    }
  }
}

/** Whether a report has to be written or removed. Another leader may have written one just now. */
function differs({ report: present }: Namespace, next: string | undefined, now: number): boolean {
  if (next === undefined || present === undefined) return next !== present;
  const before = readNamespaceReport(present);
  if (before === undefined) return true;
  const ageMs = now - Date.parse(before.time);
  if (ageMs >= 0 && ageMs < AGAIN_MS) return false;
  return JSON.stringify({ ...before, time: '' }) !== JSON.stringify({ ...readNamespaceReport(next), time: '' });
}
