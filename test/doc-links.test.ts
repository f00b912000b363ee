import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const ROOT = fileURLToPath(new URL('../', import.meta.url));

/** README.md, and every document below docs. */
const documents = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => join('docs', file))
    .sort(),
];

/** Returns the targets of a text's links, without links to other sites and without code. */
function linksIn(markdown: string): string[] {
  const prose = markdown.replace(/^```[\s\S]*?^```$/gm, '').replace(/`[^`\n]*`/g, '');
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, to = '']) => (/^[a-z]+:/.test(to) ? [] : to));
}

/** The anchors of a text's headings, as GitHub makes them. */
function anchorsIn(markdown: string): Set<string> {
  const headings = markdown.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/^#{1,6} (.+)$/gm);
  return new Set(
    [...headings].map(([, title = '']) =>
      title
        .toLowerCase()
        .replace(/[^\p{L}\p{N}_ -]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

/** Returns why a link of a document is broken, or undefined. */
function broken(document: string, link: string): string | undefined {
  const [path = '', anchor] = link.split('#');
  const file = path === '' ? document : join(dirname(document), path);
  if (!existsSync(join(ROOT, file))) return `${document}: ${link}: there is no ${file}`;
  if (anchor === undefined || !file.endsWith('.md')) return undefined;
  const anchors = anchorsIn(readFileSync(join(ROOT, file), 'utf8'));
  return anchors.has(anchor) ? undefined : `${document}: ${link}: ${file} has no such heading`;
}

describe('the links of the documents', () => {
  it('lead to existing files and headings', () => {
    const found = documents.flatMap((document) =>
      linksIn(readFileSync(join(ROOT, document), 'utf8')).flatMap((link) => broken(document, link) ?? []),
    );
    expect(found).to.deep.equal([]);
  });

  it('are found, and broken ones are reported', () => {
    expect(linksIn('[a](b.md#c) `[d](e)` [f](https://g) ![h](i.svg)\n```\n[j](k)\n```\n')).to.deep.equal([
      'b.md#c',
      'i.svg',
    ]);
    expect([...anchorsIn('# At 3 a.m.\n## `kind`, microk8s\n### The nodes have a certs.d\n')]).to.deep.equal([
      'at-3-am',
      'kind-microk8s',
      'the-nodes-have-a-certsd',
    ]);
    expect(broken('docs/install.md', 'nowhere.md')).to.match(/there is no docs.nowhere\.md$/);
    expect(broken('docs/install.md', '#nowhere')).to.match(/has no such heading$/);
  });
});
