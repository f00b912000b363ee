import { expect } from 'chai';
import { startTestRegistry, type TestRegistry } from '../simulator/registry/registry.ts';
import { folderForEach } from '../support/folder.ts';
import { runInProcess } from '../support/in-process.ts';
import { productForEach, workload } from '../support/product.ts';

const BOTH = ['amd64', 'arm64'];

describe('check --compare', () => {
  let registry: TestRegistry;
  const folder = folderForEach();
  beforeEach(async () => {
    registry = await startTestRegistry();
  });
  afterEach(() => registry.stop());

  const image = (tag: string, platforms: readonly string[], name = 'coredns') => {
    registry.put(name, tag, platforms);
    return `${registry.host}/${name}:${tag}`;
  };
  const check = async (old: string, now: string, ...args: readonly string[]) => {
    await folder.write({ 'old.yaml': old, 'new.yaml': now });
    return runInProcess([
      ...['check', '--compare', folder.at('old.yaml'), '-f', folder.at('new.yaml')],
      ...['--registries.insecure', registry.host, ...args],
    ]);
  };
  /** Compares two releases of a Deployment by their images. */
  const compare = (old: readonly string[], now: readonly string[], ...args: readonly string[]) =>
    check(workload('Deployment', 'dns', old), workload('Deployment', 'dns', now), ...args);

  it('names the architecture that a release dropped, as CoreDNS 1.14.3 did, and exits with 2', async () => {
    const [old, now] = [image('1.14.2', BOTH), image('1.14.3', ['amd64'])];
    const line = `Deployment default/dns: dropped arm64: ${now} (c0) runs on amd64; ${old} ran on amd64, arm64\n`;
    const { code, stdout } = await compare([old], [now]);
    expect([code, stdout]).to.deep.equal([2, line]);
  });

  it('prints what was gained, and succeeds where nothing was dropped', async () => {
    const [old, now] = [image('1', ['amd64']), image('2', BOTH)];
    const { code, stdout } = await compare([old], [now]);
    expect([code, stdout]).to.deep.equal([
      0,
      `Deployment default/dns: gained arm64: ${now} (c0) runs on amd64, arm64; ${old} ran on amd64\n` +
        '1 workload compared: no architecture was dropped.\n',
    ]);
  });

  it('does not count a workload that is new or gone', async () => {
    const [old, now] = [image('1', BOTH), image('2', ['amd64'])];
    const both = workload('StatefulSet', 'db', [old]);
    const { code, stdout } = await check(
      [both, workload('Deployment', 'gone', [old])].join('\n---\n'),
      [both, workload('Deployment', 'fresh', [now])].join('\n---\n'),
    );
    expect([code, stdout]).to.deep.equal([0, '1 workload compared (1 new, 1 gone): no architecture was dropped.\n']);
  });

  it('compares a new container with the whole workload', async () => {
    const [old, other] = [image('1', BOTH), image('7', ['amd64'], 'other')];
    const line = `Deployment default/dns: dropped arm64: ${other} (c1) runs on amd64; the workload ran on amd64, arm64 without it\n`;
    expect((await compare([old], [old, other])).stdout).to.equal(line);
  });

  it('names an image that it could not look up, and never counts it as dropped', async () => {
    const [old, now] = [`${registry.host}/coredns:gone`, image('2', ['amd64'])];
    const { code, stdout, stderr } = await compare([old], [now], '-o', 'json');
    const { workloads, unknown } = JSON.parse(stdout);
    expect([code, unknown.length]).to.deep.equal([2, 1]);
    expect(workloads).to.deep.equal([{ kind: 'Deployment', namespace: 'default', name: 'dns', images: [] }]);
    expect(unknown[0]).to.include({ when: 'before', image: old, code: 'not-found' });
    expect(stderr).to.contain('1 image was not looked up');
  });

  it('prints the documented shape for a program, and a comment for the pull request', async () => {
    const [old, now] = [image('1', BOTH), image('2', ['amd64'])];
    expect(JSON.parse((await compare([old], [now], '-o', 'json')).stdout)).to.deep.equal({
      workloads: [
        {
          ...{ kind: 'Deployment', namespace: 'default', name: 'dns' },
          images: [
            {
              containers: ['c0'],
              before: { image: old, architectures: BOTH },
              after: { image: now, architectures: ['amd64'] },
              dropped: ['arm64'],
              gained: [],
            },
          ],
        },
      ],
      ...{ unknown: [], added: [], removed: [] },
    });
    const { code, stdout } = await compare([old], [now], '-o', 'markdown');
    expect([code, ...stdout.split('\n')]).to.deep.equal([
      2,
      '### Architectures: before and after',
      '',
      '|  | object | before | after | dropped | gained |',
      '| --- | --- | --- | --- | --- | --- |',
      `| ❌ | \`Deployment default/dns\` | \`${old}\` (amd64, arm64) | \`${now}\` (amd64) | arm64 |  |`,
      '',
    ]);
  });

  const mistakes: readonly (readonly [title: string, words: readonly string[], message: string])[] = [
    [
      'standard input twice',
      ['-f', '-', '--compare', '-'],
      '--compare -: got standard input, expected a file, because -f reads standard input',
    ],
    [
      'the cluster and a file',
      ['-f', '-', '--compare', 'cluster', '--compare', 'a.yaml'],
      '--compare: got cluster and files, expected one of them; a file of this name is ./cluster',
    ],
    ['a file that does not exist', ['-f', '-', '--compare', './cluster'], '--compare ./cluster: does not exist'],
    ['no manifests', ['--compare', 'a.yaml'], 'check: expected -f FILE with the manifests to check'],
  ];
  for (const [title, words, message] of mistakes) {
    it(`refuses ${title}`, async () => {
      const { code, stderr } = await runInProcess(['check', ...words], { input: '' });
      expect([code, stderr]).to.deep.equal([3, `archaware: ${message}\n`]);
    });
  }

  it('does not pass where the old manifests hold no workload', async () => {
    const { code, stderr } = await check('# nothing', workload('Deployment', 'dns', [image('1', BOTH)]));
    expect([code, stderr]).to.deep.equal([3, `archaware: check: no workload found in ${folder.at('old.yaml')}\n`]);
  });
});

describe('check --compare cluster', () => {
  const product = productForEach();
  const check = (input: string, ...args: readonly string[]) =>
    product.command(['check', '--compare', 'cluster', '-f', '-', ...args], { input });
  const asAdmin = () => ['--kubeconfig', product.cluster.kubeconfig];

  it('compares with the workloads of the same kind, namespace and name', async () => {
    const [old, now] = [product.image('old', BOTH), product.image('new', ['amd64'])];
    const kinds = ['DaemonSet', 'Deployment', 'StatefulSet'] as const;
    for (const kind of kinds) await product.cluster.apply(workload(kind, 'web', [old]));
    const input = [...kinds.map((kind) => workload(kind, 'web', [now])), workload('Deployment', 'fresh', [now])];
    const { code, stdout } = await check(input.join('\n---\n'), '-o', 'json', ...asAdmin());
    const { workloads, added } = JSON.parse(stdout);
    expect([code, workloads.map(({ kind }: { kind: string }) => kind)]).to.deep.equal([2, kinds]);
    for (const { images } of workloads) expect(images[0].dropped).to.deep.equal(['arm64']);
    expect(added).to.deep.equal([{ kind: 'Deployment', namespace: 'default', name: 'fresh' }]);
  });

  it('does not ask for an image that the workload in the cluster has already', async () => {
    const same = workload('Deployment', 'web', [`${product.registry.host}/private:1`]);
    await product.cluster.apply(same);
    const { code, stdout } = await check(same, ...asAdmin());
    expect([code, stdout]).to.deep.equal([0, '1 workload compared: no architecture was dropped.\n']);
    expect(product.registry.requests()).to.deep.equal([]);
  });

  it('fails with the message of the API server where a workload may not be read', async () => {
    const nobody = await product.cluster.serviceAccountKubeconfig('default', 'nobody');
    const { code, stderr } = await check(workload('Deployment', 'web', ['x:1']), '--kubeconfig', nobody);
    expect(code).to.equal(1);
    expect(stderr).to.match(/403|forbidden/i);
  });
});
