import { onAbort } from '../../kit/abort.ts';
import type { Clock } from '../../kit/clock.ts';
import { createAllowance } from '../../kit/fairness/allowance.ts';
import { createFairQueue } from '../../kit/fairness/fair-queue.ts';
import { createLedger } from '../../kit/fairness/ledger.ts';
import { createTurns, inTurns } from '../../kit/fairness/turns.ts';
import { type JsonObject, objectAt, stringAt, stringsAt } from '../../kit/json.ts';
import { isForbidden } from '../../kube/errors.ts';
import type { EventRecorder, Regarding } from '../../kube/events.ts';
import type { Store } from '../../kube/watch/store.ts';
import { type DropSide, type DropVerdict, dropNote, judgeDrop } from '../../placement/dropped/judge-drop.ts';
import { addPod, createWorkloads, knownSet, type Suspect, suspectsIn } from '../../placement/dropped/suspect.ts';
import { onlySchedulable } from '../../placement/images.ts';
import { type Node, nodeArchitecture } from '../../placement/nodes/node.ts';
import { isOfKubernetes } from '../../placement/objects/kinds.ts';
import type { Namespace } from '../../placement/objects/namespace.ts';
import { type Owner, type Pod, readOwner, readPod, readTemplate } from '../../placement/objects/pod.ts';
import { settingsFor } from '../../placement/policy.ts';
import type { Settings } from '../../placement/settings.ts';
import { createAnnouncer } from '../announce.ts';
import type { ImageSource } from '../image-source.ts';
import { createRecords, type ObjectRecord } from '../object-record.ts';

export type DropOptions = {
  readonly pods: Store<Pod>;
  readonly nodes: Pick<Store<Node>, 'get'>;
  readonly namespaces: Pick<Store<Namespace>, 'get'>;
  readonly podStates: ReadonlyMap<string, ObjectRecord>;
  readonly daemonSetStates: ReadonlyMap<string, ObjectRecord>;
  readonly settings: () => Settings;
  readonly clusterArchitectures: () => readonly string[];
  readonly images: Pick<ImageSource, 'answer' | 'namesOf'>;
  /** Reads an object by its path; undefined if it is gone. Throws what the API server refuses. */
  readonly readObject: (path: string, signal: AbortSignal) => Promise<JsonObject | undefined>;
  readonly events: Pick<EventRecorder, 'emit'>;
  readonly clock: Clock;
};

/** Notices workloads whose newest template runs on fewer architectures than what runs now. */
export type ArchitectureDrops = {
  /** Call it when a pod or a template was decided, or is gone. All pods are looked at a little later. */
  changed(): void;
  /** Counts the workloads with running pods on nodes that their newest template cannot use. */
  count(): number;
  run(signal: AbortSignal): Promise<void>;
};

/** Milliseconds from a change to the look at all pods, and for each pod of the cluster as much again. */
const SOON_MS = 1_000;
const PER_POD_MS = 0.1;
/** Milliseconds between two looks while something was found or is not known yet, and nothing changes. */
const AGAIN_MS = 30_000;
/** The same while a lookup is under way. Its answer may be good for seconds only (`images.cache.alwaysTagTtl`). */
const PENDING_MS = 500;
/** The same while nothing was found. */
const IDLE_MS = 24 * 60 * 60_000;
/** How long a verdict counts that found nothing: an override or a tag may change. */
const NONE_MS = 10 * 60_000;
const UNKNOWN_MS = 60_000;
/** The most workloads that are judged after one look at all pods: each costs four reads. */
const MOST_JUDGED = 20;
/** How many workloads of a namespace are judged at once, and how many a second after that. */
const OF_NAMESPACE = { burst: 20, perSecond: 0.2 } as const;
/** Bytes of the verdicts that are remembered. */
const LIMITS = { perGroup: 64 * 1024, inAll: 2 * 1024 * 1024, always: 4 * 1024 } as const;
const ENTRY_BYTES = 400;

/** What was found out about a suspect. */
type Judged = {
  readonly verdict: DropVerdict;
  readonly regarding: Regarding | undefined;
  /** Written once: a note with another count would be another Event. */
  readonly note: string;
  readonly until: number;
};

/** Creates the watcher. It keeps no list of workloads: what ran follows from the pods themselves, also after a restart. */
export function createArchitectureDrops(options: DropOptions): ArchitectureDrops {
  const { pods, nodes, namespaces, podStates, daemonSetStates, settings, images, events, clock } = options;
  const announcer = createAnnouncer(events, clock);
  const records = createRecords();
  const turns = createTurns(clock);
  const ledger = createLedger(LIMITS);
  const mayJudge = createAllowance({ ...OF_NAMESPACE, now: clock.monotonic });
  /** By the id of the suspicion. */
  const judged = new Map<string, Judged>();
  let stranded = 0;
  let isChanged = true;
  let wake = (): void => {};

  function forget(id: string): void {
    judged.delete(id);
    ledger.free(id);
    records.forget(id);
  }

  async function lookAtAll(): Promise<Suspect[]> {
    const workloads = createWorkloads();
    await inTurns(turns, pods.keys(), (key) => {
      const pod = pods.get(key);
      if (pod === undefined || pod.large !== undefined) return;
      const node = nodes.get(pod.nodeName ?? '');
      addPod(workloads, {
        ...{ key, pod, decision: podStates.get(key)?.decision },
        nodeArchitecture: node && nodeArchitecture(node),
      });
    });
    const counted = onlySchedulable(options.clusterArchitectures(), settings());
    const templateSetOf = (key: string) => knownSet(daemonSetStates.get(key)?.decision);
    const suspects: Suspect[] = [];
    await inTurns(turns, suspectsIn(workloads, counted, templateSetOf), (suspect) => {
      if (suspect !== undefined) suspects.push(suspect);
    });
    return suspects;
  }

  /** Looks at all pods, judges some workloads, and reports. Returns when to look again without a change. */
  async function look(signal: AbortSignal): Promise<number> {
    const suspects = await lookAtAll();
    const ids = new Set(suspects.map(({ id }) => id));
    for (const id of [...judged.keys()]) if (!ids.has(id)) forget(id);
    const due = createFairQueue<Suspect>();
    const now = clock.monotonic();
    for (const suspect of suspects) {
      if ((judged.get(suspect.id)?.until ?? 0) <= now) due.add(suspect.workload.namespace, suspect);
    }
    for (let left = MOST_JUDGED; left > 0 && !signal.aborted; ) {
      const suspect = due.take();
      if (suspect === undefined) break;
      if (!mayJudge(suspect.workload.namespace)) continue;
      left -= 1;
      keep(suspect, await judge(suspect, signal));
    }
    stranded = suspects.filter((suspect) => report(suspect)).length;
    if ([...judged.values()].some(({ verdict }) => verdict.kind === 'pending')) return PENDING_MS;
    return suspects.length > 0 ? AGAIN_MS : IDLE_MS;
  }

  function keep({ id, workload }: Suspect, found: Judged): void {
    const bytes = ENTRY_BYTES + id.length * 2 + found.note.length * 2;
    if (ledger.book(id, workload.namespace, bytes)) judged.set(id, found);
    else forget(id);
  }

  /** Writes the Event of a drop. Returns whether pods run on nodes that the newest template cannot use. */
  function report(suspect: Suspect): boolean {
    const found = judged.get(suspect.id);
    if (found?.verdict.kind !== 'drop' || found.regarding === undefined) return false;
    const { regarding, note } = found;
    const problem = { reason: 'ArchitectureDropped', action: 'Placing', note } as const;
    announcer.report(records.of(suspect.id, regarding.uid), regarding, problem);
    return strandedOf(suspect, found.verdict) > 0;
  }

  async function judge(suspect: Suspect, signal: AbortSignal): Promise<Judged> {
    const now = clock.monotonic();
    const nothing: Judged = {
      ...{ verdict: { kind: 'none' }, regarding: undefined, note: '', until: now + NONE_MS },
    };
    try {
      const [before, after] = await read(suspect, signal);
      if (before === undefined || after === undefined) return { ...nothing, until: 0 };
      const [old, next] = [await topOf(before.pod, signal), await topOf(after.pod, signal)];
      const isOther = old.regarding?.uid !== next.regarding?.uid && old.isRead && next.isRead;
      const isOlder = old.revision !== undefined && next.revision !== undefined && next.revision < old.revision;
      const isOrdered = suspect.isOrdered || (old.revision ?? 0) < (next.revision ?? 0);
      if (isOther || isOlder || !isOrdered) return nothing;
      const verdict = judgeDrop(before.side, after.side, after.settings, images.namesOf, {
        ranOn: ranOnOf(suspect),
        counted: onlySchedulable(options.clusterArchitectures(), after.settings),
      });
      const isFound = verdict.kind === 'drop';
      const note = isFound ? dropNote(verdict.drops, strandedOf(suspect, verdict)) : '';
      const until = { drop: Number.POSITIVE_INFINITY, none: now + NONE_MS, unknown: now + UNKNOWN_MS, pending: 0 };
      return { verdict, regarding: next.regarding, note, until: until[verdict.kind] };
    } catch (error) {
      if (signal.aborted) throw error;
      // The API server does not answer, or refuses to: it is asked again later.
      return { ...nothing, until: now + UNKNOWN_MS };
    }
  }

  /** Only what this process itself found for the images counts; what an earlier one wrote may have been a guess. */
  function ranOnOf({ before, ranOn }: Suspect): readonly string[] | undefined {
    const decision = podStates.get(before)?.decision;
    return decision?.kind === 'place' && decision.basis === 'images' ? ranOn : undefined;
  }

  async function read({ workload, before, after }: Suspect, signal: AbortSignal) {
    const pod = (key: string) => {
      const [namespace = '', name = ''] = key.split('/');
      return options.readObject(`/api/v1/namespaces/${namespace}/pods/${name}`, signal);
    };
    const old = await pod(before);
    const { namespace, name } = workload;
    const next =
      after === undefined
        ? await options.readObject(`/apis/apps/v1/namespaces/${namespace}/daemonsets/${name}`, signal)
        : await pod(after);
    return [old && sideOf(old, false), next && sideOf(next, after === undefined)] as const;
  }

  function sideOf(object: JsonObject, isDaemonSet: boolean) {
    const holder = isDaemonSet ? objectAt(objectAt(object, 'spec'), 'template') : object;
    const spec = objectAt(holder, 'spec');
    const template = readTemplate(objectAt(holder, 'metadata'), spec);
    const { namespace, name, uid, owner } = readPod(object);
    const seen = namespaces.get(namespace) ?? { name: namespace, labels: {}, preferred: undefined };
    const side: DropSide = {
      ...{ template, spec, status: isDaemonSet ? {} : objectAt(object, 'status') },
      answerOf: (image) => images.answer(image, namespace, template.pullSecrets),
    };
    const self: Owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name, uid };
    return {
      side,
      settings: settingsFor(settings(), { namespace: seen, labels: template.labels }),
      pod: { namespace, owner: isDaemonSet ? self : owner },
    };
  }

  /**
   * Returns the object that a user knows as the workload of a pod: what controls the pod's ReplicaSet or Job, else its owner. Without the
   * right to read these it is the ReplicaSet or the Job.
   */
  async function topOf({ namespace, owner }: { namespace: string; owner: Owner | undefined }, signal: AbortSignal) {
    if (owner === undefined) return { regarding: undefined, revision: undefined, isRead: true };
    const own: Regarding = { ...owner, namespace };
    const resource = isOfKubernetes(owner) && Object.hasOwn(MIDDLE, owner.kind) ? MIDDLE[owner.kind] : undefined;
    if (resource === undefined) return { regarding: own, revision: undefined, isRead: true };
    try {
      const path = `${resource[0]}/namespaces/${namespace}/${resource[1]}/${encodeURIComponent(owner.name)}`;
      // Whoever creates a pod writes its owner reference, so the object must be the one with this uid.
      const object = await options.readObject(path, signal);
      const metadata = objectAt(object ?? {}, 'metadata');
      if (object === undefined || stringAt(metadata, 'uid') !== owner.uid) throw new Error(`${path} is gone`);
      const top = readOwner(metadata);
      const revision = Number(stringsAt(metadata, 'annotations')[REVISION] ?? Number.NaN);
      return {
        regarding: top === undefined ? own : { ...top, namespace },
        revision: Number.isFinite(revision) ? revision : undefined,
        isRead: true,
      };
    } catch (error) {
      if (!isForbidden(error)) throw error;
      return { regarding: own, revision: undefined, isRead: false };
    }
  }

  function untilWoken(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      let forget = (): void => {};
      const end = (): void => {
        cancel();
        forget();
        wake = () => {};
        resolve();
      };
      const cancel = clock.after(ms, end);
      wake = end;
      forget = onAbort(signal, end);
    });
  }

  return {
    changed() {
      isChanged = true;
      wake();
    },
    count: () => stranded,
    async run(signal) {
      while (!signal.aborted) {
        isChanged = false;
        const againMs = await look(signal).catch((error: unknown) => {
          if (signal.aborted) return IDLE_MS;
          throw error;
        });
        if (!isChanged) {
          await untilWoken(againMs, signal);
        }
        await clock.delay(SOON_MS + pods.size * PER_POD_MS, signal);
      }
    },
  };
}

/** The objects between a pod and its workload, by kind. */
const MIDDLE: Readonly<Record<string, readonly [path: string, resource: string]>> = {
  ReplicaSet: ['/apis/apps/v1', 'replicasets'],
  Job: ['/apis/batch/v1', 'jobs'],
};
/** The Deployment controller numbers the templates of a Deployment on its ReplicaSets. */
const REVISION = 'deployment.kubernetes.io/revision';

function strandedOf({ running }: Suspect, { drops }: Extract<DropVerdict, { kind: 'drop' }>): number {
  const dropped = new Set(drops.flatMap((each) => each.dropped));
  return [...dropped].reduce((sum, name) => sum + (running.get(name) ?? 0), 0);
}
