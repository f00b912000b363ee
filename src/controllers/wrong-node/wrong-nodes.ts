import type { Controller } from '../../kube/control-loop.ts';
import type { Queues } from '../loops/queues.ts';
import { createWrongNodeController, type WrongNodeOptions } from './controller.ts';

/** The wrong-node controller with its queue, and the listeners that put pods into the queue. */
export type WrongNodes = ReturnType<typeof createWrongNodes>;

/** Creates the wrong-node controller and its queue. */
export function createWrongNodes(options: WrongNodeOptions, { add, forEach }: Queues) {
  const wrongNode = createWrongNodeController(options);
  // One worker is enough, because evictions are rare.
  const controller: Controller = add('wrong-node', wrongNode.reconcile, false, 1);
  function look(keys: Iterable<string>): void {
    forEach(keys, (key) => {
      if (wrongNode.suspects(key)) controller.enqueue(key);
    });
  }
  return {
    controller,
    /** Queues the present pods at the beginning of a term. */
    begin: (): void => look(options.pods.keys()),
    count: wrongNode.count,
    isFound: wrongNode.isFound,
    /** Call it when a pod was decided or bound, is gone, or when one of its containers broke or runs again. */
    podChanged(key: string): void {
      if (wrongNode.suspects(key)) controller.enqueue(key);
    },
    daemonSetDecided: (key: string): void => look(wrongNode.podsOf(key)),
    /** Call it when a node's architecture (`architectureChanged`) or its taints changed. Evictions may wait for a taint. */
    nodeChanged: (name: string, architectureChanged: boolean): void =>
      look(architectureChanged ? wrongNode.podsOn(name) : wrongNode.found(name)),
    lookupEnded(canonical: string): void {
      for (const { key, inMs } of wrongNode.lookupEnded(canonical)) {
        if (wrongNode.suspects(key)) controller.enqueueAfter(key, inMs);
      }
    },
    settingsChanged: (): void => look(wrongNode.found()),
  };
}
