import { messageOf } from '../kit/errors.ts';
import { each } from '../kit/fairness/each.ts';
import type { JsonObject } from '../kit/json.ts';
import { type Operation, pointerPart } from '../kit/json-patch.ts';
import { isGone, LeaseLostError } from '../kube/errors.ts';
import { get } from '../kube/read.ts';
import { pathOf, type Writer } from '../kube/writer.ts';
import { MANAGED_ANNOTATION } from '../names.ts';
import { cleanNode } from '../placement/nodes/decide-node.ts';
import { type Node, readNode } from '../placement/nodes/node.ts';
import { type DaemonSet, readDaemonSet } from '../placement/objects/daemonset.ts';
import { type Namespace, readNamespace, reportPatch } from '../placement/objects/namespace.ts';
import { readPod } from '../placement/objects/pod.ts';
import { readPodRecord } from '../placement/objects/pod-record.ts';
import { disownPatch } from '../placement/patch/disown.ts';
import { daemonSetPatch, nodePatch, releasePatch } from '../placement/patch/patch.ts';
import { foundAgain, lostTolerations, withoutOurs } from '../placement/rollout/template.ts';
import { cleanTemplate } from './cleaned.ts';
import type { Item, OutcomeLedger, Row } from './outcomes.ts';
import type { LookOptions, OwnObject, PodName } from './traces.ts';

/** The input of a step of `clean`. The ledger records what the step did and what it could not do. */
export type StepOptions = Pick<LookOptions, 'client' | 'taints' | 'signal'> & {
  readonly write: Writer;
  readonly mayWrite: () => boolean;
  readonly ledger: OutcomeLedger;
};

const ATTEMPTS = 10;
const IN_FLIGHT = 8;

/** Removes the webhook configurations and policies, which would add tolerations again while `clean` removes them. */
export async function removeConfigurations(options: StepOptions, objects: readonly OwnObject[]): Promise<void> {
  const { client, mayWrite, signal } = options;
  for (const object of objects) {
    await doAndNote(options, 'configurations', object, async () => {
      if (!mayWrite()) throw new LeaseLostError('the lease was lost');
      await client.request('delete', object.path, { signal });
      return undefined;
    });
  }
}

/** Removes archaware's gate and record from every gated pod, so that it is scheduled as its author wrote it. */
export function ungatePods(options: StepOptions, pods: readonly PodName[]): Promise<void> {
  return changePods(options, 'gates', pods, (object) => {
    const pod = readPod(object);
    return pod.gated && releasePatch(pod, pod.gated, undefined);
  });
}

/** Removes archaware's record from pods with its affinity. The affinity itself cannot be removed from a pod, and is harmless. */
export function forgetPods(options: StepOptions, pods: readonly PodName[]): Promise<void> {
  return changePods(options, 'annotations', pods, (object) => {
    const path = `/metadata/annotations/${pointerPart(MANAGED_ANNOTATION)}`;
    if (readPodRecord(object) === undefined) return undefined;
    return [
      { op: 'test', path: '/metadata/uid', value: readPod(object).uid },
      { op: 'remove', path },
    ];
  });
}

/** Removes archaware's report from every namespace that has one. */
export function removeReports(options: StepOptions, namespaces: readonly Namespace[]): Promise<void> {
  return each(namespaces, IN_FLIGHT, async (namespace) => {
    const target = { kind: 'Namespace', name: namespace.name, action: 'report' } as const;
    await doAndNote(options, 'reports', target, () =>
      writeUntilClean(options, target, namespace, readNamespace, (now) =>
        now.report === undefined ? undefined : reportPatch(now, undefined),
      ),
    );
  });
}

function changePods(
  options: StepOptions,
  row: Row,
  pods: readonly PodName[],
  patchFor: (pod: JsonObject) => Operation[] | undefined,
): Promise<void> {
  return each(pods, IN_FLIGHT, async ({ namespace, name }) => {
    const target = { kind: 'Pod', namespace, name, action: 'release' } as const;
    // The answer to a write of a pod has only its metadata, so the pod is read again.
    const read = () => get(options.client, pathOf(target), options.signal);
    await doAndNote(options, row, target, async () => writeUntilClean(options, target, await read(), read, patchFor));
  });
}

/** Removes archaware's taints and labels from every node that has any. */
export function untaintNodes(options: StepOptions, nodes: readonly Node[]): Promise<void> {
  return each(nodes, IN_FLIGHT, async (node) => {
    const target = { kind: 'Node', name: node.name, action: 'untaint' } as const;
    await doAndNote(options, 'nodes', target, () =>
      writeUntilClean(options, target, node, readNode, (now) => {
        const decision = cleanNode(now, options.taints);
        return decision.kind === 'set' ? nodePatch(now, decision) : undefined;
      }),
    );
  });
}

/**
 * Removes archaware's tolerations from every template that has any, and then archaware's entry from its `managedFields`: an owner
 * that is gone would let every server-side apply of its author conflict.
 */
export function restoreDaemonSets(options: StepOptions, daemonSets: readonly DaemonSet[]): Promise<void> {
  return each(daemonSets, IN_FLIGHT, async (daemonSet) => {
    const { namespace, name } = daemonSet;
    const target = { kind: 'DaemonSet', namespace, name, action: 'restore' } as const;
    // Once the record was removed here, tolerations of the same form without a record are their author's.
    let isWithoutRecord = false;
    let restored = daemonSet;
    const write = () =>
      writeUntilClean(options, target, daemonSet, readDaemonSet, (now) => {
        restored = now;
        const lost = isWithoutRecord ? [] : lostTolerations(now, options.taints);
        // The policies let archaware remove only what is recorded.
        if (lost.length > 0) return daemonSetPatch(now, foundAgain(now, lost, options.taints));
        const decision = withoutOurs(now, []);
        if (decision.kind !== 'set') return undefined;
        isWithoutRecord = true;
        return daemonSetPatch(now, decision);
      });
    const reason = await doAndNote(options, 'daemonSets', target, write);
    if (reason === undefined) await disown(options, restored, (now) => withoutOurs(now, []).kind === 'unchanged');
  });
}

/** Removes archaware's entry from the `managedFields` of DaemonSets whose templates have nothing else of archaware. */
export function disownDaemonSets(options: StepOptions, daemonSets: readonly DaemonSet[]): Promise<void> {
  return each(daemonSets, IN_FLIGHT, (daemonSet) =>
    disown(options, daemonSet, (now) => cleanTemplate(now, options.taints).kind === 'unchanged'),
  );
}

/** The entry does nothing by itself, so the table does not have it, and nothing is said if it stays. */
async function disown(
  options: StepOptions,
  daemonSet: DaemonSet,
  isRestored: (now: DaemonSet) => boolean,
): Promise<void> {
  const { namespace, name } = daemonSet;
  const target = { kind: 'DaemonSet', namespace, name, action: 'give-back' } as const;
  await reasonWhyNot(options.signal, () =>
    writeUntilClean(options, target, daemonSet, readDaemonSet, (now) =>
      isRestored(now) && now.entry !== undefined ? disownPatch(now) : undefined,
    ),
  );
}

/** Writes until the object is clean. Returns why it is not. */
async function writeUntilClean<T>(
  { client, write, signal }: StepOptions,
  target: Parameters<Writer>[0],
  first: T,
  read: (object: JsonObject) => T | Promise<T>,
  patchFor: (object: T) => Operation[] | undefined,
): Promise<string | undefined> {
  let object = first;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const patch = patchFor(object);
    if (patch === undefined) return undefined;
    const written = await write(target, patch, signal);
    if (written.kind === 'gone') return undefined;
    // The answer is checked again: something in the API server may have restored what was removed.
    object = await read(written.kind === 'written' ? written.object : await get(client, pathOf(target), signal));
  }
  return `another writer changed it ${ATTEMPTS} times; run clean again`;
}

/** Runs an action on an object that a row counts, and notes the result, which it returns as {@link reasonWhyNot} does. */
async function doAndNote({ ledger, signal }: StepOptions, row: Row, item: Item, act: CleaningAct) {
  const reason = await reasonWhyNot(signal, act);
  if (reason === undefined) ledger.removed(row, item);
  else ledger.left(row, item, reason);
  return reason;
}

/** Returns why it was not done; undefined if it was. */
type CleaningAct = () => Promise<string | undefined>;

/**
 * Runs an action. Returns why it was not done; undefined if it was, or if the object is gone. Throws if `clean` must end: after an
 * interruption or a lost Lease.
 */
async function reasonWhyNot(signal: AbortSignal, act: CleaningAct): Promise<string | undefined> {
  try {
    return await act();
  } catch (error) {
    if (isGone(error)) return undefined;
    signal.throwIfAborted();
    if (error instanceof LeaseLostError) throw error;
    return messageOf(error);
  }
}
