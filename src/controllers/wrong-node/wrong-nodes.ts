import type { Controller } from '../../kube/controller.ts';
import type { Queues } from '../loops/queues.ts';
import { createWrongNodeController, type WrongNodeOptions } from './controller.ts';

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

/** Creates the wrong-node controller and its queue. */
export function createWrongNodes(options: Omit<WrongNodeOptions, 'onTurn'>, { add, forEach }: Queues): WrongNodes {
  const wrongNode = createWrongNodeController({ ...options, onTurn: (key) => controller.enqueue(key) });
  // One worker is enough, because evictions are rare.
  const controller: Controller = add('wrong-node', wrongNode.reconcile, false, 1);
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
