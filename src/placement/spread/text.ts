import { few } from '../reasons.ts';
import type { HardSpread } from './constraint.ts';
import type { EmptyDomain, SpreadCure, SpreadLimit } from './limit.ts';

const PAGE = 'docs/workloads.md';

/**
 * Returns what a limit does, in one sentence without its subject: `its topology spread over kubernetes.io/hostname (DoNotSchedule)
 * counts arm64-1, where the taint supported-arch=arm64:NoSchedule keeps it off: at most 2 of its 4 pods can run`. `pods`: undefined
 * if it is not known how many there are.
 */
export function limitText({ constraint, empty, most }: SpreadLimit, pods: number | undefined): string {
  const of = pods === undefined ? 'such pods' : `of its ${pods} pods`;
  return `${overText(constraint)} counts ${emptyText(constraint, empty)}: at most ${most} ${of} can run`;
}

/** Returns that a rollout waits for ever, although each pod that runs can be replaced. */
export function rolloutText({ constraint, empty, most }: SpreadLimit): string {
  const pods = most === 1 ? 'one pod' : `${most} pods`;
  return `${overText(constraint)} counts ${emptyText(constraint, empty)}: only ${pods} can run, so a rollout that first starts one more would wait for ever`;
}

/** Returns what helps: the alternatives, in one line. */
export function cureText({ constraint, cures }: SpreadLimit): string {
  if (cures.length === 0) {
    return `add a node in another ${domainWord(constraint)} that can run it, or lower minDomains of that constraint (${PAGE})`;
  }
  return `${cures.map((cure) => CURES[cure]).join(', or ')} (${PAGE})`;
}

const CURES: Readonly<Record<SpreadCure, string>> = {
  'honor-taints': 'set nodeTaintsPolicy: Honor in that constraint',
  'honor-affinity': 'set nodeAffinityPolicy: Honor in that constraint',
  'mode-affinity': 'use placement.mode both',
};

/**
 * Returns what may happen beside nodes that are not known: `its topology spread over kubernetes.io/hostname (DoNotSchedule) also
 * counts nodes that it cannot use: beside arm64 nodes, some of its pods may stay Pending`. `elsewhere`: the architectures
 * that it does not run on.
 */
export function conditionText(constraint: HardSpread, elsewhere: readonly string[]): string {
  const where = elsewhere.join(' or ');
  const beside =
    constraint.topologyKey === HOSTNAME
      ? `beside ${where} nodes`
      : `where a ${domainWord(constraint)} has only ${where} nodes`;
  return `${overText(constraint)} also counts nodes that it cannot use: ${beside}, some of its pods may stay Pending`;
}

const HOSTNAME = 'kubernetes.io/hostname';

function overText({ topologyKey }: HardSpread): string {
  return `its topology spread over ${topologyKey} (DoNotSchedule)`;
}

function domainWord({ topologyKey }: HardSpread): string {
  if (topologyKey === HOSTNAME) return 'host';
  return topologyKey === 'topology.kubernetes.io/zone' ? 'zone' : `domain of ${topologyKey}`;
}

function emptyText({ topologyKey }: HardSpread, empty: readonly EmptyDomain[]): string {
  const names = topologyKey === HOSTNAME ? empty.flatMap(({ nodes }) => nodes) : empty.map(({ name }) => name);
  const taints = [...new Set(empty.flatMap((domain) => domain.taints))].sort();
  const by =
    taints.length === 0
      ? 'its node affinity keeps it off'
      : `${taints.length === 1 ? 'the taint' : 'the taints'} ${few(taints)} ${taints.length === 1 ? 'keeps' : 'keep'} it off`;
  return `${few(names)}, where ${by}`;
}
