import { createWrongNodeController, type WrongNodeOptions } from '../controllers/wrong-node/controller.ts';
import type { Controller, Reconciler } from '../kube/controller.ts';

/** What `run` adds to the loops, and `plan` leaves out: what evicts and what counts. */
export type WrongNodeParts = Pick<WrongNodeOptions, 'evictor' | 'onWrongNode'>;

/** The loop over pods on wrong nodes, and everything that may put one into it. */
export type WrongNodes = {
  readonly controller: Controller;
  /** A term begins: looks at the pods that are there. */
  begin(): void;
  /** How many pods are on wrong nodes now. */
  count(): number;
  /** The pod was decided or bound, is gone, or a container of it broke or runs again. */
  podChanged(key: string): void;
  daemonSetDecided(key: string): void;
  /** `architectureChanged`: else its taints, of which the eviction of what was found may have waited. */
  nodeChanged(name: string, architectureChanged: boolean): void;
  imageSettled(canonical: string): void;
  settingsChanged(): void;
};

/** Creates the loop over wrong nodes. `loop`: makes the queue and its worker. */
export function createWrongNodes(options: WrongNodeOptions, loop: (reconcile: Reconciler) => Controller): WrongNodes {
  const wrongNode = createWrongNodeController(options);
  const controller = loop(wrongNode.reconcile);
  function look(keys: Iterable<string>): void {
    for (const key of keys) if (wrongNode.suspects(key)) controller.enqueue(key);
  }
  return {
    controller,
    begin: () => look(options.pods.keys()),
    count: wrongNode.count,
    podChanged: (key) => look([key]),
    daemonSetDecided: (key) => look(wrongNode.podsOf(key)),
    nodeChanged: (name, architectureChanged) =>
      look(architectureChanged ? wrongNode.podsOn(name) : wrongNode.found(name)),
    imageSettled(canonical) {
      for (const { key, inMs } of wrongNode.imageSettled(canonical)) {
        if (wrongNode.suspects(key)) controller.enqueueAfter(key, inMs);
      }
    },
    settingsChanged: () => look(wrongNode.found()),
  };
}
