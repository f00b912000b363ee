import { expect } from 'chai';
import { at, objects, text } from '../support/cluster/json.ts';
import { type Product, startProduct, workload } from '../support/product.ts';

describe('plan', () => {
  let product: Product;
  beforeEach(async () => {
    product = await startProduct();
  });
  afterEach(() => product.stop());

  const plan = async (...flags: readonly string[]) => {
    const { code, stdout, stderr } = await product.command(['plan', '--output', 'json', ...flags]);
    const result: unknown = JSON.parse(stdout);
    const named = (field: string) =>
      objects(at(result, field)).map(({ kind, name, action }) =>
        [kind, name, action].map(text).filter(Boolean).join(' '),
      );
    return { code, stderr, result, changes: named('changes').sort(), held: named('held'), waiting: named('waiting') };
  };

  it('prints what run would write, and writes nothing', async () => {
    const image = product.image('app', ['amd64', 'arm64']);
    await product.cluster.createPod({ name: 'p', images: [image] });
    await product.cluster.apply(workload('DaemonSet', 'agent', [product.image('agent', ['arm64'])]));
    const { code, changes } = await plan();
    expect(code).to.equal(2);
    expect(changes.filter((line) => !line.startsWith('Pod agent'))).to.deep.equal([
      'DaemonSet agent tolerate',
      'Node amd64-1 taint',
      'Node arm64-1 taint',
      'Pod p tolerate',
    ]);
    expect(product.cluster.writes()).to.deep.equal([]);
  });

  it('lists held pods and unresolvable images', async () => {
    const [amd, arm] = [product.image('amd', ['amd64']), product.image('arm', ['arm64'])];
    await product.cluster.createPod({ name: 'torn', images: [amd, arm] });
    await product.cluster.createPod({ name: 'lost', images: [`${product.registry.host}/nothing:1`] });
    const { held, waiting, result } = await plan();
    expect(held).to.deep.equal(['Pod torn']);
    expect(waiting).to.deep.equal(['Pod lost']);
    expect(objects(at(result, 'unresolved')).map(({ code }) => code)).to.deep.equal(['not-found']);
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
      'Configured, but without a node.',
      ...warnings,
    ]);
    expect(stderr.split('\n')).to.include.members(warnings);
    expect((await plan(...flags)).stderr.split('\n')).to.include.members(warnings);
    expect((await plan()).stderr).to.not.contain('no node of the cluster has');
  });

  it('has nothing to change after run', async () => {
    await product.cluster.createPod({ name: 'p', images: [product.image('app', ['arm64'])] });
    const controller = await product.run();
    await product.eventuallyTolerates('p', 'arm64');
    await product.eventuallyTainted();
    await controller.stop();
    expect(await plan()).to.deep.include({ code: 0, changes: [] });
  });

  it("says whether the loops that remove taints may be switched off: not while a node or a template still has archaware's", async () => {
    const affinity = ['--placement.mode', 'affinity', '--webhook.enabled'];
    await product.cluster.apply(workload('DaemonSet', 'agent', [product.image('agent', ['arm64'])]));
    const controller = await product.run();
    await product.eventuallyTainted();
    await controller.stop();
    const left =
      /2 node\(s\) \(amd64-1, arm64-1\) and 1 DaemonSet\(s\) \(default\/agent\) .* do not use .*without-taints.* yet/;
    expect((await plan(...affinity)).stderr).to.match(left);
    expect((await plan()).stderr).not.to.include('without-taints');
    const labels = { 'archaware.dev/ignore': 'true' };
    await product.patch('/apis/apps/v1/namespaces/default/daemonsets/agent', { metadata: { labels } });
    for (const node of ['amd64-1', 'arm64-1']) {
      await product.patch(`/api/v1/nodes/${node}`, { spec: { taints: null } });
    }
    expect((await plan(...affinity)).stderr).to.match(/no node and no DaemonSet carries .* may be used/);
  });

  it('names pods that are skipped but need a toleration', async () => {
    const labels = { 'archaware.dev/ignore': 'true' };
    await product.cluster.createPod({
      name: 'ignored',
      images: [product.image('app', ['arm64'])],
      metadata: { labels },
    });
    expect((await plan()).stderr).to.match(/1 pod\(s\) are left alone .*default\/ignored/);
  });

  it('prints a table by default', async () => {
    await product.cluster.createPod({ name: 'p', images: [product.image('app', ['arm64'])] });
    const { code, stdout } = await product.command(['plan']);
    expect(code).to.equal(2);
    expect(stdout).to.match(/^KIND +NAMESPACE +NAME +ACTION +DETAIL\n/);
    expect(stdout).to.match(/Pod +default +p +tolerate +supported-arch=arm64:NoSchedule/);
  });

  it('reports a missing right to list in one line', async () => {
    product.cluster.faults.inject({ path: /\/nodes\?limit/, status: 403 });
    const { code, stdout, stderr } = await product.command(['plan']);
    expect([code, stdout]).to.deep.equal([1, '']);
    expect(stderr.trim().split('\n')).to.have.lengthOf(1);
    expect(stderr).to.match(/nodes.*403/);
  });
});
