import { expect } from 'chai';
import { GUESSED, writeRecord } from '../../src/placement/objects/template-record.ts';
import { at, type JsonObject, objects, text } from '../simulator/json.ts';
import { PODS, productForEach, workload } from '../support/product.ts';

describe('plan', () => {
  const product = productForEach();

  const plan = async (...flags: readonly string[]) => {
    const { code, stdout, stderr } = await product.command(['plan', '--output', 'json', ...flags]);
    const result: unknown = JSON.parse(stdout);
    const named = (field: string) =>
      objects(at(result, field)).map(({ kind, name, action }) =>
        [kind, name, action].map(text).filter(Boolean).join(' '),
      );
    return { code, stderr, result, changes: named('changes').sort(), held: named('held'), waiting: named('waiting') };
  };

  it('names a DaemonSet whose tolerations were taken back', async () => {
    const image = product.image('agent', ['arm64']);
    const record = writeRecord([], [], { ...GUESSED, rollout: 'back 1' }) ?? '';
    const annotations = { 'archaware.dev/tolerations': record };
    const agent = { metadata: { name: 'agent', namespace: 'default', generation: 1, annotations } };
    await product.cluster.apply(JSON.stringify({ ...JSON.parse(workload('DaemonSet', 'agent', [image])), ...agent }));
    const { stderr, changes } = await plan();
    expect(changes).not.to.include('DaemonSet agent tolerate');
    expect(stderr).to.match(/1 DaemonSet stays without tolerations .* \(default\/agent\); allow/);
  });

  it('names DaemonSets that are left alone with tolerations of an earlier mode', async () => {
    const tolerations = [{ key: 'supported-arch', operator: 'Equal', value: 'arm64', effect: 'NoSchedule' }] as const;
    const annotations = { 'archaware.dev/tolerations': writeRecord(tolerations, [], GUESSED) ?? '' };
    const agent = { metadata: { name: 'agent', namespace: 'default', generation: 1, annotations } };
    const sent = JSON.parse(workload('DaemonSet', 'agent', [product.image('agent', ['arm64'])]));
    await product.cluster.apply(JSON.stringify({ ...sent, ...agent }));
    const flags = ['--placement.mode', 'affinity', '--webhook.enabled', '--pods.daemonSets', 'ignore'];
    expect((await plan(...flags)).stderr).to.match(
      /^no node and .* may be used; but 1 DaemonSet\(s\) \(default\/agent\) that archaware leaves alone keep theirs until/m,
    );
  });

  it('names the key because of which pods are held, and warns of architectures that no node has', async () => {
    await product.cluster.createPod({ name: 'web', images: [product.image('app', ['amd64', 'arm64'])] });
    await product.cluster.createPod({
      name: 'api',
      images: [product.image('api', ['arm64'])],
      metadata: { labels: { p: 'x' } },
    });
    const policies = JSON.stringify([{ name: 'x', podSelector: 'p=x', schedulable: ['s390x'] }]);
    const flags = ['--architectures.schedulable', 'riscv64', '--policies', policies];
    const warnings = [
      'architectures.schedulable names riscv64, which no node of the cluster has (nodes: amd64, arm64)',
      'policies[0].schedulable names s390x, which no node of the cluster has (nodes: amd64, arm64)',
    ];
    const { stdout, stderr } = await product.command(['plan', ...flags]);
    expect(stdout.split('\n')).to.include.members([
      'Held: their images have no architecture in common within architectures.schedulable (riscv64).',
      'Held: their images have no architecture in common within architectures.schedulable (s390x), by policy x.',
      'Configured architectures that no node has.',
      ...warnings,
    ]);
    expect(stderr.split('\n')).to.include.members(warnings);
    expect((await plan(...flags)).stderr.split('\n')).to.include.members(warnings);
    expect((await plan()).stderr).to.not.contain('no node of the cluster has');
  });

  const requirement = (value: string) => ({ key: 'kubernetes.io/arch', operator: 'In', values: [value] });
  const narrowed = (value: string) => {
    const required = [requirement(value)];
    const nodeSelectorTerms = [{ matchExpressions: required }];
    return {
      metadata: { annotations: { 'archaware.dev/managed': JSON.stringify({ tolerations: [], required }) } },
      spec: { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } },
    };
  };

  it('names the unknown images of a pod that was placed before, perhaps on a guess', async () => {
    const images = [`${product.registry.host}/nothing:1`];
    await product.cluster.createPod({ name: 'guessed', images, ...narrowed('arm64') });
    const { result, waiting } = await plan('--placement.mode', 'affinity', '--webhook.enabled');
    expect(objects(at(result, 'unresolved')).map(({ image }) => image)).to.deep.equal(images);
    expect(waiting).to.deep.equal([]);
    const { stdout } = await product.command(['plan']);
    expect(stdout).to.match(/^ {2}USED BY +IMAGE\n {2}Pod default\/guessed +\S+\/nothing:1$/m);
  });

  it('does not say that new pods would require what one with an unknown image was given', async () => {
    const tolerations = [{ key: 'supported-arch', operator: 'Equal', value: 'arm64', effect: 'NoSchedule' }];
    const annotations = { 'archaware.dev/managed': JSON.stringify({ tolerations }) };
    const images = [`${product.registry.host}/nothing:1`];
    await product.cluster.createPod({ name: 'guessed', images, metadata: { annotations }, spec: { tolerations } });
    const { result, waiting } = await plan('--placement.mode', 'both', '--webhook.enabled');
    expect([at(result, 'newPods'), waiting]).to.deep.equal([undefined, []]);
  });

  it('names the pods whose successors get another node affinity, and none that have it', async () => {
    const images = [product.image('app', ['arm64'])];
    await product.cluster.createPod({ name: 'plain', images });
    await product.cluster.createPod({ name: 'right', images, ...narrowed('arm64') });
    await product.cluster.createPod({ name: 'wrong', images, ...narrowed('amd64') });
    const { result } = await plan('--placement.mode', 'affinity', '--webhook.enabled');
    expect(objects(at(result, 'newPods')).map(({ name }) => name)).to.deep.equal(['plain', 'wrong']);
  });

  it('names the pods that need a toleration of their own, and none that have one, or where no node gets a taint', async () => {
    const images = [product.image('app', ['arm64'])];
    const metadata = { labels: { 'archaware.dev/ignore': 'true' } };
    await product.cluster.createPod({ name: 'needs', images, metadata });
    await product.cluster.createPod({ name: 'has', images, metadata, spec: { tolerations: [{ operator: 'Exists' }] } });
    expect((await plan()).stderr).to.match(/^1 pod\(s\) are ignored by archaware and need .*: default\/needs$/m);
    const { stderr } = await plan('--placement.mode', 'affinity', '--webhook.enabled');
    expect(stderr).not.to.contain('ignored by archaware');
  });

  it('says what placement.publish would do for new pods', async () => {
    expect((await plan('--placement.publish')).stderr).to.match(/once the leader has published .* gives its new pods/);
    const { stderr } = await plan('--placement.publish', '--loops', 'nodes');
    expect(stderr).to.match(/placement\.publish is true, and nothing would be published: loops does not have pods/);
  });

  it('names what is too large to be served', async () => {
    const labels = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`key-${at}`, 'v']));
    await product.cluster.createPod({ name: 'large', images: [product.image('app', ['arm64'])], metadata: { labels } });
    expect((await plan()).stderr).to.match(
      /Pod default\/large: it is too large to be served: \d{5} bytes, at most 16 KiB/,
    );
    const explained = await product.command(['explain', 'pod/large']);
    expect(explained.stdout).to.match(/too large to be served: \d{5} bytes, at most 16 KiB/);
  });

  describe('as text', () => {
    const text = async (...flags: readonly string[]) => (await product.command(['plan', ...flags])).stdout;
    const running = (app: string, count: number) =>
      product.eventually(`${count} pods of ${app} to run`, async () => {
        const pods = (await product.list(PODS)).filter((pod) => at(pod, 'metadata', 'labels', 'app') === app);
        return pods.length === count && pods.every((pod) => at(pod, 'status', 'phase') === 'Running');
      });

    it('begins with the counts, then has one row for each workload', async () => {
      const deploy = (name: string, images: readonly string[]) =>
        product.cluster.apply(workload('Deployment', name, images, { spec: { replicas: 3 } }));
      await deploy('web', [product.image('app', ['amd64', 'arm64'])]);
      await deploy('arm', [product.image('arm', ['arm64'])]);
      await product.cluster.createPod({ name: 'lost', images: [`${product.registry.host}/nothing:1`] });
      await running('web', 3);
      await running('arm', 3);
      const stdout = await text();
      expect(stdout.split('\n').slice(0, 6)).to.deep.equal([
        '3 workloads: 1 can run on every architecture of the cluster',
        '  1 runs on arm64 only',
        '  1 on a wrong node now',
        '  0 would be Pending at their next restart',
        '  1 image unknown',
        '',
      ]);
      expect(stdout).to.match(/^KIND +NAMESPACE +NAME +PODS +ACTION +DETAIL$/m);
      expect(stdout).to.match(/^Deployment +default +arm +3 +tolerate +arm64$/m);
      expect(stdout).to.match(/^Node +amd64-1 +taint +amd64$/m);
      expect(stdout).to.match(
        /^Unknown images\.\nnot-found at \S+: .* 404 Not Found .*\n {2}USED BY +IMAGE\n {2}Pod default\/lost +\S+\/nothing:1$/m,
      );
      expect(stdout).not.to.match(/Waiting for images|Not resolved/);
      const byPod = await text('--pods');
      expect(byPod).to.match(/^KIND +NAMESPACE +NAME +ACTION +DETAIL$/m);
      expect(byPod.match(/^Pod +default +arm-\S+ +tolerate +supported-arch=arm64:NoSchedule$/gm)).to.have.lengthOf(3);
    });

    it('says what happens to a held pod that runs, and in the mode observe that nothing is held', async () => {
      const images = [product.image('amd', ['amd64']), product.image('arm', ['arm64'])];
      await product.cluster.apply(workload('Deployment', 'torn', images, { spec: { replicas: 2 } }));
      await running('torn', 2);
      const held = await text();
      expect(held).to.include('  1 would be Pending at its next restart\n');
      expect(held).to.match(/^Deployment +default +torn +2 +runs; Pending at its next restart +\S+/m);
      const observed = await text('--placement.mode', 'observe');
      expect(observed).to.include('  0 would be Pending at their next restart\n');
      expect(observed).not.to.contain('Pending at its next restart');
      expect(observed).to.contain('\nWould be held in another mode: their images have no architecture in common.\n');
      expect(observed).to.match(/^Deployment +default +torn +2 +runs +\S+/m);
    });

    it('lists what is behind the counts, and all workloads with --wide', async () => {
      const arm = product.image('arm', ['arm64']);
      const deploy = (name: string, image: string, template: JsonObject = {}) =>
        product.cluster.apply(workload('Deployment', name, [image], { spec: { replicas: 1 }, template }));
      await deploy('web', product.image('app', ['amd64', 'arm64']));
      await running('web', 1);
      await deploy('contra', arm, { nodeSelector: { 'kubernetes.io/arch': 'amd64' } });
      await running('contra', 1);
      const stdout = await text();
      expect(stdout).to.include('  1 would be Pending at its next restart\n');
      const why = 'requires kubernetes\\.io/arch=amd64 by its nodeSelector, but its images run on arm64 only';
      expect(stdout).to.match(
        new RegExp(
          `^Workloads on a wrong node, Pending, or without a node that can run them\\.\nKIND +NAMESPACE +NAME +STATE +WHY\nDeployment +default +contra +on a wrong node; Pending at its next restart +${why}\n\n`,
          'm',
        ),
      );
      const wide = await text('--wide');
      expect(wide).to.match(
        /^All workloads\.\nKIND +NAMESPACE +NAME +RUNS ON +STATE +WHY\nDeployment +default +contra +arm64 /m,
      );
      expect(wide).to.match(/^Deployment +default +web +every architecture$/m);
      const { result } = await plan();
      const judged = objects(at(result, 'workloads')).map(({ name, reach, pendingAtRestart }) => [
        name,
        reach,
        pendingAtRestart,
      ]);
      expect(judged).to.deep.equal([
        ['contra', 'limited', true],
        ['web', 'anywhere', false],
      ]);
    });

    it('has the rows of two runs in the same order', async () => {
      for (const name of ['web', 'api', 'db', 'cart'])
        await product.cluster.createPod({ name, images: [product.image(name, ['arm64'])] });
      const names = (stdout: string) =>
        [...stdout.matchAll(/^Pod +default +(\S+) +tolerate/gm)].map(([, name]) => name);
      expect(names(await text())).to.deep.equal(['api', 'cart', 'db', 'web']);
      expect((await plan()).result).to.have.nested.property('changes[2].name', 'api');
    });

    it('joins nodes that get the same taint into one row', async () => {
      await product.cluster.createNode({ name: 'amd64-2', architecture: 'amd64' });
      const stdout = await text();
      expect(stdout).to.match(/^Node +amd64-1, amd64-2 +taint +amd64$/m);
      expect(stdout).to.match(/\nWould change: .*\nNext: install archaware in the mode that fits .*\n$/);
    });
  });

  it('reads and plans only one namespace with -n, and no nodes', async () => {
    const image = product.image('app', ['arm64']);
    await product.namespace('shop');
    await product.cluster.createPod({ name: 'here', namespace: 'shop', images: [image] });
    await product.cluster.createPod({ name: 'there', images: [image] });
    product.cluster.forgetRequests();
    expect(await plan('-n', 'shop')).to.deep.include({ code: 2, changes: ['Pod here tolerate'] });
    const read = product.cluster.requests().map(({ path }) => path.split('?')[0]);
    expect(read).to.include('/api/v1/namespaces/shop/pods').and.not.to.include('/api/v1/pods');
    expect(read).not.to.include('/apis/apps/v1/daemonsets');
    const { code, stderr } = await product.command(['plan', '-n', 'nowhere']);
    expect([code, stderr]).to.deep.equal([1, 'archaware: namespace nowhere does not exist\n']);
  });

  it('plans only what -l selects', async () => {
    const images = [product.image('app', ['arm64'])];
    await product.cluster.createPod({ name: 'web', images, metadata: { labels: { app: 'web' } } });
    await product.cluster.createPod({ name: 'db', images, metadata: { labels: { app: 'db' } } });
    expect((await plan('-l', 'app in (web),!old')).changes).to.deep.equal(['Pod web tolerate']);
  });

  const refused: readonly (readonly [flags: readonly string[], message: RegExp])[] = [
    [['-n', 'shop', '-A'], /got --namespace and --all-namespaces/],
    [['-l', 'a=(b'], /--selector: cannot read "a=\(b"/],
    [['-n', ''], /--namespace: got an empty text/],
  ];
  for (const [flags, message] of refused) {
    it(`refuses ${flags.join(' ')}`, async () => {
      const { code, stderr } = await product.command(['plan', ...flags]);
      expect(code).to.equal(3);
      expect(stderr).to.match(message);
    });
  }
});
