import type { KeepVerdict } from '../../controllers/keep-probe.ts';
import type { Logger } from '../../observability/log.ts';
import { taintText } from '../../placement/nodes/managed.ts';
import type { LoopsOptions } from '../controllers.ts';

/** How many objects a message names at most. */
const EXAMPLES = 5;

/** Creates a function that logs the nodes with taints of archaware that this configuration does not manage. */
export function unmanagedTaintLog(log: Logger): NonNullable<LoopsOptions['onUnmanagedTaints']> {
  return (found) => {
    if (found.length === 0) {
      log.info('nodes no longer carry taints of archaware that this configuration does not manage');
      return;
    }
    const taints = [...new Set(found.flatMap((each) => each.taints.map(taintText)))].slice(0, EXAMPLES);
    const nodes = found.slice(0, EXAMPLES).map(({ node }) => node.name);
    log.warn(
      { count: found.length, nodes, taints },
      'nodes carry taints of archaware that this configuration does not manage: new pods may stay Pending (docs/changing-modes.md)',
    );
  };
}

/** Creates a function that logs the pods with archaware's scheduling gate that no controller releases. */
export function gatedPodLog(log: Logger): (keys: readonly string[]) => void {
  return (keys) => {
    if (keys.length === 0) log.info('pods no longer hold the scheduling gate of archaware');
    else {
      log.warn(
        { count: keys.length, pods: keys.slice(0, EXAMPLES) },
        'pods hold the scheduling gate archaware.dev/architecture, and the loop for pods does not run: nothing releases them: add pods to loops, or run clean --stop (docs/runbooks/gates.md)',
      );
    }
  };
}

/** Creates a function that logs what the probes of the protection of DaemonSets found, whenever that changes. */
export function keepLog(log: Pick<Logger, 'info' | 'warn'>): (verdict: KeepVerdict) => void {
  return (verdict) => {
    switch (verdict.kind) {
      case 'broken':
        log.warn(
          { daemonSet: verdict.example },
          "an update that drops archaware's tolerations from a DaemonSet would be stored, and take its pods off all tainted nodes: neither the policy archaware-keep nor the webhook corrects it (docs/runbooks/daemonsets-unprotected.md)",
        );
        return;
      case 'unknown':
        log.warn(
          { why: verdict.why },
          "could not find out whether updates that drop archaware's tolerations from DaemonSets are corrected; will be tried again",
        );
        return;
      case 'holds':
        log.info("updates that drop archaware's tolerations from DaemonSets are corrected again");
        return;
      case 'nothing':
        log.info('no DaemonSet has tolerations of archaware any more, so none has to be protected');
        return;
      default:
        verdict satisfies never;
    }
  };
}
