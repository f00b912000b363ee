/** The cluster changes while archaware waits for something. */
import { setTimeout as delay } from 'node:timers/promises';
import { pathOf } from '../../support/world.ts';
import type { Fault } from '../support/harness.ts';
import { amount } from '../support/ways.ts';

export const cluster: readonly Fault[] = [
  {
    name: 'namespaces deleted while their pods wait for images',
    async happen(scene) {
      const { lab, load, dice } = scene;
      const { ms, count } = amount(scene, 500, 2_000);
      const end = lab.registry.inject({ kind: 'hang' });
      const doomed = await Promise.all(Array.from({ length: dice.whole(1, 3) }, () => lab.load(dice)));
      await Promise.all([...doomed, load].map((each) => each.add(count)));
      await delay(ms);
      await Promise.all(doomed.map((each) => lab.finish(each)));
      end();
      return `${doomed.length} namespaces, ${doomed.reduce((sum, { pods }) => sum + pods, 0)} pods`;
    },
  },
  {
    name: "a node's name comes back with another architecture",
    async happen({ lab, load, dice }) {
      const architectures = dice.shuffled(['amd64', 'arm64', 's390x']);
      for (const architecture of architectures) {
        await lab.cluster.request('DELETE', pathOf('Node', '', 'flapping'));
        // A pod that was bound there would go with the node.
        const taints = [{ key: 'flapping', effect: 'NoSchedule' }];
        await lab.cluster.createNode({ name: 'flapping', architecture, taints, waitUntilReady: false });
        const added = load.add(1);
        await delay(dice.whole(0, 500));
        await added;
      }
      return architectures.join(', ');
    },
    async check({ lab }) {
      await lab.cluster.request('DELETE', pathOf('Node', '', 'flapping'));
    },
  },
];
