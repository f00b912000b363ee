import { existsSync, readdirSync, readFileSync } from 'node:fs';
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

/** What people read and apply: pages, manifests and the files for the host of the repository. */
function published(): [path: string, text: string][] {
  const pages = ['README.md', 'SECURITY.md', 'CONTRIBUTING.md', 'CHANGELOG.md'].map((path): [string, string] => [
    path,
    readFileSync(ROOT + path, 'utf8'),
  ]);
  const docs = textsBelow('docs').filter(([path]) => !/decisions|reliability/.test(path));
  const host = existsSync(`${ROOT}.github`) ? textsBelow('.github') : [];
  return [...pages, ...docs, ...textsBelow('manifests'), ...host];
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
});

describe('an address of archaware', () => {
  /** RFC 2606 and RFC 6761: nobody can register these. */
  const RESERVED = /(?:^|\.)(?:invalid|example|example\.(?:com|org|net)|localhost)$|^127\.|^archaware-controller/;
  const addresses = (text: string): string[] => text.match(/\b(?:https?|oci):\/\/[^\s'"`<>)|]+/g) ?? [];
  const hostOf = (address: string) => /^\w+:\/\/([^/:@]*)/.exec(address)?.[1]?.replaceAll('\\', '') ?? '';
  /** A chart is always ours; another address is ours if it says so. A host that is a variable has a value elsewhere. */
  const isOurs = (address: string) => /^oci:|archaware/.test(address) && !/^[$…]|^$/.test(hostOf(address));
  const claimable = (text: string) =>
    addresses(text).filter((address) => isOurs(address) && !RESERVED.test(hostOf(address)));

  it('has a host that nobody can register, in every page and manifest', () => {
    const found = published().flatMap(([path, text]) => claimable(text).map((address) => `${path}: ${address}`));
    expect(found).to.deep.equal([]);
  });
});
