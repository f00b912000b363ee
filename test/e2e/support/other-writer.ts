import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { at, listAt } from '../../../hack/cluster/json.ts';
import { pathOf } from '../../support/world.ts';
import type { LiveWorld } from './world.ts';

export type OtherWriter = {
  /** How many times it has written. */
  writes(): number;
  /** Ends it; returns the problems that it found, and the taint that it wrote last. */
  stop(): Promise<{ readonly lost: readonly string[]; readonly last: unknown }>;
};

const KEY = 'example.com/other';

/**
 * Another controller that keeps changing a taint of its own on a node, with optimistic locking as it should, and looks
 * each time whether everything that is not ours is as it left it.
 */
export function keepTainting(world: LiveWorld, node: string): OtherWriter {
  const path = pathOf('Node', '', node);
  const lost: string[] = [];
  let [writes, going] = [0, true];
  let last: unknown;

  const foreign = (taints: readonly unknown[]) => taints.filter((taint) => !isOurs(taint));

  async function work(): Promise<void> {
    let expected: string | undefined;
    while (going) {
      const found = await world.node(node);
      const taints = foreign(listAt(found, 'spec', 'taints'));
      const text = JSON.stringify(taints);
      if (expected !== undefined && text !== expected) lost.push(`expected ${expected}, found ${text}`);
      expected = text;
      const own = { key: KEY, value: `n${writes}`, effect: 'PreferNoSchedule', timeAdded: '2026-01-02T03:04:05Z' };
      const wanted = [...listAt(found, 'spec', 'taints').filter((taint) => at(taint, 'key') !== KEY), own];
      const body = [
        { op: 'test', path: '/metadata/resourceVersion', value: at(found, 'metadata', 'resourceVersion') },
        { op: listAt(found, 'spec', 'taints').length > 0 ? 'replace' : 'add', path: '/spec/taints', value: wanted },
      ];
      const { status, body: answer } = await world.cluster.request('PATCH', path, body);
      if (status === 200) {
        writes++;
        last = own;
        expected = JSON.stringify(foreign(listAt(answer, 'spec', 'taints')));
      } else expected = undefined;
      await yieldToOthers();
    }
  }
  const worked = work();
  return {
    writes: () => writes,
    async stop() {
      going = false;
      await worked;
      return { lost, last };
    },
  };
}

/** Archaware's fields, and those that Kubernetes changes by itself. */
function isOurs(taint: unknown): boolean {
  const key = String(at(taint, 'key'));
  return key === 'supported-arch' || key.startsWith('node.kubernetes.io/');
}
