/** Leaders end, sleep, and meet. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Replica } from '../../e2e/support/replicas.ts';
import { leads } from '../../support/running.ts';
import type { Fault, Scene } from '../support/harness.ts';
import { LEASE_SECONDS } from '../support/lab.ts';
import { amount, isLease, seconds } from '../support/ways.ts';

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/archaware/leases/archaware-controller';

const leaderOf = ({ lab }: Pick<Scene, 'lab'>): Promise<Replica> =>
  lab.eventually('one leader', () => lab.replicas.leader());

/** Longer than the Lease lasts. */
const beyond = ({ dice }: Pick<Scene, 'dice'>) => dice.whole(LEASE_SECONDS * 1_200, LEASE_SECONDS * 2_500);

export const leaders: readonly Fault[] = [
  {
    name: 'leader killed (SIGKILL), the other one takes over',
    async happen(scene) {
      const { lab, load, dice } = scene;
      const leader = await leaderOf(scene);
      const added = load.add(dice.whole(3, 8));
      await delay(dice.whole(0, 300));
      await lab.replicas.end(leader);
      await added;
      return 'with writes under way';
    },
  },
  {
    name: 'both replicas killed (SIGKILL), both started',
    async happen({ lab, load, dice }) {
      await Promise.all(lab.replicas.all().map((replica) => lab.replicas.end(replica)));
      await load.add(dice.whole(2, 6));
      await lab.replicas.keep(2);
      return 'nobody remembers anything';
    },
  },
  {
    name: 'leader paused (SIGSTOP) beyond its Lease, continued',
    async happen(scene) {
      const [leader, ms] = [await leaderOf(scene), beyond(scene)];
      leader.controller.kill('SIGSTOP');
      await Promise.all([delay(ms), scene.load.add(amount(scene).count)]);
      leader.controller.kill('SIGCONT');
      return `asleep for ${seconds(ms)}, Lease of ${LEASE_SECONDS} s`;
    },
  },
  {
    name: 'both replicas paused, continued together',
    async happen(scene) {
      const ms = beyond(scene);
      for (const { controller } of scene.lab.replicas.all()) controller.kill('SIGSTOP');
      await Promise.all([delay(ms), scene.load.add(amount(scene).count)]);
      for (const { controller } of scene.lab.replicas.all()) controller.kill('SIGCONT');
      return `asleep for ${seconds(ms)}`;
    },
  },
  {
    name: 'two leaders for a moment: somebody deletes the Lease',
    async happen(scene) {
      const { lab, load, dice } = scene;
      const leader = await leaderOf(scene);
      const hold = leader.proxy.hold((_method, path) => isLease(path));
      await lab.cluster.request('DELETE', LEASE);
      const added = load.add(dice.whole(4, 8));
      const others = lab.replicas.all().filter((replica) => replica !== leader);
      const both = await lab.eventually('the other one to lead', async () => {
        const [own, other] = await Promise.all([
          leads(leader.controller),
          Promise.all(others.map(({ controller }) => leads(controller))),
        ]);
        return other.includes(true) && (own ? 'both led' : 'one led');
      });
      await added;
      hold.release();
      return both;
    },
  },
];
