import { readFile } from 'node:fs/promises';
import { delimiter } from 'node:path';
import { expect } from 'chai';
import type { Cluster } from '../../hack/cluster/cluster.ts';
import { at } from '../../hack/cluster/json.ts';
import { binaries } from '../../hack/cluster/spawn.ts';
import { ARCHITECTURE_GATE } from '../../src/names.ts';
import { blocksOf, makeWorkplace, startDocumentRegistry, type Workplace } from '../support/doc-blocks.ts';
import { pod, statefulSet } from '../support/workloads.ts';
import { objectsOf, taintsOf } from '../support/world.ts';
import { gates } from './support/placed.ts';
import { type Borrowed, borrowCluster } from './support/shared-cluster.ts';
import { type StandIn, standInForDeployment } from './support/stand-in.ts';

/**
 * Whether archaware's manifest is applied before the first block, or by the document itself. `isIdle`: the controller is only installed,
 * because its configuration names files of a cloud's nodes.
 */
const DOCUMENTS: readonly { readonly document: string; readonly installed: boolean; readonly isIdle?: true }[] = [
  { document: 'README.md', installed: true },
  { document: 'docs/install.md', installed: false },
  { document: 'docs/eks-karpenter.md', installed: false, isIdle: true },
  { document: 'docs/k3s.md', installed: false },
  { document: 'docs/operating.md', installed: true },
  { document: 'docs/admission.md', installed: true },
  { document: 'docs/explain.md', installed: true },
  { document: 'docs/alerts.md', installed: true },
];

/** A gate of somebody else. */
const THEIRS = 'example.com/theirs';
const MANIFEST = new URL('../../manifests/archaware-controller.yaml', import.meta.url);

const found = await Promise.all(
  DOCUMENTS.map(async (one) => ({
    ...one,
    blocks: (await blocksOf(one.document)).filter(({ mark }) => mark === 'tested-on-cluster'),
  })),
);

for (const { document, installed, isIdle, blocks } of found.filter((one) => one.blocks.length > 0)) {
  describe(`the blocks of ${document}, in their order, on a cluster`, function () {
    this.timeout(240_000);
    let borrowed: Borrowed;
    let cluster: Cluster;
    let standIn: StandIn | undefined;
    let registry: Awaited<ReturnType<typeof startDocumentRegistry>>;
    let workplace: Workplace;

    before(async () => {
      [borrowed, registry, workplace] = await Promise.all([borrowCluster(), startDocumentRegistry(), makeWorkplace()]);
      ({ cluster } = borrowed);
      await Promise.all(
        ['amd64', 'arm64'].map((architecture) => cluster.createNode({ name: `${architecture}-1`, architecture })),
      );
      // A gated pod with an unknown image must keep the gate until a block removes it.
      const patient = { ...registry.environment, ARCHAWARE_IMAGES__FALLBACK_AFTER: '1h' };
      if (!isIdle) standIn = standInForDeployment(cluster, patient);
      await populate(cluster);
      if (!installed) return;
      await cluster.apply(await readFile(MANIFEST, 'utf8'));
      await objectsOf(cluster, 60_000).eventuallyTainted();
    });

    after(async () => {
      await standIn?.stop().finally(() => borrowed?.done());
      await Promise.all([registry?.stop(), workplace?.remove()]);
    });

    for (const block of blocks) {
      it(`line ${block.line} does as it says: ${block.script.split('\n')[0]}`, async () => {
        await workplace.run(block, {
          ...registry.environment,
          PATH: [binaries(), process.env.PATH].join(delimiter),
          KUBECONFIG: cluster.kubeconfig,
        });
        if (block.script.includes(ARCHITECTURE_GATE)) expect(await allGates(cluster)).to.deep.equal([THEIRS]);
      });
    }

    if (document !== 'docs/operating.md') return;
    it('leave nothing of ours behind at the end, nor a gate', async () => {
      expect((await objectsOf(cluster).list('Node', '')).flatMap(taintsOf)).to.deep.equal([]);
      expect(await allGates(cluster)).to.deep.equal([THEIRS]);
      expect((await cluster.request('GET', '/api/v1/namespaces/archaware')).body).to.satisfy(
        (namespace: unknown) =>
          at(namespace, 'code') === 404 || at(namespace, 'metadata', 'deletionTimestamp') !== undefined,
      );
    });
  });
}

describe('the documents', () => {
  it('have blocks that are run on a cluster', () => {
    const documents = found.filter(({ blocks }) => blocks.length > 0).map(({ document }) => document);
    expect(documents).to.include.members(['README.md', 'docs/install.md', 'docs/operating.md']);
  });
});

/** The pods in the documents: one that runs, and one with archaware's gate and another one. */
async function populate(cluster: Cluster): Promise<void> {
  const { namespace, create } = objectsOf(cluster, 60_000);
  await namespace('shop');
  const container = (image: string) => ({ name: 'web', image: `registry.example.com/shop/${image}` });
  const schedulingGates = [{ name: THEIRS }, { name: ARCHITECTURE_GATE }];
  await create(
    statefulSet('shop', 'web', { images: [], spec: { containers: [container('web:2.4')] } }),
    pod('shop', 'gated', { images: [], spec: { containers: [container('unknown:1')], schedulingGates } }),
  );
}

const allGates = async (cluster: Cluster) => (await objectsOf(cluster).list('Pod', '')).flatMap(gates);
