import { isOfKind, type Node, taintKind } from '../../placement/nodes/node.ts';
import { onlyObserves } from '../../placement/placing.ts';
import type { Settings } from '../../placement/settings.ts';

/** Whether a controller is there to do what the explanation says. */
export type ControllerState =
  /** A replica leads. `deployment`: where it runs, as `namespace/name`; undefined outside of the cluster. */
  | { readonly kind: 'leads'; readonly deployment: string | undefined }
  /** No replica leads, although archaware is installed. `lease`: `namespace/name`. */
  | { readonly kind: 'no-leader'; readonly lease: string; readonly deployment: string; readonly wanted: number }
  /** Neither a Deployment nor a leader is there. */
  | { readonly kind: 'not-installed' }
  /** The user may not look. */
  | { readonly kind: 'unknown' };

/**
 * Whether new pods get what they need from archaware: it only observes, no replica leads, it is not installed, or the user may
 * not look. Without a cluster, and without leader election, a controller is assumed.
 */
export type Hands = 'acts' | 'observes' | 'no-leader' | 'not-installed' | 'unknown';

/** Returns what archaware can be relied on for. */
export function handsOf(state: ControllerState | undefined, settings: Pick<Settings, 'mode'>): Hands {
  if (state?.kind === 'not-installed') return 'not-installed';
  // A leader would change nothing.
  if (onlyObserves(settings)) return 'observes';
  return state === undefined || state.kind === 'leads' ? 'acts' : state.kind;
}

/** Returns why archaware does nothing for a pod; undefined if it may. */
export function awayText(hands: Hands): string | undefined {
  if (hands === 'no-leader') return 'no replica of archaware leads';
  return hands === 'not-installed' ? 'archaware is not installed' : undefined;
}

/** Returns what to do if the controller does not do its work although it should be there. `state`: undefined if it is unknown. */
export function checkController(state: ControllerState | undefined): string {
  const [namespace, name] = (state?.kind === 'leads' && state.deployment?.split('/')) || [];
  if (state?.kind === 'leads' && name === undefined)
    return 'look at the log of the controller, which runs outside of the cluster';
  return `check that the controller runs (kubectl -n ${namespace ?? 'archaware'} logs deployment/${name ?? 'archaware-controller'})`;
}

/** Returns what to do first if there is no controller to do its work; undefined if there may be one. */
export function adviseAway(
  state: ControllerState | undefined,
  nodes: readonly Node[] | undefined,
  { taints }: Pick<Settings, 'taints'>,
): string | undefined {
  switch (state?.kind) {
    case undefined:
    case 'leads':
    case 'unknown':
      return undefined;
    case 'no-leader': {
      const [namespace, name] = state.deployment.split('/');
      const scaled = `kubectl -n ${namespace} scale deployment/${name} --replicas=2`;
      const how =
        state.wanted === 0 ? `the Deployment is scaled to 0: ${scaled}` : 'docs/alerts.md, "ArchawareNoLeader"';
      return `no replica leads (Lease ${state.lease}), so nothing is written: ${how}; archaware status shows the rest`;
    }
    case 'not-installed': {
      const isTainted = (nodes ?? []).some((node) => node.taints?.some(isOfKind(taints)));
      const what = isTainted ? `, but nodes have its taint ${taintKind(taints)}` : ', so nothing is written';
      return `archaware is not installed${what}: install it (docs/install.md), or remove what it left with archaware clean`;
    }
    default:
      return state satisfies never;
  }
}
