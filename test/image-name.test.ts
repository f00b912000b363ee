import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
/** A domain of this ending never resolves (RFC 2606). */
const PLACEHOLDER = /^registry\.invalid\/archaware-controller:[\w.-]+$/;

function textsBelow(folder: string): [path: string, text: string][] {
  const entries = readdirSync(ROOT + folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => `${parentPath}/${name}`);
  return paths.map((path) => [path.slice(ROOT.length), readFileSync(path, 'utf8')]);
}

describe('the name of the image, until one is published', () => {
  it('can never be pulled, in every manifest', () => {
    const named = textsBelow('manifests')
      .filter(([path]) => path.endsWith('.yaml') && !path.includes('/helm/'))
      .flatMap(([path, text]) => [...text.matchAll(/^\s*(?:- )?image: (\S+)$/gm)].map((match) => [path, match[1]]));
    expect(named).to.have.length.above(2);
    for (const [path, image] of named) expect(image, path).to.match(PLACEHOLDER);
  });

  it('has no default in the chart', () => {
    const values = readFileSync(`${ROOT}manifests/helm/archaware-controller/values.yaml`, 'utf8');
    expect(values).to.match(/^image:\n(?: +.*\n)*? {2}repository: ["']{2}/m);
  });

  it('cannot be registered by somebody else, in any file', () => {
    const readers = [['README.md', readFileSync(`${ROOT}README.md`, 'utf8')] as const];
    const pages = textsBelow('docs').filter(([path]) => !/decisions|reliability/.test(path));
    for (const [path, text] of [...readers, ...pages, ...textsBelow('manifests')]) {
      expect(text, path).not.to.match(/docker\.io\/archaware\/|image: archaware\//m);
    }
  });
});
