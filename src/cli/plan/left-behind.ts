import type { Node } from '../../placement/nodes/node.ts';
import { nodesWithUnmanagedTaints } from '../../placement/nodes/unmanaged.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';
import { readRecorded } from '../../placement/objects/template-record.ts';
import { usesTaints } from '../../placement/placing.ts';
import type { Settings } from '../../placement/settings.ts';

/**
 * The objects that still have taints or tolerations of archaware although the configuration sets none: names of nodes, and
 * `namespace/name` of DaemonSets.
 */
export type Leftovers = {
  readonly nodes: readonly string[];
  /** Undefined if DaemonSets are not read because their controller does not run. */
  readonly daemonSets: readonly string[] | undefined;
};

const EXAMPLES = 5;

/**
 * Finds taints of archaware on nodes and, in the mode `affinity`, tolerations of archaware in templates of DaemonSets. Undefined
 * if the configuration sets taints.
 */
export function findLeftovers(
  nodes: Iterable<Node>,
  daemonSets: Iterable<DaemonSet> | undefined,
  settings: Pick<Settings, 'mode' | 'taints'>,
): Leftovers | undefined {
  if (settings.taints.manage) return undefined;
  const tainted = nodesWithUnmanagedTaints(nodes, settings, false).map(({ name }) => name);
  // In modes with taints, templates keep their tolerations, for the provider's taints.
  const looked = usesTaints(settings) ? [] : daemonSets;
  const tolerating = looked && [...looked].filter(({ recorded }) => readRecorded(recorded).length > 0);
  return {
    nodes: tainted.sort(),
    daemonSets: tolerating?.map(({ namespace, name }) => `${namespace}/${name}`).sort(),
  };
}

/**
 * Returns a text that says whether the controllers for nodes and DaemonSets may be switched off. `managesNodes`: whether the node
 * controller runs now.
 */
export function leftoverNote(
  { nodes, daemonSets }: Leftovers,
  { mode }: Pick<Settings, 'mode'>,
  managesNodes: boolean,
): string {
  const component = usesTaints({ mode }) ? 'without-node-taints' : 'without-taints';
  const means = `the component ${component} (withoutTaints in the chart)`;
  const left = [...describe('node', nodes), ...describe('DaemonSet', daemonSets ?? [])].join(' and ');
  if (left !== '') {
    return managesNodes
      ? `${left} still carry taints or tolerations of archaware, which run removes: do not use ${means} yet`
      : `${left} still carry taints or tolerations of archaware, and this configuration does not remove them: do not use ${means}; let the loops for nodes and DaemonSets run until nothing is left`;
  }
  if (daemonSets === undefined) return 'no node carries a taint of archaware; DaemonSets were not looked at';
  return `no node and no DaemonSet carries taints or tolerations of archaware any more: ${means} may be used`;
}

function describe(kind: string, names: readonly string[]): string[] {
  if (names.length === 0) return [];
  const more = names.length > EXAMPLES ? ', …' : '';
  return [`${names.length} ${kind}(s) (${names.slice(0, EXAMPLES).join(', ')}${more})`];
}
