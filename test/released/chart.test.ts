import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { at, listAt, textAt } from '../../hack/cluster/json.ts';
import { type Chart, makeChart } from '../../hack/release/artifacts/chart.ts';
import { IMAGE_DIGEST, type TestRelease, testRelease, textsIn, unreleasedLines } from './release.ts';

describe('the chart of a release', () => {
  let release: TestRelease;
  let chart: Chart;
  let files: Map<string, string>;
  const file = (path: string) => files.get(`archaware-controller/${path}`) ?? expect.fail(`no ${path}`);

  before(async () => {
    release = await testRelease();
    chart = await makeChart(release, IMAGE_DIGEST);
    files = await textsIn(chart.file);
  });
  after(() => release.remove());

  it('is a file with the folder that Helm expects, and everything that the chart of the repository has', () => {
    expect(chart.file).to.equal(join(release.out, `archaware-controller-${release.version}.tgz`));
    expect([...files.keys()]).to.include.members(
      [
        'Chart.yaml',
        'README.md',
        'values.yaml',
        'values.schema.json',
        'templates/deployment.yaml',
        'files/ready.mjs',
      ].map((path) => `archaware-controller/${path}`),
    );
  });

  it('names the image with its digest, so that nothing has to be set', () => {
    expect(parse(file('values.yaml')).image).to.include({
      repository: release.image,
      tag: '',
      digest: IMAGE_DIGEST,
      pullPolicy: 'IfNotPresent',
    });
  });

  it('changes no other value', async () => {
    const source = parse(
      await readFile(join(release.checkout, 'manifests/helm/archaware-controller/values.yaml'), 'utf8'),
    );
    expect({ ...parse(file('values.yaml')), image: undefined }).to.deep.equal({ ...source, image: undefined });
  });

  it('no longer says that an image has to be built', () => {
    expect(file('templates/_names.tpl')).to.include(`Set it to ${release.image}`).and.not.include('hack/build.sh');
    expect(unreleasedLines(files)).to.deep.equal([]);
  });

  it('has a page whose links lead to the repository', () => {
    const links = [...file('README.md').matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => link);
    expect(links).to.have.length.above(5);
    for (const link of links) expect(link).to.match(/^(?:https?:|#)/);
    expect(links).to.include(`${release.source}/blob/${release.tag}/manifests/helm/archaware-controller/values.yaml`);
  });

  it('has annotations as Artifact Hub documents them', () => {
    const { annotations } = parse(file('Chart.yaml'));
    expect(annotations).to.include({
      'artifacthub.io/license': 'MIT',
      'artifacthub.io/prerelease': 'false',
      'artifacthub.io/containsSecurityUpdates': 'true',
    });
    const [image] = parse(annotations['artifacthub.io/images']);
    expect(image.image).to.equal(`${release.image}:${release.version}@${IMAGE_DIGEST}`);
    expect(parse(annotations['artifacthub.io/changes'])).to.deep.equal([
      { kind: 'added', description: `New: images of ${release.image}, and a page.` },
      { kind: 'fixed', description: 'Fixed: a pod that waited for ever.' },
    ]);
  });

  it('names the platforms for which the image is built, as the node affinity does', () => {
    const [built] = listAt(
      parse(file('values.yaml')),
      ...['affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution', 'nodeSelectorTerms'],
    ).flatMap((term) => listAt(term, 'matchExpressions').filter((one) => at(one, 'key') === 'kubernetes.io/arch'));
    const [image] = parse(parse(file('Chart.yaml')).annotations['artifacthub.io/images']);
    expect(image.platforms).to.deep.equal(listAt(built, 'values').map((architecture) => `linux/${architecture}`));
  });

  it('of a pre-release says so', async () => {
    const early = await testRelease({ version: '9.9.9-rc.1' });
    const { file } = await makeChart(early, IMAGE_DIGEST);
    const texts = await textsIn(file);
    const { annotations } = parse(texts.get('archaware-controller/Chart.yaml') ?? '');
    await early.remove();
    expect(annotations)
      .to.include({ 'artifacthub.io/prerelease': 'true' })
      .and.not.have.property('artifacthub.io/changes');
  });

  it('is the same as an OCI artifact, with the types and annotations that helm push writes', async () => {
    const blob = async (digest: string) => {
      const bytes = await readFile(join(chart.layout, 'blobs', digest.replace(':', '/')));
      expect(`sha256:${createHash('sha256').update(bytes).digest('hex')}`).to.equal(digest);
      return bytes;
    };
    const index: unknown = JSON.parse(await readFile(join(chart.layout, 'index.json'), 'utf8'));
    expect(listAt(index, 'manifests').map((one) => textAt(one, 'digest'))).to.deep.equal([chart.digest]);
    const manifest: unknown = JSON.parse((await blob(chart.digest)).toString());
    expect(at(manifest, 'layers')).to.have.length(1);
    const [layer] = listAt(manifest, 'layers');
    expect(textAt(layer, 'mediaType')).to.equal('application/vnd.cncf.helm.chart.content.v1.tar+gzip');
    expect(await blob(textAt(layer, 'digest'))).to.deep.equal(await readFile(chart.file));
    expect(textAt(manifest, 'config', 'mediaType')).to.equal('application/vnd.cncf.helm.config.v1+json');
    const config = await blob(textAt(manifest, 'config', 'digest'));
    expect(JSON.parse(config.toString())).to.deep.equal(parse(file('Chart.yaml')));
    expect(at(manifest, 'annotations')).to.include({
      ...parse(file('Chart.yaml')).annotations,
      'org.opencontainers.image.title': 'archaware-controller',
      'org.opencontainers.image.version': release.version,
      'org.opencontainers.image.created': '2026-11-23T18:21:50Z',
      'org.opencontainers.image.source': release.source,
      'org.opencontainers.image.revision': release.commit,
      'org.opencontainers.image.licenses': 'MIT',
    });
  });
});
