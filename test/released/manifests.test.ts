import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { expect } from 'chai';
import { parseAllDocuments } from 'yaml';
import { makeManifests, releasedManifest } from '../../hack/release/artifacts/manifests.ts';
import { IMAGE_DIGEST, type TestRelease, testRelease, textsBelow, textsIn, unreleasedLines } from './release.ts';

const SINGLE = ['archaware-controller.yaml', 'archaware-controller-1.30.yaml', 'archaware-controller-observe.yaml'];

describe('the manifests of a release', () => {
  let release: TestRelease;
  let files: Map<string, string>;
  let kustomize: Map<string, string>;
  const folder = () => `archaware-controller-kustomize-${release.version}`;
  const text = (name: string) => files.get(name) ?? expect.fail(`no ${name}`);
  const source = (name: string) => readFile(`${release.checkout}/manifests/${name}`, 'utf8');

  before(async () => {
    release = await testRelease();
    const made = await makeManifests(release, IMAGE_DIGEST);
    expect(made.map((path) => basename(path))).to.deep.equal([
      ...SINGLE,
      'publish.yaml',
      'webhook.yaml',
      `${folder()}.tgz`,
    ]);
    files = await textsBelow(release.out);
    files.delete(`${folder()}.tgz`);
    kustomize = await textsIn(`${release.out}/${folder()}.tgz`);
  });
  after(() => release.remove());

  for (const name of SINGLE) {
    it(`name the image with its version and digest, and change nothing else: ${name}`, async () => {
      const image = `${release.image}:${release.version}@${IMAGE_DIGEST}`;
      const objects = (yaml: string) => parseAllDocuments(yaml).map((document) => document.toJS());
      const placeholder = `registry.invalid/archaware-controller:${release.version}`;
      const expected = (await source(name)).replace(placeholder, image);
      expect(objects(text(name))).to.deep.equal(objects(expected));
      expect(text(name)).to.include(`image: ${image}\n`);
    });
  }

  it('say at their head what they are and how to check it, not how to build', () => {
    for (const [name, found] of files) {
      const [head = ''] = found.split(/^(?=[^#])/m);
      expect(head, name).to.include(`# archaware-controller ${release.version} of ${release.source}`);
      expect(head, name).to.include(`${release.source}/blob/${release.tag}/docs/verify.md`);
      expect(head, name).not.to.match(/hack\/|Generated|dist\/main\.js|[^/]docs\//);
    }
  });

  it('have no placeholder left', () => {
    expect(unreleasedLines(files)).to.deep.equal([]);
    expect(unreleasedLines(kustomize)).to.deep.equal([]);
  });

  it('are also the folder of kustomize, whose overlays need no images of their own', async () => {
    const own = await textsBelow(`${release.checkout}/manifests/kustomize`);
    expect([...kustomize.keys()]).to.have.members(['LICENSE', ...own.keys()].map((path) => `${folder()}/${path}`));
    expect(kustomize.get(`${folder()}/base/deployment.yaml`)).to.include(
      `image: ${release.image}:${release.version}@${IMAGE_DIGEST}\n`,
    );
  });

  it('are refused if the image is not where it should be', async () => {
    const other = (await source('archaware-controller.yaml')).replace(
      'registry.invalid/archaware-controller:',
      'example.com/x:',
    );
    expect(() => releasedManifest('archaware-controller.yaml', other, release, IMAGE_DIGEST)).to.throw(
      `archaware-controller.yaml: found registry.invalid/archaware-controller:${release.version} 0 times, expected 1`,
    );
  });

  it('are refused if their head is another one', async () => {
    const other = (await source('archaware-controller.yaml')).replace('# Generated from', '# Made from');
    expect(() => releasedManifest('archaware-controller.yaml', other, release, IMAGE_DIGEST)).to.throw('its head');
  });
});
