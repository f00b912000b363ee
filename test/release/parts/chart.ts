/** The chart of a release, from the registry to pods on the real node. */
import { expect } from 'chai';
import { at } from '../../../hack/cluster/json.ts';
import { eventuallyOn, nothingIsLeft, reviewsPods } from '../../e2e/support/real-checks.ts';
import { ours, scheduledOn, taints, tolerations } from '../../support/objects.ts';
import { isTrusted } from '../../support/webhook.ts';
import { pod } from '../../support/workloads.ts';
import { VERSIONS } from '../support/names.ts';
import { blockWith, type Rehearsal, releaseBlocks } from '../support/rehearsal.ts';
import { runsVersion, underLoad } from '../support/stream.ts';
import { NEWS } from './release.ts';

const NS = 'charted';
const [FIRST, SECOND] = VERSIONS;

export function theChart(there: () => Rehearsal): void {
  describe('the chart', () => {
    /** The registry of the pods of the tests speaks plain http, which has to be said. Nothing else differs from the defaults. */
    const values = () =>
      JSON.stringify({
        config: {
          placement: { mode: 'both' },
          webhook: { enabled: true },
          registries: { insecure: [there().world.registry.nodeHost] },
        },
      });
    const helm = (command: string) => there().must(command, { files: { 'values.yaml': values() } });
    const eventually = <T>(what: string, condition: () => Promise<T | false | undefined>) =>
      eventuallyOn(there().world)(what, condition);

    it(`of ${FIRST} is installed by the line of the README, and places pods`, async () => {
      const { world, node, own, release } = there();
      await world.namespace(NS);
      const onNode = { nodeSelector: { 'kubernetes.io/hostname': node.name } };
      await world.create(pod(NS, 'before', { images: [world.image(`program-${own}`)], spec: onNode }));
      await eventually(
        'the pod to run',
        async () => at(await world.get('Pod', NS, 'before'), 'status', 'phase') === 'Running',
      );
      const line = blockWith(await releaseBlocks('README.md', there(), FIRST), 'helm install').trim();
      expect(release(FIRST).install).to.equal(line);

      const begun = performance.now();
      const elapsed = () => ((performance.now() - begun) / 1000).toFixed(1);
      const times: string[] = [];
      await helm(`${line} --values values.yaml`);
      times.push(`helm ended after ${elapsed()} s`);
      await eventually('the first pod to be placed', async () => {
        const found = await world.get('Pod', NS, 'before');
        return tolerations(found).join() === ours(own).join();
      });
      times.push(`a pod that ran before was placed after ${elapsed()} s`);
      await eventually('every webhook to have a caBundle', () => isTrusted(world));
      await eventually('a new pod to be reviewed', () => reviewsPods(world, NS, world.image('index-both')));
      await world.create(pod(NS, 'first', { images: [world.image(`program-${own}`)] }));
      await eventually(
        'a new pod to run',
        async () => at(await world.get('Pod', NS, 'first'), 'status', 'phase') === 'Running',
      );
      times.push(`a new pod was placed and ran after ${elapsed()} s`);
      console.log(times.map((text) => `        from the line: ${text}`).join('\n'));
      expect(scheduledOn(await world.get('Pod', NS, 'first'))).to.equal(node.name);
      await eventually('every node to be tainted', async () =>
        (await world.list('Node', '')).every((one) => taints(one).length === 1),
      );
      await runsVersion(there(), FIRST);
    });

    it('passes helm test', async () => {
      expect(await helm('helm test archaware --namespace archaware --timeout 2m')).to.match(/Phase:\s+Succeeded/);
    });

    it(`is upgraded to ${SECOND} under a stream of pods, as docs/operating.md says`, async () => {
      const { chart } = there().release(SECOND);
      const line = `helm upgrade archaware oci://${chart} --version ${SECOND} --namespace archaware --reset-then-reuse-values`;
      await underLoad(there(), `helm upgrade to ${SECOND}`, NS, true, async () => {
        await helm(`${line} --wait --timeout 4m`);
        await runsVersion(there(), SECOND);
      });
      const help = await there().must('kubectl -n archaware exec deployment/archaware-controller -- archaware --help');
      expect(help).to.include(NEWS);
      const configuration = await there().must('kubectl -n archaware get configmap archaware-controller -o yaml');
      expect(configuration, 'the values of the installation').to.match(/mode: both/);
    });

    it(`goes back to ${FIRST} by helm rollback, under a stream of pods`, async () => {
      await underLoad(there(), `helm rollback to ${FIRST}`, NS, true, async () => {
        await helm('helm rollback archaware --namespace archaware --wait --timeout 4m');
        await runsVersion(there(), FIRST);
      });
    });

    it('is uninstalled, and nothing is left', async () => {
      const { world } = there();
      // Pods that nothing brings back stay as they are, and the hook would fail because of them.
      await there().must(`kubectl delete namespace ${NS}`);
      await helm('helm uninstall archaware --namespace archaware --wait --timeout 5m');
      await nothingIsLeft(world);
      await there().must('kubectl delete namespace archaware');
    });
  });
}
