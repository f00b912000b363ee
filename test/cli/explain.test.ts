import { expect } from 'chai';
import { at, type JsonObject, object, objects, text } from '../simulator/json.ts';
import { folderForEach } from '../support/folder.ts';
import { runInProcess } from '../support/in-process.ts';
import { type Product, type ProductOptions, startProduct, workload } from '../support/product.ts';

describe('explain', () => {
  let product: Product;
  const start = async (options?: ProductOptions) => {
    await product?.stop();
    product = await startProduct(options);
  };
  beforeEach(() => start());
  const { at: path, write } = folderForEach();
  after(() => product.stop());

  const explain = async (...args: readonly string[]): Promise<JsonObject> => {
    const { code, stdout, stderr } = await product.command(['explain', ...args, '--output', 'json']);
    expect([code, stderr]).to.deep.equal([0, '']);
    return object(JSON.parse(stdout));
  };
  const advice = (explained: JsonObject) => JSON.stringify(explained.advice);
  const file = async (content: string) => {
    await write({ 'given.yaml': content });
    return path('given.yaml');
  };

  it("names for a held pod what each image lacks, and why no node takes it, in the scheduler's words", async () => {
    const [amd, arm] = [product.image('amd', ['amd64']), product.image('arm', ['arm64'])];
    const controller = await product.run();
    await product.eventuallyTainted();
    await product.cluster.createPod({ name: 'torn', images: [amd, arm] });
    await product.eventuallyEvent('default', 'NoCommonArchitecture', /no architecture/);
    await controller.stop();
    const told = await explain('torn');
    expect(told.pod).to.have.property('state', 'pending');
    expect(text(at(told.pod, 'scheduler'))).to.match(/0\/2 nodes are available/);
    expect(at(told.decision, 'kind')).to.equal('hold');
    expect(told.intersection).to.deep.equal([
      { by: amd, architectures: ['amd64'], common: ['amd64'] },
      { by: arm, architectures: ['arm64'], common: [] },
    ]);
    for (const { reasons, runs, architecture } of objects(told.nodes)) {
      expect(reasons).to.deep.equal([`node(s) had untolerated taint {supported-arch: ${text(architecture)}}`]);
      expect(runs).to.equal(false);
    }
    expect(told.advice).to.deep.equal([`push a linux/amd64 build of ${arm}`, `or push a linux/arm64 build of ${amd}`]);
    expect(objects(told.settings).map(({ key }) => key)).to.include('placement.noCommonArchitecture');
    const labelsOf = async (...more: readonly string[]) => {
      const { stdout } = await product.command(['explain', 'torn', ...more]);
      return stdout.split('\n').flatMap((line) => /^\S+/.exec(line)?.[0] ?? []);
    };
    expect(await labelsOf()).to.deep.equal(['verdict', 'next', 'archaware', 'scheduler', 'images', 'nodes']);
    const all = 'verdict next pod archaware scheduler images set settings decision nodes';
    expect((await labelsOf('-v')).join(' ')).to.equal(all);
  });

  it('says that the pull secret of a private image is missing, and uses it once it is there', async () => {
    await start({ registry: { auth: 'basic', users: { ops: 'horse' } } });
    const image = product.image('private', ['arm64']);
    const spec = { imagePullSecrets: [{ name: 'regcred' }] };
    await product.cluster.createPod({ name: 'p', images: [image], spec });
    const told = await explain('p');
    expect(told.pullSecrets).to.deep.equal([{ name: 'regcred', problem: 'it does not exist' }]);
    expect(at(objects(told.images)[0], 'error', 'code')).to.equal('denied');
    expect(advice(told)).to.contain('fix the pull secret default/regcred: it does not exist');

    const auths = { auths: { [product.registry.host]: { username: 'ops', password: 'horse' } } };
    const data = { '.dockerconfigjson': Buffer.from(JSON.stringify(auths)).toString('base64') };
    const metadata = { name: 'regcred', namespace: 'default' };
    const secret = { apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/dockerconfigjson', metadata, data };
    await product.cluster.apply(JSON.stringify(secret));
    const { code, stdout } = await product.command(['explain', 'p', '-v']);
    expect(code).to.equal(0);
    expect(stdout).to.match(/^images +\S+\/private:1: linux\/arm64, sha256:/m);
    expect(stdout).not.to.contain('horse');
    expect((await product.command(['explain', 'p'])).stdout).not.to.contain('sha256:');
  });

  it("quotes the controller's newest Event about a gated pod whose images it knows", async () => {
    await start({ cluster: { scheduler: false } });
    const spec = { schedulingGates: [{ name: 'archaware.dev/architecture' }] };
    await product.cluster.createPod({ name: 'p', images: [product.image('app', ['arm64'])], spec });
    const uid = text(at(await product.get('/api/v1/namespaces/default/pods/p'), 'metadata', 'uid'));
    const event = (name: string, of: string, eventTime: string, note: string) =>
      JSON.stringify({
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        metadata: { name, namespace: 'default' },
        regarding: { kind: 'Pod', namespace: 'default', name: 'p', uid: of },
        ...{ type: 'Warning', reason: 'ImageUnresolvable', action: 'Resolving', eventTime, note },
        ...{ reportingController: 'archaware-controller', reportingInstance: 'x' },
      });
    await product.cluster.apply(event('p.1', uid, '2026-03-01T06:13:10.000000Z', 'in 60 s'));
    await product.cluster.apply(event('p.2', uid, '2026-03-01T06:13:20.000000Z', 'in 42 s'));
    await product.cluster.apply(event('p.3', 'another', '2026-03-01T06:13:30.000000Z', 'in 9 s'));
    expect((await explain('p')).said).to.deep.equal({ note: 'in 42 s', at: '06:13:20 UTC' });
    const { stdout } = await product.command(['explain', 'p']);
    expect(stdout).to.match(/^ +said at 06:13:20 UTC: in 42 s$/m);
  });

  it('says why a pod is skipped, without a lookup of its images', async () => {
    await start({ cluster: { scheduler: false } });
    await product.namespace('quiet', { 'archaware.dev/ignore': 'true' });
    await product.cluster.createPod({ name: 'p', namespace: 'quiet', images: [product.image('app', ['arm64'])] });
    const told = await explain('quiet/p');
    expect(told.decision).to.deep.equal({
      kind: 'skip',
      reason: 'its namespace is labelled archaware.dev/ignore=true',
    });
    expect(advice(told)).to.contain('kubectl label namespace quiet archaware.dev/ignore-');
    expect(product.lookUps('app')).to.equal(0);
  });

  describe('of a file', () => {
    it('explains the decision for it, even in a namespace that does not exist yet', async () => {
      const image = product.image('app', ['arm64']);
      const controller = await product.run();
      await product.eventuallyTainted();
      await controller.stop();
      const manifest = object(JSON.parse(workload('Deployment', 'web', [image])));
      const name = await file(JSON.stringify({ ...manifest, metadata: { name: 'web', namespace: 'new' } }));
      const told = await explain('-f', name);
      const expected = { kind: 'Deployment', namespace: 'new', name: 'web', os: 'linux', state: 'not-applied' };
      expect(told.pod).to.deep.equal(expected);
      expect(objects(told.tolerations).map(({ value, present }) => [value, present])).to.deep.equal([['arm64', false]]);
      const { stdout } = await product.command(['explain', '-f', name]);
      expect(stdout).to.match(/^nodes +amd64 \(amd64-1\): does not fit: .*\(not all of its images run there\)$/m);
      expect(stdout).to.match(/^ +arm64 \(arm64-1\): fits$/m);
    });

    it('names the policy that sets a key as its source', async () => {
      const name = await file(workload('Deployment', 'web', [product.image('app', ['amd64', 'arm64'])]));
      const values = { schedulable: ['amd64', 'arm64'], preferred: { arm64: 75 } };
      const policies = JSON.stringify([{ name: 'gold', ...values }]);
      const told = await explain('-f', name, '--placement.mode', 'affinity', '--policies', policies);
      const source = 'policy gold, --policies';
      expect(objects(told.settings).filter((setting) => setting.source === source)).to.deep.equal([
        { key: 'architectures.preferred', value: values.preferred, source },
        { key: 'architectures.schedulable', value: values.schedulable, source },
      ]);
    });

    it('uses the pull secrets of its service account, which the API server would add to its pods', async () => {
      const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot', namespace: 'default' } };
      await product.cluster.apply(JSON.stringify({ ...account, imagePullSecrets: [{ name: 'theirs' }] }));
      const image = product.image('app', ['arm64']);
      const name = await file(workload('StatefulSet', 'db', [image], { template: { serviceAccountName: 'robot' } }));
      expect((await explain('-f', name)).pullSecrets).to.deep.include({ name: 'theirs', problem: 'it does not exist' });
    });

    it('needs no cluster if none is named, and says so', async () => {
      const name = await file(workload('Deployment', 'web', [product.image('app', ['arm64'])]));
      const insecure = ['--registries.insecure', product.registry.host];
      const { code, stdout, stderr } = await runInProcess(['explain', '-f', name, ...insecure, '--output', 'json']);
      expect(code).to.equal(0);
      expect(stderr).to.match(/^without a cluster/);
      expect(at(JSON.parse(stdout), 'decision', 'architectures')).to.deep.equal(['arm64']);
      const kubeconfig = path('missing');
      const named = await runInProcess(['explain', '-f', name, ...insecure, '--kubeconfig', kubeconfig]);
      expect([named.code, named.stdout]).to.deep.equal([3, '']);
    });

    it('explains each of several objects, in their order', async () => {
      const images = [product.image('multi')];
      const text = `${workload('Deployment', 'a', images)}\n---\n${workload('DaemonSet', 'b', images)}`;
      const { code, stdout } = await product.command(['explain', '-f', await file(text), '-o', 'json']);
      expect([code, objects(JSON.parse(stdout)).map(({ pod }) => at(pod, 'name'))]).to.deep.equal([0, ['a', 'b']]);
      const table = await product.command(['explain', '-f', await file(text)]);
      expect(table.stdout).to.match(
        /^verdict +a new pod of Deployment default\/a [\s\S]*\n\nverdict +a new pod of DaemonSet default\/b /,
      );
    });

    it('gives a list of what stands in a directory or in several files, also of one workload', async () => {
      const name = await file(workload('Deployment', 'a', [product.image('multi')]));
      await write({ 'service.yaml': JSON.stringify({ apiVersion: 'v1', kind: 'Service', metadata: { name: 's' } }) });
      for (const args of [
        ['-f', path()],
        ['-f', name, '-f', path('service.yaml')],
      ]) {
        const { stdout } = await product.command(['explain', ...args, '-o', 'json']);
        expect(objects(JSON.parse(stdout)).map(({ pod }) => at(pod, 'name'))).to.deep.equal(['a']);
      }
      const one = await product.command(['explain', '-f', name, '-o', 'json']);
      expect(at(JSON.parse(one.stdout), 'pod', 'name')).to.equal('a');
    });

    it('refuses in one line a file without a pod or workload', async () => {
      const service = JSON.stringify({ apiVersion: 'v1', kind: 'Service', metadata: { name: 's' } });
      const rows: [content: string, expected: RegExp][] = [
        [service, /got none, expected at least one of Pod, Deployment/],
        ['{', /given\.yaml: /],
        ['a: *b', /given\.yaml: /],
        ['', /got none/],
      ];
      for (const [content, expected] of rows) {
        const { code, stdout, stderr } = await product.command(['explain', '-f', await file(content)]);
        expect([code, stdout], content).to.deep.equal([3, '']);
        expect(stderr).to.match(expected);
        expect(stderr.trim().split('\n'), stderr).to.have.length(1);
      }
    });
  });

  it('has the documented fields, and prints the same as YAML', async () => {
    await product.cluster.createPod({ name: 'p', images: [product.image('multi')] });
    const told = await explain('p');
    const keys = (text: string) => text.split(' ');
    const parts = 'verdict pod controller images pullSecrets intersection settings decision tolerations nodes advice';
    expect(told).to.have.all.keys(keys(parts));
    expect(objects(told.images)[0]).to.have.all.keys(keys('image digest source platforms skipped'));
    const ofNodes = keys('architecture names unschedulable taints labels runs fits reasons placed');
    for (const group of objects(told.nodes)) expect(group).to.have.all.keys(ofNodes);
    const yaml = await product.command(['explain', 'p', '--output', 'yaml']);
    expect(yaml.stdout).to.match(/^verdict:\n {2}state: runs\n[\s\S]*\npod:\n {2}kind: Pod\n/);
  });

  it('names the nearest object of the same kind, and recognises a wrong kind', async () => {
    await product.cluster.apply(workload('Deployment', 'ledger', [product.image('app', ['arm64'])]));
    const rows: [args: readonly string[], code: number, message: string][] = [
      [['deploy/ledgerr'], 1, 'Deployment default/ledgerr does not exist; did you mean deployment/ledger?'],
      [['sts/ledgerr'], 1, 'StatefulSet default/ledgerr does not exist: namespace default has no statefulsets'],
      [
        ['node/x'],
        1,
        'pod node/x does not exist: there is no namespace node; explain knows no node, only pod, deployment, ',
      ],
      [['svc/web'], 1, 'there is no namespace svc; explain knows no svc, only pod, '],
      [['deploymnt/ledger'], 1, 'there is no namespace deploymnt; did you mean the kind deployment?'],
      [['elsewhere/web'], 1, 'pod elsewhere/web does not exist: there is no namespace elsewhere\n'],
      [
        ['deploymnt/ledger', '-n', 'default'],
        3,
        'got deploymnt as the namespace in deploymnt/ledger, and default in --namespace; did you mean the kind deployment?',
      ],
      [['deploymnt', 'ledger'], 3, 'got the kind "deploymnt", expected one of pod, '],
    ];
    for (const [args, expected, message] of rows) {
      const { code, stderr } = await product.asAdmin(['explain', ...args]);
      expect(code, stderr).to.equal(expected);
      expect(stderr).to.contain(message);
    }
  });

  it('refuses other operands, in one line', async () => {
    for (const operands of [[], ['a', 'b'], ['a/b/c'], ['a/'], ['/a'], ['a', '-f', 'b'], ['-f', ''], ['a', '-f']]) {
      const { code, stdout, stderr } = await product.command(['explain', ...operands]);
      expect([code, stdout], operands.join(' ')).to.deep.equal([3, '']);
      expect(stderr.trim().split('\n'), stderr).to.have.length(1);
    }
  });
});
