import { type Node, taintKind } from '../nodes/node.ts';
import type { Settings } from '../settings.ts';

/** Whether a controller is there to do what the explanation says. */
export type ControllerState =
  /** A replica leads. `deployment`: where it runs, as `namespace/name`; undefined outside of the cluster. */
  | { readonly kind: 'leads'; readonly deployment: string | undefined }
  /** No replica leads, although archaware is installed. `lease`: `namespace/name`. */
  | { readonly kind: 'no-leader'; readonly lease: string; readonly deployment: string; readonly wanted: number }
  /** Neither a Deployment nor a leader is there. */
  | { readonly kind: 'not-installed' };

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
  nodes: readonly Node[],
  { taints }: Pick<Settings, 'taints'>,
): string | undefined {
  switch (state?.kind) {
    case undefined:
    case 'leads':
      return undefined;
    case 'no-leader': {
      const [namespace, name] = state.deployment.split('/');
      const scaled = `kubectl -n ${namespace} scale deployment/${name} --replicas=2`;
      const how = state.wanted === 0 ? `the Deployment is scaled to 0: ${scaled}` : 'docs/runbooks/no-leader.md';
      return `no replica leads (Lease ${state.lease}), so nothing is written: ${how}; archaware-controller status shows the rest`;
    }
    case 'not-installed': {
      const isTainted = nodes.some((node) =>
        (node.taints ?? []).some(({ key, effect }) => key === taints.key && effect === taints.effect),
      );
      const what = isTainted ? `, but nodes have its taint ${taintKind(taints)}` : ', so nothing is written';
      return `archaware is not installed${what}: install it (docs/install.md), or remove what it left with archaware-controller clean`;
    }
    default:
      return state satisfies never;
  }
}
