import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { at, object, objects, text } from '../support/cluster/json.ts';
import { type RunningController, runBundle } from '../support/controller-process.ts';
import { type Contents, mount } from '../support/mounted.ts';
import { type Product, startProduct, taintsOf } from '../support/product.ts';

const NODE = '/api/v1/nodes/amd64-1';
const OTHER = '/api/v1/nodes/arm64-1';
const KEY = 'example.com/usb';
const GPU = 'example.com/gpu';
const MANAGED = 'archaware.dev/managed';

/** The directory is looked at every two seconds. */
describe('label rules', function () {
  this.timeout(40_000);
  let product: Product;
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'archaware-labels-'));
    product = await startProduct();
  });
  afterEach(async () => {
    await product.stop();
    await rm(directory, { recursive: true, force: true });
  });

  const write = async (files: Contents) => {
    for (const [path, content] of Object.entries(files)) {
      const file = join(directory, path);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(`${file}~`, content);
      await rename(`${file}~`, file);
    }
  };
  const flags = () => ['--nodeLabels.directory', directory];
  const run = (...more: string[]) => product.run([...flags(), ...more]);
  const label = (path: string, labels: Readonly<Record<string, string | null>>) =>
    product.patch(path, { metadata: { labels } });
  /** Our kind of labels on a node, as `key=value`. */
  const labelsOf = async (path: string) =>
    Object.entries(object(at(await product.get(path), 'metadata', 'labels')))
      .map(([key, value]) => `${key}=${text(value)}`)
      .filter((pair) => /^(example\.com|accelerators|other)\//.test(pair))
      .sort();
  const recorded = async (path: string): Promise<unknown> => {
    const annotation = at(await product.get(path), 'metadata', 'annotations', MANAGED);
    return annotation === undefined ? undefined : at(JSON.parse(text(annotation)), 'labels');
  };
  const eventually = (path: string, ...wanted: string[]) =>
    product.eventually(`${path} to have ${wanted.join() || 'no label'}`, async () => {
      const found = await labelsOf(path);
      return found.join() === [...wanted].sort().join();
    });
  const eventuallyLogged = (controller: RunningController, ...words: string[]) =>
    product.eventually(`a line of the log with ${words.join(', ')}`, async () =>
      controller.logs().find((line) => words.every((word) => line.includes(word))),
    );
  const told = async (reason: string) =>
    (await product.list('/apis/events.k8s.io/v1/namespaces/default/events')).filter((event) => event.reason === reason);
  const patches = () =>
    product.cluster
      .writes()
      .filter(({ path }) => path.startsWith('/api/v1/nodes/'))
      .map(({ body }) => objects(body).filter(({ op }) => op !== 'test'));

  it('give a node its label in the write that taints it, and it loses it at once when none is left', async () => {
    await write({ [GPU]: `# USB stick\r\n${KEY}  \r\nexample.com/pci=1 # or the card\r\n` });
    await label(NODE, { [KEY]: 'true' });
    product.cluster.forgetRequests();
    await run();
    await eventually(NODE, `${GPU}=true`, `${KEY}=true`);
    await product.eventuallyTainted();
    expect(await recorded(NODE)).to.deep.equal([GPU]);
    expect(await labelsOf(OTHER)).to.deep.equal([]);
    const paths = patches().map((operations) => operations.map(({ path }) => text(path)));
    expect(paths).to.deep.include(['/spec/taints', '/metadata/labels/example.com~1gpu', '/metadata/annotations']);
    expect(paths).to.have.lengthOf(2);

    await label(NODE, { 'example.com/pci': '1', [KEY]: null });
    await label(NODE, { 'example.com/pci': '2' });
    await eventually(NODE, 'example.com/pci=2');
    expect(await recorded(NODE)).to.equal(undefined);
    expect(taintsOf(await product.get(NODE))).to.deep.equal(['amd64']);
    await label(NODE, { [KEY]: 'yes' });
    await eventually(NODE, 'example.com/pci=2', `${GPU}=true`, `${KEY}=yes`);
    await label(NODE, { [KEY]: 'false' });
    await eventually(NODE, 'example.com/pci=2', `${KEY}=false`);
  });

  it('follow one another in one write, and come to rest', async () => {
    await write({ 'example.com/b': 'example.com/a', 'example.com/a': KEY, 'example.com/self': '!example.com/self' });
    await write({ 'other/none': '!example.com/b' });
    await run('--loops', 'labels');
    await eventually(NODE, 'other/none=true');
    product.cluster.forgetRequests();
    await label(NODE, { [KEY]: 'true' });
    await eventually(NODE, `${KEY}=true`, 'example.com/a=true', 'example.com/b=true');
    // Each write comes back as an event; the last one is answered by nothing.
    await label(NODE, { [KEY]: null });
    await eventually(NODE, 'other/none=true');
    expect(product.written().filter((line) => line === `PATCH ${NODE}`)).to.have.lengthOf(2);
    await product.eventuallyTold('ConfigurationRejected', /self:1: example.com\/self is itself decided/, 'archaware');
  });

  it("never write over somebody else's label or remove it, and say so once", async () => {
    await write({ [GPU]: KEY, 'example.com/tpu': KEY });
    await label(NODE, { [GPU]: 'manual', [KEY]: 'true' });
    await label(OTHER, { [GPU]: 'true' });
    await run();
    await eventually(NODE, `${GPU}=manual`, `${KEY}=true`, 'example.com/tpu=true');
    await product.eventuallyTold('LabelConflict', /^label example.com\/gpu=manual was set by somebody else/);
    await product.eventuallyTold('LabelConflict', /^label example.com\/gpu=true was set by somebody else/);
    // Ours, changed by somebody, is theirs from then on.
    await label(NODE, { 'example.com/tpu': 'theirs' });
    await product.eventuallyTold('LabelConflict', /tpu=theirs/);
    await product.eventually('the record to be gone', async () => (await recorded(NODE)) === undefined);
    await label(NODE, { [KEY]: null });
    await label(NODE, { 'example.com/unrelated': '1' });
    await product.eventuallyTainted();
    expect(await labelsOf(NODE)).to.deep.equal([`${GPU}=manual`, 'example.com/tpu=theirs', 'example.com/unrelated=1']);
    expect(await labelsOf(OTHER)).to.deep.equal([`${GPU}=true`]);
    expect(await told('LabelConflict')).to.have.lengthOf(3);
    // Taken away, it is the rule's to decide.
    await label(NODE, { [GPU]: null, [KEY]: 'true' });
    await eventually(NODE, `${GPU}=true`, `${KEY}=true`, 'example.com/tpu=theirs', 'example.com/unrelated=1');
  });

  it('are put back where somebody took them away, but not for ever', async () => {
    await write({ [GPU]: KEY });
    await label(NODE, { [KEY]: 'true' });
    await run();
    for (let time = 0; time < 3; time++) {
      await eventually(NODE, `${GPU}=true`, `${KEY}=true`);
      await label(NODE, { [GPU]: null });
    }
    await product.eventuallyTold('WriteContested', /another writer undid .*example.com\/gpu/);
    expect(await labelsOf(NODE)).to.deep.equal([`${KEY}=true`]);
  });

  it('apply to all nodes when they change: a file, another name, none, no file at all', async () => {
    await write({ [GPU]: KEY });
    for (const path of [NODE, OTHER]) await label(path, { [KEY]: 'true' });
    const controller = await run('--loops', 'labels');
    await eventually(NODE, `${GPU}=true`, `${KEY}=true`);
    await rename(join(directory, GPU), join(directory, 'example.com/tpu'));
    for (const path of [NODE, OTHER]) await eventually(path, 'example.com/tpu=true', `${KEY}=true`);
    await write({ 'other/x': KEY });
    await rm(join(directory, 'example.com'), { recursive: true });
    for (const path of [NODE, OTHER]) await eventually(path, 'other/x=true', `${KEY}=true`);
    await rm(join(directory, 'other'), { recursive: true });
    for (const path of [NODE, OTHER]) await eventually(path, `${KEY}=true`);
    expect(await controller.stop()).to.equal(0);
    expect(await recorded(NODE)).to.equal(undefined);
  });

  it('that are refused leave their label as it is, and every other holds', async () => {
    await write({ [GPU]: KEY, 'other/x': KEY });
    await label(NODE, { [KEY]: 'true' });
    const controller = await run();
    await eventually(NODE, `${GPU}=true`, `${KEY}=true`, 'other/x=true');
    await write({
      [GPU]: `${KEY}\nno label`,
      'other/x': '',
      'other/y': KEY,
      'kubernetes.io/z': KEY,
      'other/w': 'x'.repeat(65_537),
    });
    await eventually(NODE, `${GPU}=true`, `${KEY}=true`, 'other/y=true');
    for (const problem of [
      /gpu:2: got \\"no label\\", expected/,
      /kubernetes.io: is reserved/,
      /other\/w: is larger than 65536/,
    ]) {
      const line = await eventuallyLogged(controller, '"level":"error"', 'label rules refused; every other holds');
      expect(line).to.match(problem);
    }
    await product.eventuallyTold('ConfigurationRejected', /^every other label rule holds: .*gpu:2: got/, 'archaware');
    await label(OTHER, { [KEY]: 'true' });
    await eventually(OTHER, `${KEY}=true`, 'other/y=true');
    // And after a restart.
    await controller.stop();
    const again = await run();
    await product.eventually('it to lead', async () => (await again.metric('archaware_leader')) === 1);
    await eventuallyLogged(again, 'label rules refused');
    await label(NODE, { [KEY]: null });
    await eventually(NODE, `${GPU}=true`);
    await write({ [GPU]: KEY });
    await eventually(NODE);
  });

  it('hold on while their directory is gone, and it is told of, until it is back', async () => {
    await write({ [GPU]: KEY });
    await label(NODE, { [KEY]: 'true' });
    const controller = await run();
    await eventually(NODE, `${GPU}=true`, `${KEY}=true`);
    await rename(directory, `${directory}-gone`);
    await eventuallyLogged(controller, '"level":"error"', 'cannot be read (ENOENT); the last good rules hold');
    await product.eventuallyTold('ConfigurationRejected', /ENOENT.*the last good rules hold/, 'archaware');
    await label(OTHER, { [KEY]: 'true' });
    await eventually(OTHER, `${GPU}=true`, `${KEY}=true`);
    await mkdir(directory);
    await eventually(OTHER, `${KEY}=true`);
    await eventually(NODE, `${KEY}=true`);
    await rm(`${directory}-gone`, { recursive: true });
  });

  it('are not guessed at where the directory is not there from the beginning', async () => {
    const gone = join(directory, 'gone');
    for (const command of ['run', 'plan']) {
      const { code, stderr } = await product.command([command, '--nodeLabels.directory', gone]);
      expect(code, stderr).to.equal(3);
      expect(stderr).to.contain(`nodeLabels.directory: ${gone}: cannot be read (ENOENT)`);
    }
  });

  it('may be mounted ConfigMaps, swapped', async () => {
    await mount(directory, { 'example.com/gpu': KEY });
    await label(NODE, { [KEY]: 'true' });
    await run();
    await eventually(NODE, `${GPU}=true`, `${KEY}=true`);
    await mount(directory, { 'other/x': KEY });
    await eventually(NODE, 'other/x=true', `${KEY}=true`);
  });

  it('are forgotten nowhere: what a process set, the next one takes back', async () => {
    await write({ [GPU]: KEY, 'example.com/tpu': KEY });
    await label(NODE, { [KEY]: 'true' });
    await (async () => {
      const controller = await run();
      await eventually(NODE, `${GPU}=true`, 'example.com/tpu=true', `${KEY}=true`);
      await controller.stop('SIGKILL');
    })();
    await product.cluster.request(
      'DELETE',
      '/apis/coordination.k8s.io/v1/namespaces/archaware/leases/archaware-controller',
    );
    await label(NODE, { [KEY]: null });
    await rm(join(directory, 'example.com/tpu'));
    const next = await run();
    await eventually(NODE);
    await next.stop();
    // Without a directory there are no rules.
    await label(NODE, { [KEY]: 'true' });
    const third = await run();
    await eventually(NODE, `${GPU}=true`, `${KEY}=true`);
    await third.stop();
    await product.run();
    await eventually(NODE, `${KEY}=true`);
  });

  it('are alone in --loops labels, and nothing to --loops nodes', async () => {
    await write({ [GPU]: KEY });
    for (const path of [NODE, OTHER]) await label(path, { [KEY]: 'true' });
    const alone = await run('--loops', 'labels');
    for (const path of [NODE, OTHER]) await eventually(path, `${GPU}=true`, `${KEY}=true`);
    await alone.stop();
    const requests = product.cluster.requests().map(({ method, path }) => `${method} ${path}`);
    expect(
      requests.filter((line) => /GET .*\/(pods|daemonsets|namespaces)\?/.test(line) && /watch/.test(line)),
    ).to.deep.equal([]);
    expect(taintsOf(await product.get(NODE))).to.deep.equal([]);
    await label(NODE, { [KEY]: null });
    await rm(join(directory, GPU));
    const nodes = await run('--loops', 'nodes');
    await product.eventuallyTainted();
    await nodes.stop();
    expect(await labelsOf(NODE)).to.deep.equal([`${GPU}=true`]);
    expect(await recorded(NODE)).to.deep.equal([GPU]);
    await run('--loops', 'labels');
    await eventually(NODE);
    await eventually(OTHER, `${KEY}=true`);
    expect(taintsOf(await product.get(NODE))).to.deep.equal(['amd64']);
  });

  it('do not wait for pods, whose tolerations the taint waits for', async () => {
    await write({ [GPU]: KEY });
    await label(NODE, { [KEY]: 'true' });
    product.registry.inject({ kind: 'hang' }, { path: /\/slow\// });
    await product.cluster.createPod({ name: 'slow', images: [product.image('slow', ['amd64'])] });
    await run('--registries.timeout', '5m');
    await eventually(NODE, `${GPU}=true`, `${KEY}=true`);
    expect(taintsOf(await product.get(NODE))).to.deep.equal([]);
  });

  it('are in plan, and clean takes exactly what is ours', async () => {
    await write({ [GPU]: KEY, 'other/x': '!no', 'other/bad': '?' });
    await label(NODE, { [KEY]: 'true', 'other/x': 'mine' });
    const planned = await product.command(['plan', ...flags(), '--loops', 'labels']);
    expect(planned.code, planned.stderr).to.equal(2);
    expect(planned.stdout).to.match(/^Node +amd64-1 +label +example.com\/gpu=true$/m);
    expect(planned.stdout).to.match(/^Node +arm64-1 +label +other\/x=true$/m);
    expect(planned.stderr).to.match(/nodeLabels.directory: .*other\/bad:1: got "\?"/);
    expect(await labelsOf(NODE)).to.deep.equal([`${KEY}=true`, 'other/x=mine']);

    const controller = await run();
    await eventually(NODE, `${GPU}=true`, `${KEY}=true`, 'other/x=mine');
    await eventually(OTHER, 'other/x=true');
    await product.eventuallyTainted();
    await controller.stop();
    const gone = await product.command(['plan', '--loops', 'labels']);
    expect(gone.stdout).to.match(/^Node +amd64-1 +unlabel +-example.com\/gpu$/m);
    expect((await product.command(['plan', ...flags()])).stdout).to.equal('Nothing to change.\n');
    // A label of others may have our value; one of ours that somebody changed is theirs.
    await label(OTHER, { 'example.com/tpu': 'true', 'other/x': 'changed' });
    const dry = await product.command(['clean', '--dry-run']);
    expect(dry.stderr).to.match(/nodes +2 +take our taint and labels away/);
    const { code, stdout } = await product.command(['clean', '--yes', '--output', 'json']);
    expect(code).to.equal(0);
    expect(at(JSON.parse(stdout), 'removed')).to.deep.include({ nodes: 2, labels: 1 });
    expect(await labelsOf(NODE)).to.deep.equal([`${KEY}=true`, 'other/x=mine']);
    expect(await labelsOf(OTHER)).to.deep.equal(['example.com/tpu=true', 'other/x=changed']);
    for (const path of [NODE, OTHER]) {
      expect(at(await product.get(path), 'metadata', 'annotations', MANAGED)).to.equal(undefined);
    }
  });
});

describe('config validate with label rules', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'archaware-labels-'));
    await mkdir(join(directory, 'labels', 'a'), { recursive: true });
    await writeFile(join(directory, 'labels', 'a', 'x'), 'k\nk k\n');
    await writeFile(join(directory, 'config.yaml'), 'nodeLabels: {directory: labels}\n');
  });
  afterEach(() => rm(directory, { recursive: true }));

  const validate = (name: string) => runBundle(['config', 'validate', name], { cwd: directory });
  const PROBLEM = 'labels/a/x:2: got "k k", expected the label of a node as key, key=value, key!=value or !key\n';

  for (const [name, key] of [
    ['labels', ''],
    ['config.yaml', 'nodeLabels.directory: '],
  ] as const) {
    it(`checks them, given ${name}`, async () => {
      const stderr = `archaware-controller: ${key}${PROBLEM}`;
      expect(await validate(name)).to.deep.equal({ code: 3, stdout: '', stderr });
      await writeFile(join(directory, 'labels', 'a', 'x'), 'k\n!l # of others\n');
      expect(await validate(name)).to.deep.equal({ code: 0, stdout: `${name}: valid\n`, stderr: '' });
    });
  }

  it('says that it did not where they are on another machine', async () => {
    await rm(join(directory, 'labels'), { recursive: true });
    const { code, stdout, stderr } = await validate('config.yaml');
    expect([code, stdout]).to.deep.equal([0, 'config.yaml: valid\n']);
    expect(stderr).to.equal('nodeLabels.directory: labels is not here; not checked\n');
  });
});
