import { readdir, readFile } from 'node:fs/promises';
import { expect } from 'chai';
import {
  type Block,
  blocksIn,
  blocksOf,
  makeWorkplace,
  startDocumentRegistry,
  type Workplace,
} from './support/doc-blocks.ts';
import { type Product, startProduct } from './support/product.ts';

const DOCUMENTS = [
  'README.md',
  'docs/install.md',
  'docs/operating.md',
  'docs/admission.md',
  'docs/explain.md',
  'docs/migrating.md',
];
const found = await Promise.all(
  DOCUMENTS.map(async (document) => ({
    document,
    blocks: (await blocksOf(document)).filter(({ mark }) => mark === 'tested'),
  })),
);

for (const { document, blocks } of found.filter((one) => one.blocks.length > 0)) {
  describe(`the blocks of ${document} that need Node.js alone`, function () {
    this.timeout(60_000);
    let product: Product;
    let registry: Awaited<ReturnType<typeof startDocumentRegistry>>;
    let workplace: Workplace;

    before(async () => {
      product = await startProduct();
      registry = await startDocumentRegistry();
      workplace = await makeWorkplace();
      await product.cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } }));
      const images = ['registry.example.com/shop/web:2.4', 'registry.example.com/shop/migrate:2.5'];
      await product.cluster.createPod({ name: 'web-1', namespace: 'shop', images });
    });

    after(async () => {
      await Promise.all([product?.stop(), registry?.stop(), workplace?.remove()]);
    });

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
    const manifests = ['manifests/archaware-controller.yaml', 'manifests/archaware-controller-1.30.yaml'];
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

describe('the marked blocks of a document', () => {
  it('there are some', () => {
    const documents = found.filter(({ blocks }) => blocks.length > 0).map(({ document }) => document);
    expect(documents).to.include.members(['README.md', 'docs/install.md', 'docs/explain.md']);
  });

  const rows: [markdown: string, blocks: Block[]][] = [
    ['```sh\nls\n```\n', []],
    ['```yaml\na: 1\n```\n', []],
    ['```sh tested\nls\n\npwd\n```\n', [{ line: 1, mark: 'tested', exit: 0, script: 'ls\n\npwd' }]],
    ['a\n```sh tested exit=2\nls\n```\n', [{ line: 2, mark: 'tested', exit: 2, script: 'ls' }]],
    ['```sh tested-on-cluster\nls\n```\n', [{ line: 1, mark: 'tested-on-cluster', exit: 0, script: 'ls' }]],
    ['```yaml\n```\n```sh tested\nls\n```', [{ line: 3, mark: 'tested', exit: 0, script: 'ls' }]],
  ];
  for (const [markdown, blocks] of rows) {
    it(`are found in ${JSON.stringify(markdown)}`, () => expect(blocksIn(markdown)).to.deep.equal(blocks));
  }

  it('are refused with an unknown mark, and without an end', () => {
    expect(() => blocksIn('```sh testd\nls\n```\n')).to.throw('line 1: "sh testd" is no mark');
    expect(() => blocksIn('```sh tested\nls\n')).to.throw('the block of line 1 has no end');
  });

  it('fail with their output if they end with another exit code than expected', async () => {
    const workplace = await makeWorkplace();
    const block = { line: 7, mark: 'tested', exit: 0 } as const;
    try {
      const failed = await workplace.run({ ...block, script: 'echo so far\nfalse\necho never' }, {}).catch(String);
      expect(failed).to.equal('Error: the block of line 7 ended with 1, not 0:\nso far\n');
      expect((await workplace.run({ ...block, exit: 1, script: 'false | true' }, {})).code).to.equal(1);
    } finally {
      await workplace.remove();
    }
  });
});
