import { expect } from 'chai';
import { at, listAt } from '../../../hack/cluster/json.ts';
import { nameOf, runs, scheduledOn, tolerations } from '../../support/objects.ts';
import { leads } from '../../support/running.ts';
import { deployment, type PodOptions, pod } from '../../support/workloads.ts';
import type { World } from '../../support/world.ts';
import { crashing, setContainers } from './container-status.ts';
import type { Start } from './context.ts';

export function describeExplain(start: Start): void {
  describe('explain, beside what run says', () => {
    const namespace = 'bound';
    const ANYWHERE = [{ key: 'supported-arch', operator: 'Exists' }];
    let world: World;

    before(async () => {
      world = await start();
      await world.run();
      await world.namespace(namespace);
    });
    after(async () => {
      await world?.stop();
    });

    const explain = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await world.command(['explain', ...args, '--output', 'json']);
      expect([code, stderr]).to.deep.equal([0, '']);
      const explained: unknown = JSON.parse(stdout);
      return { explained, advice: listAt(explained, 'advice').map(String) };
    };
    /** A pod that the scheduler puts on a node, whatever its image runs on. */
    const onNode = async (app: string, image: string, node: string, more: Partial<PodOptions> = {}) => {
      const spec = { nodeSelector: { 'kubernetes.io/hostname': node } };
      await world.create(pod(namespace, app, { images: [world.image(image)], tolerations: ANYWHERE, spec, ...more }));
      return world.eventually(`${app} to run on ${node}`, async () => {
        const found = await world.get('Pod', namespace, app);
        return runs(found) && scheduledOn(found) === node && found;
      });
    };
    /** What the Event of run says before and after what run did about it. */
    const parts = (note: string) => note.split(/; not evicted: pods\.onWrongNode is warn(?: \([^)]*\))?/);

    it('of a pod on a wrong node: the same but for what to do, which is the selector that brings it back', async () => {
      const found = await onNode('wrong', 'amd64', 'arm64-1');
      await setContainers(world, namespace, found);
      const [seen = '', sets = '?'] = parts(await world.eventuallyEvent(namespace, 'WrongNode', /node arm64-1/));
      const { advice } = await explain(`${namespace}/wrong`);
      expect(advice).to.have.lengthOf(1);
      expect(advice[0]?.startsWith(seen), `${advice[0]} / ${seen}`).to.equal(true);
      expect(advice[0]?.endsWith(sets), `${advice[0]} / ${sets}`).to.equal(true);
      expect(advice[0]).to.contain('change what the pod requires (kubernetes.io/hostname=arm64-1');
      expect(advice[0]).to.contain(`push a linux/arm64 build of ${world.image('amd64')}`);
      expect(sets).to.contain('(linux/amd64)');
    });

    it('of an image that states the architecture of its node and does not run there', async () => {
      const found = await onNode('mislabelled', 'amd64', 'amd64-1');
      await setContainers(world, namespace, found, crashing('exec /app: exec format error'));
      const note = await world.eventuallyEvent(namespace, 'WrongNode', /exec format error/);
      const { advice } = await explain(`${namespace}/mislabelled`);
      expect(advice[0]).to.equal(note.replace('; not evicted: ', '; '));
      expect(advice[0]).to.match(
        /its image \S+@\S+ claims to run on amd64, but it does not .*: rebuild it, or .*images\.overrides/,
      );
      expect(advice[0]).to.not.contain('(none)').and.not.contain('delete the pod');
    });

    it("of a pod that waits for an image: the time of the controller's Event, for a user who may list Events", async () => {
      const image = `${world.registry.host}/nothing/here:1`;
      await world.create(pod(namespace, 'lost', { images: [image] }));
      const note = await world.eventuallyEvent(
        namespace,
        'ImageUnresolvable',
        /the pod starts by itself at .* at the latest$/,
      );
      const [time = '?'] = /\d\d:\d\d:\d\d UTC/.exec(note) ?? [];
      const flags = ['--kubeconfig', world.cluster.kubeconfig];
      const { stdout, stderr } = await world.command(['explain', `${namespace}/lost`, ...flags]);
      expect(stdout, stderr).to.contain(`; it starts by itself at ${time} at the latest, on amd64, arm64`);
      const { explained } = await explain(`${namespace}/lost`);
      expect(at(explained, 'verdict', 'state')).to.equal('waits');
      expect(at(explained, 'verdict', 'text')).to.contain(`it starts by itself at ${time} at the latest`);
      expect(at(explained, 'verdict', 'startsAtLatest')).to.contain(`T${time.slice(0, 8)}.000Z`);
    });

    it('of a healthy pod: where it could move, and nothing to do, also where architectures.schedulable leaves its node out', async () => {
      await world.create(
        deployment(namespace, 'healthy', {
          images: [world.image('multi')],
          spec: { affinity: prefers('kubernetes.io/hostname', 'arm64-1') },
        }),
      );
      const healthy = await world.eventually('it to run with what it lacked', async () => {
        const [found] = await world.pods(namespace, 'healthy');
        return found !== undefined && runs(found) && tolerations(found).length === 2 && found;
      });
      const name = `${namespace}/${nameOf(healthy)}`;
      const { explained, advice } = await explain(name);
      expect(advice).to.deep.equal([]);
      expect(listAt(explained, 'nodes').map((group) => [at(group, 'architecture'), at(group, 'fits')])).to.deep.equal([
        ['amd64', true],
        ['arm64', true],
      ]);
      const excluded = scheduledOn(healthy) === 'arm64-1' ? 'amd64' : 'arm64';
      const other = await explain(name, '--architectures.schedulable', excluded);
      // What is left is a toleration, which nobody can take from a pod.
      expect(other.advice.join()).to.match(/^(|.*: a toleration cannot be removed from a pod)$/);
      await world.stopControllers();
      const controller = await world.run(['--architectures.schedulable', excluded]);
      await world.eventually('it to lead', () => leads(controller));
      await world.eventually(
        'both to be found',
        async () => (await controller.metric('archaware_wrong_node_pods')) === 2,
      );
      const told = (await world.list('Event', namespace)).filter((event) => at(event, 'reason') === 'WrongNode');
      expect(told.map((event) => at(event, 'regarding', 'name'))).to.not.include(nameOf(healthy));
    });
  });
}

function prefers(key: string, value: string) {
  const preference = { matchExpressions: [{ key, operator: 'In', values: [value] }] };
  return { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference }] } };
}
