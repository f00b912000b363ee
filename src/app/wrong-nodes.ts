import { createWrongNodeController, type WrongNodeOptions } from '../controllers/wrong-node/controller.ts';
import type { Controller, Reconciler } from '../kube/controller.ts';

/** The parts of the wrong-node controller that `run` passes and `plan` leaves out. */
export type WrongNodeParts = Pick<WrongNodeOptions, 'evictor' | 'onWrongNode'>;

/** The wrong-node controller with its queue, and the events that put pods into it. */
export type WrongNodes = {
  readonly controller: Controller;
  /** Queues the present pods at the beginning of a term. */
  begin(): void;
  /** Counts the pods on wrong nodes. */
  count(): number;
  /** Call it when a pod was decided or bound, is gone, or when one of its containers broke or runs again. */
  podChanged(key: string): void;
  daemonSetDecided(key: string): void;
  /** Call it when a node's architecture (`architectureChanged`) or its taints changed. Evictions may wait for a taint. */
  nodeChanged(name: string, architectureChanged: boolean): void;
  lookupEnded(canonical: string): void;
  settingsChanged(): void;
  /** Ends the turns of large pods when the term is over. */
  end(): void;
};

/**
 * Creates the wrong-node controller. `loop`: creates the queue and its worker. `forEach`: does something for each of many keys, in
 * as many turns of the event loop as that takes.
 */
export function createWrongNodes(
  options: Omit<WrongNodeOptions, 'onTurn'>,
  loop: (reconcile: Reconciler) => Controller,
  forEach: (keys: Iterable<string>, work: (key: string) => void) => void,
): WrongNodes {
  const wrongNode = createWrongNodeController({ ...options, onTurn: (key) => controller.enqueue(key) });
  const controller: Controller = loop(wrongNode.reconcile);
  function look(keys: Iterable<string>): void {
    forEach(keys, (key) => {
      if (wrongNode.suspects(key)) controller.enqueue(key);
    });
  }
  return {
    controller,
    begin: () => look(options.pods.keys()),
    count: wrongNode.count,
    podChanged(key) {
      if (wrongNode.suspects(key)) controller.enqueue(key);
    },
    daemonSetDecided: (key) => look(wrongNode.podsOf(key)),
    nodeChanged: (name, architectureChanged) =>
      look(architectureChanged ? wrongNode.podsOn(name) : wrongNode.found(name)),
    lookupEnded(canonical) {
      for (const { key, inMs } of wrongNode.lookupEnded(canonical)) {
        if (wrongNode.suspects(key)) controller.enqueueAfter(key, inMs);
      }
    },
    settingsChanged: () => look(wrongNode.found()),
    end: wrongNode.end,
  };
}
