import { type KeepVerdict, tryKeep } from '../../controllers/keep-watch.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { readAll } from '../../kube/read.ts';
import { readDaemonSet } from '../../placement/objects/daemonset.ts';
import { readNamespace } from '../../placement/objects/namespace.ts';
import { keepProbes } from '../../placement/patch/keep-probe.ts';
import { onlyObserves, usesTaints } from '../../placement/placing.ts';
import type { Settings } from '../../placement/settings.ts';
import { type Facts, isGuess, presentWord } from './facts.ts';

/** Tries by dry runs whether archaware's tolerations in DaemonSets are protected. Throws what the client throws for a list. */
export async function tryGuard(client: ApiClient, settings: Settings, signal: AbortSignal): Promise<KeepVerdict> {
  if (onlyObserves(settings) || !usesTaints(settings)) return { kind: 'nothing' };
  const [daemonSets, namespaces] = await Promise.all([
    readAll(client, '/apis/apps/v1/daemonsets', readDaemonSet, signal),
    readAll(client, '/api/v1/namespaces', readNamespace, signal),
  ]);
  const byName = new Map(namespaces.map((namespace) => [namespace.name, namespace]));
  return tryKeep(
    client,
    keepProbes(daemonSets, (name) => byName.get(name), settings),
    signal,
  );
}

/** Returns the line `guard`: what these credentials found out, else what the leader has found out. */
export function guardText(facts: Facts): string {
  const { guard } = facts;
  const leader = presentWord(facts)?.keepsDaemonSets;
  const isKnown = guard.kind === 'read' && guard.value.kind !== 'unknown';
  if (!isKnown && leader !== undefined) {
    return `${leader ? HOLDS : "broken: updates that drop archaware's tolerations from DaemonSets are not corrected"}, as the leader has found out`;
  }
  if (guard.kind === 'read' && guard.value.kind === 'nothing' && !usesTaints(facts)) {
    return isGuess(facts)
      ? 'unknown: the configuration is not known'
      : `nothing to guard: mode ${facts.mode} gives DaemonSets no tolerations`;
  }
  return guard.kind === 'read' ? verdictText(guard.value) : `unknown: ${guard.why}`;
}

const HOLDS = "updates that drop archaware's tolerations from DaemonSets are corrected";

function verdictText(verdict: KeepVerdict): string {
  switch (verdict.kind) {
    case 'holds':
      return HOLDS;
    case 'broken':
      return `broken: an update of ${verdict.example} that drops archaware's tolerations came back without them (dry run)`;
    case 'unknown':
      return `unknown: ${verdict.why}`;
    case 'nothing':
      return 'nothing to guard: no DaemonSet has tolerations of archaware';
    default:
      return verdict satisfies never;
  }
}
