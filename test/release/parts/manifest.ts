/** The manifest of a release, which names the image by digest. */
import { expect } from 'chai';
import { eventuallyOn } from '../../e2e/support/real-checks.ts';
import { ours, taints } from '../../support/objects.ts';
import { VERSIONS } from '../support/names.ts';
import { blockWith, type Rehearsal, releaseBlocks } from '../support/rehearsal.ts';
import { runsVersion, underLoad } from '../support/stream.ts';

const NS = 'manifested';
const [FIRST, SECOND] = VERSIONS;

export function theManifest(there: () => Rehearsal): void {
  describe('the manifest', () => {
    /**
     * As docs/operating.md says: the file, with a configuration of one's own in it. The registry of the pods of the tests speaks
     * plain http.
     */
    const apply = async (version: string) => {
      const { source, world, must } = there();
      const registries = `registries: {insecure: ["${world.registry.nodeHost}"]}`;
      await must(`curl -fsSL ${source}/releases/download/v${version}/archaware-controller.yaml > archaware.yaml
sed -i '/^  config.yaml: |/a\\    ${registries}' archaware.yaml
kubectl apply -f archaware.yaml
kubectl -n archaware rollout status deployment/archaware-controller --timeout=4m`);
    };

    it(`of ${FIRST} is installed by the line of the README, and taints every node`, async () => {
      const { world, node, own, other, fake, must } = there();
      await world.namespace(NS);
      await must(blockWith(await releaseBlocks('README.md', there(), FIRST), 'kubectl apply'));
      await runsVersion(there(), FIRST);
      await eventuallyOn(world)('every node to be tainted', async () => {
        const [real, played] = [await world.node(node.name), await world.node(fake)];
        return taints(real).join() === ours(own).join() && taints(played).join() === ours(other).join();
      });
      await apply(FIRST);
    });

    it(`is upgraded to ${SECOND} under a stream of pods`, async () => {
      await underLoad(there(), `kubectl apply of ${SECOND}`, NS, false, async () => {
        await apply(SECOND);
        await runsVersion(there(), SECOND);
      });
    });

    it(`goes back to ${FIRST} by its manifest, under a stream of pods`, async () => {
      await underLoad(there(), `kubectl apply of ${FIRST}`, NS, false, async () => {
        await apply(FIRST);
        await runsVersion(there(), FIRST);
      });
      expect(await there().world.list('Pod', NS)).to.be.an('array');
    });
  });
}
