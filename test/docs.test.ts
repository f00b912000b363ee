import { readdir, readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { blocksOf, makeWorkplace, startDocumentRegistry, type Workplace } from './support/doc-blocks.ts';
import { needsPosix } from './support/platforms.ts';
import { type Product, startProduct } from './support/product.ts';

const DOCUMENTS = [
  'README.md',
  'docs/install.md',
  'docs/operating.md',
  'docs/admission.md',
  'docs/explain.md',
  'docs/report.md',
  'docs/check.md',
  'docs/migrating.md',
];
const found = await Promise.all(
  DOCUMENTS.map(async (document) => ({
    document,
    blocks: (await blocksOf(document)).filter(({ mark }) => mark === 'tested'),
  })),
);

for (const { document, blocks } of found.filter((one) => one.blocks.length > 0)) {
  describe(`the blocks of ${document} that need Node.js alone`, () => {
    let product: Product;
    let registry: Awaited<ReturnType<typeof startDocumentRegistry>>;
    let workplace: Workplace;

    before(async function () {
      needsPosix(this, 'bash');
      product = await startProduct();
      registry = await startDocumentRegistry();
      workplace = await makeWorkplace();
      await product.namespace('shop');
      const images = ['registry.example.com/shop/web:2.4', 'registry.example.com/shop/migrate:2.5'];
      await product.cluster.createPod({ name: 'web-1', namespace: 'shop', images });
    });

    after(() => Promise.all([product?.stop(), registry?.stop(), workplace?.remove()]));

    for (const block of blocks) {
      it(`line ${block.line} does as it says: ${block.script.split('\n')[0]}`, async () => {
        await workplace.run(block, { KUBECONFIG: product.cluster.kubeconfig, ...registry.environment });
      });
    }
  });
}

describe('a documented kubectl delete', () => {
  it('ignores objects that clean, or an earlier try, has removed', async () => {
    const root = new URL('../', import.meta.url);
    const names = await readdir(new URL('docs/', root), { recursive: true });
    const documents = ['README.md', ...names.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`)];
    const manifests = [
      'manifests/archaware-controller.yaml',
      'manifests/archaware-controller-1.30.yaml',
      'manifests/archaware-controller-observe.yaml',
    ];
    const failing: string[] = [];
    let seen = 0;
    for (const name of [...documents, ...manifests]) {
      for (const line of (await readFile(new URL(name, root), 'utf8')).split('\n')) {
        for (const [command = ''] of line.matchAll(/kubectl (?:-[^ `]+ \S+ )*delete [^`]+/g)) {
          seen += 1;
          if (!command.includes('--ignore-not-found')) failing.push(`${name}: ${command}`);
        }
      }
    }
    expect(failing).to.deep.equal([]);
    expect(seen).to.be.greaterThan(8);
  });
});

describe('the documented uninstallation', () => {
  it('deletes every manifest that may have been applied in addition', async () => {
    const root = new URL('../', import.meta.url);
    const [, uninstall = ''] = (await readFile(new URL('docs/operating.md', root), 'utf8')).split('\n## Uninstall\n');
    const additional = (await readdir(new URL('manifests/', root))).filter((name) =>
      /^(?!archaware).*\.yaml$/.test(name),
    );
    expect(additional).to.have.members(['publish.yaml', 'webhook.yaml']);
    expect(additional.filter((name) => !uninstall.includes(`-f manifests/${name}`))).to.deep.equal([]);
  });
});

describe('the marked blocks of a document', () => {
  it('there are some', () => {
    const documents = found.filter(({ blocks }) => blocks.length > 0).map(({ document }) => document);
    expect(documents).to.include.members(['README.md', 'docs/install.md', 'docs/explain.md']);
  });
});
