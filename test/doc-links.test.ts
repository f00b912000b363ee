import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { filesBelow } from './support/platforms.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));

/** The documents at the top, every one below docs, and the README of any folder. */
const documents = [
  ...readdirSync(ROOT).filter((file) => file.endsWith('.md')),
  ...filesBelow('docs').filter((file) => file.endsWith('.md')),
  ...['src', 'test', 'testimg', 'manifests', 'hack']
    .flatMap(filesBelow)
    .filter((file) => basename(file) === 'README.md'),
].sort();

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

/** Every TypeScript file of the project. */
const files = ['src', 'test', 'testimg', 'hack'].flatMap(filesBelow).filter((file) => file.endsWith('.ts'));

/** Returns the TypeScript files that a text names in code: `kube/lease.ts`, but not `*.ts`. */
function namedIn(markdown: string): string[] {
  return [...markdown.matchAll(/`((?:[\w-]+\/)*[\w.-]+\.ts)`/g)].map(([, name = '']) => name);
}

/** Whether a file exists under this name, with as many of its folders as the document says. A folder of src names its own files. */
function isFile(name: string, document: string): boolean {
  const within = document.startsWith('src/') && !name.includes('/') ? `${dirname(document)}/` : '';
  const isNamed = (file: string) => file === name || file.endsWith(`/${name}`);
  return files.some((file) => file === `src/${name}` || (file.startsWith(within) && isNamed(file)));
}

describe('the files that the documents name', () => {
  it('exist', () => {
    const missing = documents.flatMap((document) =>
      namedIn(readFileSync(join(ROOT, document), 'utf8')).flatMap((name) =>
        isFile(name, document) ? [] : `${document}: ${name}`,
      ),
    );
    expect(missing).to.deep.equal([]);
  });
});

describe('the links of the documents', () => {
  it('lead to existing files and headings', () => {
    const found = documents.flatMap((document) =>
      linksIn(readFileSync(join(ROOT, document), 'utf8')).flatMap((link) => broken(document, link) ?? []),
    );
    expect(found).to.deep.equal([]);
  });
});

/** The pages that a text names, such as `docs/security.md, "The network"`; `part` is the heading or the words that follow. */
function pagesIn(text: string): { readonly page: string; readonly part: string | undefined }[] {
  const whole = text.replaceAll(/\s*\n[\s#*/]*/g, ' ');
  return [...whole.matchAll(/\b(docs\/[a-z0-9/-]+\.md)(?:,? \(?"([^"]+)")?/g)].map(([, page = '', part]) => ({
    page,
    part,
  }));
}

/** Returns why a page that is named is not there, or undefined. */
function missing({ page, part }: ReturnType<typeof pagesIn>[number]): string | undefined {
  if (!existsSync(join(ROOT, page))) return `there is no ${page}`;
  return part === undefined || readFileSync(join(ROOT, page), 'utf8').includes(part)
    ? undefined
    : `${page} has no "${part}"`;
}

/** Its page is in another repository. */
const ELSEWHERE = 'docs/design/operator-bundle.md';

describe('the pages that the program, the manifests and the chart name', () => {
  it('exist, with the part that is named', () => {
    const found = ['src', 'manifests', 'hack'].flatMap(filesBelow).flatMap((file) =>
      /\.(?:ts|sh|yaml|txt|tpl)$/.test(file)
        ? pagesIn(readFileSync(join(ROOT, file), 'utf8'))
            .filter(({ page }) => page !== ELSEWHERE)
            .flatMap((named) => missing(named) ?? [])
            .map((why) => `${file}: ${why}`)
        : [],
    );
    expect(found).to.deep.equal([]);
  });
});
