import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Registry, startRegistry } from '../../hack/cluster/registry.ts';
import { binaries } from '../../hack/cluster/spawn.ts';
import { type Chart, makeChart } from '../../hack/release/artifacts/chart.ts';
import { makeManifests } from '../../hack/release/artifacts/manifests.ts';
import { IMAGE_DIGEST, ROOT, type TestRelease, testRelease } from '../released/release.ts';
import { run } from './support/programs.ts';

const binary = (name: string) => join(binaries(), name);

describe('the chart of a release, in a registry', function () {
  this.timeout(60_000);
  let registry: Registry;
  let release: TestRelease;
  let chart: Chart;
  let directory: string;

  before(async () => {
    registry = await startRegistry();
    const place = `${registry.host}/team`;
    release = await testRelease({
      registry: registry.host,
      image: `${place}/archaware-controller`,
      chart: `${place}/charts/archaware-controller`,
    });
    directory = await mkdtemp(join(tmpdir(), 'archaware-helm-'));
    chart = await makeChart(release, IMAGE_DIGEST);
    const pushed = await run([binary('crane')], 'push', chart.layout, `${release.chart}:${release.version}`);
    expect(pushed.trim()).to.equal(`${release.chart}@${chart.digest}`);
  });
  after(async () => {
    await Promise.all([registry?.remove(), release?.remove(), rm(directory, { recursive: true, force: true })]);
  });

  // Helm 3 is there after hack/cluster/build-neighbours.sh.
  for (const helm of ['helm', 'helm3']) {
    const from = () => [`oci://${release.chart}`, '--version', release.version, '--plain-http'];

    it(`is what ${helm} pulls`, async function () {
      if (!existsSync(binary(helm))) return this.skip();
      const folder = await mkdtemp(join(directory, 'pulled-'));
      await run([binary(helm)], 'pull', ...from(), '--destination', folder);
      const pulled = await readFile(join(folder, `archaware-controller-${release.version}.tgz`));
      expect(pulled.equals(await readFile(chart.file))).to.equal(true);
    });

    it(`needs no value with ${helm}, and runs the image by its digest`, async function () {
      if (!existsSync(binary(helm))) return this.skip();
      const made = await run([binary(helm)], 'template', 'archaware', ...from(), '--kube-version', '1.37.0');
      const images = [...made.matchAll(/^ +image: (.*)$/gm)].map(([, image]) => image);
      expect(images).to.have.length.above(1);
      expect([...new Set(images)]).to.deep.equal([`${release.image}@${IMAGE_DIGEST}`]);
    });

    it(`has no fault that ${helm} lint finds`, async function () {
      if (!existsSync(binary(helm))) return this.skip();
      expect(await run([binary(helm)], 'lint', '--strict', chart.file)).to.include('0 chart(s) failed');
    });
  }

  it('says so if the image is not its own, as after helm upgrade --reuse-values', async () => {
    // --dry-run=client asks no server with Helm 4.
    const notes = (...args: readonly string[]) =>
      run([binary('helm')], 'install', 'archaware', chart.file, '--dry-run=client', ...args);
    const warning = 'WARNING: this is not the image of this chart';
    expect(await notes()).not.to.include(warning);
    expect(await notes('--set', `image.digest=sha256:${'0'.repeat(64)}`)).to.include(warning);
    expect(await notes('--set', 'image.digest=')).to.include(warning);
    const own = join(ROOT, 'manifests/helm/archaware-controller');
    const ofRepository = await run(
      [binary('helm')],
      'install',
      'x',
      own,
      '--dry-run=client',
      '--set',
      'image.repository=r.example/x',
    );
    expect(ofRepository).to.include('Its image is r.example/x').and.not.include(warning);
  });

  it('runs the image of a mirror by the same digest', async () => {
    const mirror = 'mirror.example.com/archaware-controller';
    const made = await run(
      [binary('helm')],
      'template',
      'archaware',
      chart.file,
      '--set',
      `image.repository=${mirror}`,
    );
    expect(made).to.include(`image: ${mirror}@${IMAGE_DIGEST}`);
  });
});

describe('the folder of kustomize of a release', () => {
  let release: TestRelease;
  before(async () => {
    release = await testRelease();
  });
  after(() => release.remove());

  it('makes the objects of the single manifest, without images of its own', async () => {
    await makeManifests(release, IMAGE_DIGEST);
    const name = `archaware-controller-kustomize-${release.version}`;
    await run(['tar'], '-xzf', join(release.out, `${name}.tgz`), '-C', release.out);
    const made = await run([binary('kubectl')], 'kustomize', join(release.out, name, 'overlays/taints'));
    expect(made).to.include(`image: ${release.image}:${release.version}@${IMAGE_DIGEST}\n`);
    const count = (text: string) => text.match(/^kind: /gm)?.length;
    expect(count(made)).to.equal(count(await readFile(join(release.out, 'archaware-controller.yaml'), 'utf8')));
  });
});
