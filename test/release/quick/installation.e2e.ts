/** The chart and the manifest of a release, from a registry and from a file to objects on the control plane. Nothing is built or signed. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { type Cluster, startCluster } from '../../../hack/cluster/cluster.ts';
import { textAt } from '../../../hack/cluster/json.ts';
import { makeChart } from '../../../hack/release/artifacts/chart.ts';
import type { Release } from '../../../hack/release/types.ts';
import { needsHelm } from '../../e2e/support/helm.ts';
import { VERSIONS } from '../support/names.ts';
import { type Place, startPlace } from '../support/place.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const [VERSION] = VERSIONS;
const DIGEST = `sha256:${'6'.repeat(64)}`;
const PATH = '/apis/apps/v1/namespaces/archaware/deployments/archaware-controller';

describe('what a release installs, from a registry with TLS, on the real control plane', function () {
  this.timeout(240_000);
  let place: Place;
  let cluster: Cluster;
  let release: Release;

  before(async function () {
    needsHelm(this);
    place = await startPlace();
    cluster = await startCluster({ kwok: false, schedulerAndManager: false });
    const [registry, repository, source] = [place.host, 'you', 'https://source.test/you/archaware-controller'];
    release = {
      ...{ version: VERSION, tag: `v${VERSION}`, commit: '0'.repeat(40), created: new Date(0), registry, repository },
      ...{ image: `${registry}/you/archaware-controller`, chart: `${registry}/you/charts/archaware-controller` },
      ...{ source, downloads: `${source}/releases/download`, checkout: ROOT },
      ...{ out: join(place.directory, 'out'), work: join(place.directory, 'work') },
    };
    await Promise.all([mkdir(release.out), mkdir(release.work)]);
  });
  after(async () => {
    await cluster?.stop();
    await place?.remove();
  });

  const user = (script: string) =>
    place.must(['bash', '-euo', 'pipefail', '-c', script], { environment: { KUBECONFIG: cluster.kubeconfig } });
  const imageOf = async () => {
    const { body } = await cluster.request('GET', PATH);
    return textAt(body, 'spec', 'template', 'spec', 'containers', 0, 'image');
  };

  it('the chart, by the line of a release: its image by digest', async () => {
    const { layout, digest } = await makeChart(release, DIGEST);
    const pushed = await place.must(['crane', 'push', layout, `${release.chart}:${VERSION}`]);
    expect(pushed.trim()).to.equal(`${release.chart}@${digest}`);
    const line = `helm install archaware oci://${release.chart} --version ${VERSION} --namespace archaware --create-namespace`;
    expect(await user(line)).to.match(/STATUS: deployed/);
    expect(await imageOf()).to.match(new RegExp(`^${release.image}(:${VERSION})?@${DIGEST}$`));
    await user('helm uninstall archaware --namespace archaware --no-hooks');
  });
});
