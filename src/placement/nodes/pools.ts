import { matchesSelector } from '../../kit/label-syntax.ts';
import { normaliseArchitecture } from '../../kit/platform.ts';
import { ARCHITECTURE_LABEL, KARPENTER_INITIALIZED, KARPENTER_REGISTERED, POOL_LABELS } from '../../names.ts';
import type { Taint } from '../patch/tolerations.ts';
import { usesTaints } from '../placing.ts';
import type { Settings } from '../settings.ts';
import { taintText } from './managed.ts';
import { type Node, nodeArchitecture } from './node.ts';

/** A group of nodes that an autoscaler or a provider creates from a template. */
export type Pool = { readonly kind: (typeof POOL_LABELS)[keyof typeof POOL_LABELS]; readonly name: string };

/** The settings that decide whether nodes have archaware's taint. */
export type PoolSettings = Pick<Settings, 'mode' | 'taints'>;

/** The page that says what a pool needs. */
export const POOL_PAGE = 'docs/autoscalers.md';

/** Returns the pool of a node by its labels; undefined if they name none. */
export function poolOf({ labels }: Pick<Node, 'labels'>): Pool | undefined {
  for (const [label, kind] of Object.entries(POOL_LABELS)) {
    const name = Object.hasOwn(labels, label) ? labels[label] : undefined;
    if (name !== undefined && name !== '') return { kind, name };
  }
  return undefined;
}

/** Returns `NodePool default`. */
export function poolText({ kind, name }: Pool): string {
  return `${kind} ${name}`;
}

/** Whether archaware taints nodes with these labels. */
export function taintsNodes({ mode, taints }: PoolSettings, labels: Node['labels']): boolean {
  return usesTaints({ mode }) && taints.manage && matchesSelector(taints.nodeSelector, labels);
}

/**
 * Checks a node that has just joined. Returns its pool and the taint that the pool's template lacks; undefined if nothing is
 * missing. The taint is undefined if the architecture of the node is not known yet.
 */
export function joinedUntainted(
  node: Node,
  settings: PoolSettings,
): { readonly pool: Pool; readonly taint: Taint | undefined } | undefined {
  const pool = poolOf(node);
  if (pool === undefined || node.deleting || !taintsNodes(settings, node.labels)) return undefined;
  const { key, effect } = settings.taints;
  const value = nodeArchitecture(node) ?? normaliseArchitecture(node.labels[ARCHITECTURE_LABEL] ?? '');
  const present = (node.taints ?? []).find((taint) => taint.key === key && taint.effect === effect);
  if (present !== undefined && (value === undefined || present.value === value)) return undefined;
  return { pool, taint: value === undefined ? undefined : { key, value, effect } };
}

/** Returns the text of the Event for a node that joined without the taint. */
export function joinedUntaintedNote(pool: Pool, taint: Taint | undefined, { taints }: PoolSettings): string {
  const what = taint === undefined ? `${taints.key}=<architecture>:${taints.effect}` : taintText(taint);
  const [where, or] =
    pool.kind === 'NodePool'
      ? ['spec.template.spec.taints', 'of a NodePool for one architecture, or use placement.mode: affinity']
      : ['the taints', `of ${poolText(pool)}, so that its nodes register with it`];
  return (
    `the node joined ${poolText(pool)} without the taint ${what}. The controller sets the taint, but an autoscaler that plans ` +
    `without it may start nodes that pending pods cannot use. Add the taint to ${where} ${or} (${POOL_PAGE})`
  );
}

/**
 * Returns the taint that seems to block Karpenter: the node has joined, Karpenter has not initialized it, and a taint with the
 * configured key is the only one left. Karpenter also waits for device resources, which a node does not show.
 */
export function blocksInitialization(node: Node, { taints }: Pick<Settings, 'taints'>): Taint | undefined {
  const { labels, deleting } = node;
  if (deleting || labels[KARPENTER_REGISTERED] !== 'true' || labels[KARPENTER_INITIALIZED] === 'true') return undefined;
  const [only, ...others] = node.taints ?? [];
  if (only === undefined || others.length > 0 || only.key !== taints.key) return undefined;
  const { value, effect } = only;
  return { key: taints.key, value: typeof value === 'string' ? value : '', effect: String(effect) };
}

/** Returns the text of the Event for such a node. */
export function notInitializedNote(node: Pick<Node, 'labels'>, taint: Taint, minutes: number): string {
  const pool = poolOf(node);
  const whose = pool === undefined ? 'its NodePool' : poolText(pool);
  return (
    `Karpenter has not initialized the node for ${minutes} minutes, and ${taintText(taint)} is the only taint that is left. If that ` +
    `taint is in startupTaints of ${whose}, move it to taints: it is never removed, so Karpenter keeps counting the node as free ` +
    `for every pod, and starts no other (${POOL_PAGE})`
  );
}
