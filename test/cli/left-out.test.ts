import { expect } from 'chai';
import { IMAGE, INDEX, type ScriptedServer, sha256, startServer } from '../oci/server.ts';
import { runInProcess } from '../support/in-process.ts';
import { workload } from '../support/product.ts';

describe('an index of which not everything counts', () => {
  let server: ScriptedServer;
  let insecure: readonly string[];
  beforeEach(async () => {
    server = await startServer();
    insecure = ['--registries.insecure', server.host];
  });
  afterEach(() => server.stop());

  const entry = (architecture: string, name: string = architecture) => ({
    mediaType: IMAGE,
    digest: sha256(name),
    size: 1,
    platform: { os: 'linux', architecture },
  });
  const put = (...manifests: readonly object[]): string => {
    server.put('app', 'manifests', { schemaVersion: 2, mediaType: INDEX, manifests }, { tag: 'v1' });
    return `${server.host}/app:v1`;
  };
  const SECOND = `a second entry for linux/arm64: container runtimes take ${sha256('arm64').slice(0, 19)}...`;
  /** Two entries for arm64, and one for a CPU level. */
  const mixed = (): string =>
    put(entry('arm64'), entry('arm64', 'other'), {
      ...entry('amd64'),
      platform: { os: 'linux', architecture: 'amd64', variant: 'v3' },
    });

  it('is named by inspect with the reasons, and the digest that is passed over', async () => {
    const image = mixed();
    const { code, stdout } = await runInProcess(['inspect', image, ...insecure]);
    expect(code).to.equal(0);
    expect(stdout).to.match(new RegExp(`Left out\\.\n[^]*${SECOND} +${sha256('other')}`));
    expect(stdout).to.include('linux/amd64/v3: no container runtime takes it from an index');
    const json = JSON.parse((await runInProcess(['inspect', image, ...insecure, '-o', 'json'])).stdout);
    expect(json[0].skipped[0]).to.deep.equal({ digest: sha256('other'), reason: SECOND });
  });

  it('is named by explain with the reasons', async () => {
    const input = workload('Deployment', 'web', [mixed()]);
    const { stdout } = await runInProcess(['explain', '--verbose', '-f', '-', ...insecure], { input });
    expect(stdout).to.include(`${SECOND} (${sha256('other')})`);
    expect(stdout).to.include('linux/amd64/v3: no container runtime takes it from an index');
  });

  it('says with inspect and explain that one runtime may refuse the image', async () => {
    const image = put({ ...entry('arm64'), mediaType: undefined });
    const input = workload('Deployment', 'web', [image]);
    for (const [args, options] of [
      [['inspect', image], {}],
      [['explain', '-f', '-'], { input }],
    ] as const) {
      const { stdout } = await runInProcess([...args, ...insecure], options);
      expect(stdout).to.include('only CRI-O takes all of these platforms from the index');
    }
  });
});
