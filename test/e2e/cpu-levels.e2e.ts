import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { image } from '../../testimg/build.ts';
import { TESTIMG_REPOSITORY } from '../../testimg/fixtures.ts';
import { pushFixtures } from '../../testimg/push.ts';
import { ours, runs, scheduledOn, tolerations } from '../support/objects.ts';
import { arrangeWebhook, eventuallyTrusted } from '../support/webhook.ts';
import { type PodOptions, pod } from '../support/workloads.ts';
import { admit, affinity, GATE, gates, isIn, onArch, required } from './support/placed.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const label = (level: number) => `feature.node.kubernetes.io/cpu-cpuid.X86_64_V${level}`;
/** As node-feature-discovery labels a node whose CPU has the level v3. */
const OF_V3 = { [label(1)]: 'true', [label(2)]: 'true', [label(3)]: 'true' };
const REQUIRED = { nodeAffinity: required([onArch('amd64'), isIn(label(3), 'true')]) };

const startCluster = () =>
  startWorld({
    nodes: [
      { name: 'amd64-old', architecture: 'amd64' },
      { name: 'amd64-v3', architecture: 'amd64', labels: OF_V3 },
      { name: 'arm64-1', architecture: 'arm64' },
    ],
  });

/** Pushes a single manifest for amd64 of this level under a tag that nobody has asked for; returns its reference. */
async function push(world: LiveWorld, level: string): Promise<string> {
  const tag = `level-${level}-${++pushed}`;
  const platform = { os: 'linux', architecture: 'amd64', variant: level };
  const fixture = { tag, description: tag, build: () => image(platform), expected: { platforms: [platform] } };
  const to = { registry: world.registry.host, repository: TESTIMG_REPOSITORY, insecure: true };
  await pushFixtures({ ...to, fixtures: [fixture] });
  return world.image(tag);
}
let pushed = 0;

for (const mode of ['affinity', 'both']) {
  describe(`images for a CPU level in the mode ${mode}, on the real control plane`, () => {
    let world: LiveWorld;
    let count = 0;

    before(async () => {
      world = await startCluster();
      await world.namespace('shop');
      const { flags } = await arrangeWebhook(world);
      await world.run([...flags, '--placement.mode', mode]);
      await eventuallyTrusted(world);
      if (mode === 'both') await world.eventuallyTainted();
    });
    after(() => world?.stop());

    /** Creates a pod of an image that is not known, and then one of the same image, which is; returns both as they run or wait. */
    async function bothWays(of: string, options: Partial<PodOptions> = {}) {
      const [unknown, known] = [`unknown-${++count}`, `known-${count}`];
      const gated = await admit(world, pod('shop', unknown, { ...options, images: [of] }));
      expect(gates(gated)).to.deep.equal([GATE]);
      const released = await world.eventually('the gate to go', async () => {
        const found = await world.get('Pod', 'shop', unknown);
        return gates(found).length === 0 && found;
      });
      const atOnce = await admit(world, pod('shop', known, { ...options, images: [of] }));
      expect(gates(atOnce)).to.deep.equal([]);
      return [released, atOnce];
    }
    async function nodeOf(found: unknown): Promise<unknown> {
      const name = String(at(found, 'metadata', 'name'));
      return world.eventually(`${name} to run`, async () => {
        const now = await world.get('Pod', 'shop', name);
        return runs(now) && scheduledOn(now);
      });
    }

    it('a pod goes to the node with the label, released from its gate and answered at once', async () => {
      for (const found of await bothWays(await push(world, 'v3'))) {
        expect(affinity(found)).to.deep.equal(REQUIRED);
        expect(tolerations(found)).to.deep.equal(mode === 'both' ? ours('amd64') : []);
        expect(await nodeOf(found)).to.equal('amd64-v3');
      }
    });

    it('what the author asks of the level stays alone', async () => {
      const own = {
        nodeSelector: { [label(2)]: 'true' },
        affinity: { nodeAffinity: required([isIn(label(3), 'true')]) },
      };
      for (const found of await bothWays(await push(world, 'v3'), { spec: own })) {
        expect(affinity(found)).to.deep.equal({ nodeAffinity: required([isIn(label(3), 'true'), onArch('amd64')]) });
        expect(await nodeOf(found)).to.equal('amd64-v3');
      }
    });

    it('explain shows the label, and what the scheduler will do', async () => {
      const manifest = JSON.stringify(pod('shop', 'asked', { images: [await push(world, 'v3')] }));
      const { code, stdout } = await world.command(['explain', '-f', '-', '--placement.mode', mode, '-o', 'json'], {
        input: manifest,
      });
      expect(code).to.equal(0);
      const explained: unknown = JSON.parse(stdout);
      const all = listAt(explained, 'affinity', 'required').map((each) => at(each, 'key'));
      expect(all).to.deep.equal(['kubernetes.io/arch', label(3)]);
      const fits = listAt(explained, 'nodes').filter((each) => at(each, 'placed', 'fits') === true);
      expect(fits.flatMap((each) => listAt(each, 'names'))).to.deep.equal(['amd64-v3']);
    });

    it('a level that no node has is not required, and the Event names the label', async () => {
      for (const found of await bothWays(await push(world, 'v4'))) {
        expect(affinity(found)).to.deep.equal({ nodeAffinity: required([onArch('amd64')]) });
        expect(await nodeOf(found)).to.be.oneOf(['amd64-v3', 'amd64-old']);
      }
      await world.eventuallyEvent(
        'shop',
        'OpenPlacement',
        /amd64\/v4 .*no node .*X86_64_V4=true \(node-feature-discovery/,
      );
    });

    it('without any label a pod is still scheduled', async () => {
      const of = await push(world, 'v3');
      const [, before] = await bothWays(of);
      expect(affinity(before)).to.deep.equal(REQUIRED);
      await world.patch('Node', '', 'amd64-v3', { metadata: { labels: { [label(3)]: null } } });
      const after = await world.eventually('the next pod without the label', async () => {
        const next = await admit(world, pod('shop', `next-${++count}`, { images: [of] }));
        return JSON.stringify(affinity(next)).includes(label(3)) ? undefined : next;
      });
      expect(affinity(after)).to.deep.equal({ nodeAffinity: required([onArch('amd64')]) });
      expect(await nodeOf(after)).to.be.oneOf(['amd64-v3', 'amd64-old']);
    });
  });
}

describe('images for a CPU level in the mode taints, on the real control plane', () => {
  let world: LiveWorld;
  before(async () => {
    world = await startCluster();
    await world.namespace('shop');
    await world.run();
    await world.eventuallyTainted();
  });
  after(() => world?.stop());

  it('an Event says what the pod needs, and its author can ask for it', async () => {
    const of = await push(world, 'v3');
    await world.create(pod('shop', 'plain', { images: [of] }));
    const note = await world.eventuallyEvent('shop', 'OpenPlacement', /amd64\/v3/);
    expect(note)
      .to.contain(of)
      .and.to.contain(`let its nodeSelector ask for ${label(3)}=true`);
    await world.create(pod('shop', 'asks', { images: [of], spec: { nodeSelector: { [label(3)]: 'true' } } }));
    const asks = await world.eventuallyTolerates('shop', 'asks', ours('amd64'));
    expect(affinity(asks)).to.equal(undefined);
    await world.eventually('it to run', async () => scheduledOn(await world.get('Pod', 'shop', 'asks')) === 'amd64-v3');
    expect(await world.events('shop', 'OpenPlacement')).to.have.lengthOf(1);
  });
});
