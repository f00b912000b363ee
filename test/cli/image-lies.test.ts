import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { at, objects, text } from '../simulator/json.ts';
import { runInProcess } from '../support/in-process.ts';
import { type Product, startProduct, tolerated, workload } from '../support/product.ts';

const BOTH = ['amd64', 'arm64'];
/** A container that the node refused, with its log in the status (terminationMessagePolicy: FallbackToLogsOnError). */
const REFUSED = {
  ...{ ready: false, started: false, restartCount: 3, state: { waiting: { reason: 'CrashLoopBackOff' } } },
  lastState: { terminated: { exitCode: 255, reason: 'Error', message: 'exec /app: exec format error' } },
};

describe('an image whose arm64 entry holds a program for amd64', () => {
  let product: Product;
  let directory: string;
  let file: readonly string[];
  let image: string;
  let digest: string;
  let pods = 0;
  async function start(nodes: readonly string[] = BOTH): Promise<void> {
    product = await startProduct({ nodes });
    digest = product.registry.put('app', '1', BOTH);
    image = `${product.registry.host}/app:1`;
    for (const name of ['other', 'third']) {
      await product.cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }));
    }
  }
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'lies-'));
    file = ['--images.cache.file', join(directory, 'images.json')];
    await start();
  });
  afterEach(async () => {
    await product.stop();
    await rm(directory, { recursive: true });
  });

  const pathOf = (namespace: string, name = '') => `/api/v1/namespaces/${namespace}/pods/${name}`;
  /** Creates a pod and returns what archaware lets it tolerate. */
  async function next(namespace = 'default', of = image): Promise<string> {
    const name = `next-${++pods}`;
    await product.cluster.createPod({ name, namespace, images: [of] });
    return product.eventually(`${name} to be placed`, async () => {
      const { spec } = await product.get(pathOf(namespace, name));
      return tolerated(spec).join() || undefined;
    });
  }
  /** A pod on the arm64 node whose status shows that the node refused its program. */
  async function crash(namespace = 'default', of = image, pulled = digest): Promise<string> {
    const name = `crash-${++pods}`;
    await product.cluster.createPod({ name, namespace, images: [of], spec: { nodeName: 'arm64-1' } });
    const pod = await product.eventually(`${name} to run`, async () => {
      const found = await product.get(pathOf(namespace, name));
      return at(found, 'status', 'phase') === 'Running' && tolerated(at(found, 'spec')).length > 0 && found;
    });
    const containerStatuses = objects(at(pod, 'status', 'containerStatuses')).map((status) => ({
      ...{ ...status, imageID: `${text(status.image).replace(/:[^:]*$/, '')}@${pulled}` },
      ...REFUSED,
    }));
    await product.patch(`${pathOf(namespace, name)}/status`, { status: { containerStatuses } });
    await product.eventuallyEvent(namespace, 'WrongNode', /exec format error/);
    return name;
  }

  it('loses arm64 for the next pods of the namespace whose pod showed it, and the crashed one stays', async () => {
    const controller = await product.run();
    expect(await next()).to.equal('amd64,arm64');
    const name = await crash();
    const note = await product.eventuallyEvent('default', 'ImageLies', /linux\/arm64/);
    expect(note).to.include('node arm64-1 refused the program of container').and.include('images.overrides');
    expect(await next()).to.equal('amd64');
    expect(await next('other')).to.equal('amd64,arm64');
    expect(await controller.metric('archaware_image_lies')).to.equal(1);
    expect(tolerated(at(await product.get(pathOf('default', name)), 'spec')).join()).to.equal('amd64,arm64');
    expect(product.written().filter((line) => line.endsWith('/eviction'))).to.deep.equal([]);
  });

  it('loses arm64 for all namespaces once the pods of two have shown it', async () => {
    await product.run();
    await crash('default');
    await crash('other');
    await product.eventuallyEvent('other', 'ImageLies', /linux\/arm64/);
    expect(await next('third')).to.equal('amd64');
  });

  it('has arm64 again with another digest', async () => {
    await product.run(['--images.cache.tagTtl', '1s']);
    await crash();
    expect(await next()).to.equal('amd64');
    product.registry.put('app', '2', ['amd64', 'arm64', 's390x']);
    expect(await next('default', `${product.registry.host}/app:2`)).to.equal('amd64,arm64,s390x');
  });

  it('is remembered across a restart with the cache file', async () => {
    const first = await product.run(file);
    await crash();
    await product.eventuallyEvent('default', 'ImageLies', /linux\/arm64/);
    await first.stop();
    expect(await readFile(join(directory, 'images.json'), 'utf8')).to.include(`"${digest} linux/arm64 default"`);
    const second = await product.run(file);
    expect(await second.metric('archaware_image_lies')).to.equal(1);
    expect(await next()).to.equal('amd64');
  });

  const CONFIG_MAP = '/api/v1/namespaces/archaware/configmaps/archaware-controller-lies';
  const kept = () =>
    product.eventually('the ConfigMap', async () => {
      const { body } = await product.cluster.request('GET', CONFIG_MAP);
      return text(at(body, 'data', 'lies.json')) || undefined;
    });

  it('is known to the next leader by a ConfigMap', async () => {
    const first = await product.run();
    await crash();
    expect(await kept()).to.include(`"${digest} linux/arm64 default":`);
    const status = await product.command(['status']);
    expect(status.stdout).to.match(
      /lies +\S+app@sha256:\w+ does not run on linux\/arm64, as namespace default showed on arm64-1/,
    );
    const { stdout } = await product.command(['explain', `pod/crash-${pods}`]);
    expect(stdout).to.match(
      /linux\/arm64 does not count: its program was refused on node arm64-1 \(exec format error\), learned /,
    );
    await first.stop();
    await product.run();
    await product.eventually('the lie to count', async () => (await next()) === 'amd64');
  });

  it('is forgotten with the ConfigMap, also by the cache file', async () => {
    const first = await product.run(file);
    await crash();
    await kept();
    await first.stop();
    expect(await readFile(join(directory, 'images.json'), 'utf8')).to.include('"origin":{"uid":');
    await product.command(['clean', '--yes', '--pods', 'keep']);
    const { status } = await product.cluster.request('GET', CONFIG_MAP);
    expect(status).to.equal(404);
    const gone = await product.cluster.request('DELETE', '/api/v1/namespaces/default/pods');
    expect(gone.status).to.equal(200);
    await product.run(file);
    await product.eventually('the lie to be forgotten', async () => (await next()) === 'amd64,arm64');
  });

  const NOTE =
    /linux\/arm64 does not count: its program was refused on a node \(exec format error\), shown by namespace/;
  /** A cache file in which archaware keeps that the pods of a namespace showed it. */
  async function keepInFile(): Promise<readonly string[]> {
    const first = await product.run(file);
    await crash();
    await kept();
    await first.stop();
    return [...file, '--registries.insecure', product.registry.host];
  }

  it('is named by inspect, which reads the cache file and needs no cluster', async () => {
    const flags = await keepInFile();
    const { code, stdout } = await runInProcess(['inspect', image, ...flags]);
    expect(code).to.equal(0);
    expect(stdout)
      .to.match(/Notes\.\n/)
      .and.to.match(NOTE);
    expect(stdout).to.match(/shown by namespace default, learned \S+Z; for the pods of this namespace only/);
    const json = JSON.parse((await runInProcess(['inspect', image, ...flags, '-o', 'json'])).stdout);
    expect(json[0].lies[0]).to.include({ platform: 'linux/arm64', counts: false });
    expect(json[0].lies[0].namespaces).to.deep.equal(['default']);
    expect(json[0].lies[0].learnedAt).to.match(/^\d{4}-.*Z$/);
    const reported = await runInProcess(['inspect', image, ...flags, '--images.lies', 'report']);
    expect(reported.stdout).to.match(/linux\/arm64 counts, although .*: images\.lies is report/);
  });

  it('does not keep inspect from its work if the cache file is missing or damaged', async () => {
    const flags = [...file, '--registries.insecure', product.registry.host];
    const missing = await runInProcess(['inspect', image, ...flags]);
    expect([missing.code, missing.stderr]).to.deep.equal([0, '']);
    await writeFile(join(directory, 'images.json'), 'no such thing\n');
    const damaged = await runInProcess(['inspect', image, ...flags]);
    expect(damaged.code).to.equal(0);
    expect(damaged.stdout).to.include('linux/arm64').and.not.to.include('does not count');
    expect(damaged.stderr).to.match(/without what the controller learned .*: it is damaged: its checksum/);
  });

  it('is removed by clean from the cache file, which keeps everything else, and a dry run keeps it', async () => {
    const flags = await keepInFile();
    const text = () => readFile(join(directory, 'images.json'), 'utf8');
    const before = await text();
    await product.command(['clean', '--dry-run', ...file]);
    expect(await text()).to.equal(before);
    const { stderr } = await product.command(['clean', '--yes', '--pods', 'keep', ...file]);
    expect(stderr).to.include('images.json: what was learned of images that lie');
    const [rest] = before.split('\n},"lies":{');
    expect((await text()).replace(/\n\},"sha256":.*\n$/, '')).to.equal(rest);
    const inspected = await runInProcess(['inspect', image, ...flags]);
    expect(inspected.stdout).not.to.match(NOTE);
    // The checksum of the file is right.
    expect(inspected.stderr).to.equal('');
  });

  it('keeps arm64 where images.lies only reports', async () => {
    const controller = await product.run(['--images.lies', 'report']);
    await crash();
    await product.eventuallyEvent('default', 'ImageLies', /images\.lies is report/);
    expect(await next()).to.equal('amd64,arm64');
    expect(await controller.metric('archaware_image_lies')).to.equal(1);
  });

  it('keeps arm64 where images.overrides states it', async () => {
    const controller = await product.run([
      '--images.overrides',
      '[{pattern: "*/app*", architectures: [amd64, arm64]}]',
    ]);
    await crash();
    expect(await next()).to.equal('amd64,arm64');
    expect(await controller.metric('archaware_image_lies')).to.equal(0);
  });

  it('keeps arm64 if it is all that the cluster has', async () => {
    await product.stop();
    await start(['arm64']);
    await product.run();
    await crash();
    await product.eventuallyEvent('default', 'ImageLies', /linux\/arm64/);
    expect(await next()).to.equal('amd64,arm64');
  });

  it('loses arm64 in the template of a DaemonSet that comes later, and what was written stays', async () => {
    const toleratedBy = (name: string, expected: string) =>
      product.eventually(`the template of ${name} to tolerate ${expected}`, async () => {
        const set = await product.get(`/apis/apps/v1/namespaces/default/daemonsets/${name}`);
        return tolerated(at(set, 'spec', 'template', 'spec')).join() === expected;
      });
    await product.run();
    await product.cluster.apply(workload('DaemonSet', 'before', [image]));
    await toleratedBy('before', 'amd64,arm64');
    await crash();
    await product.cluster.apply(workload('DaemonSet', 'after', [image]));
    await toleratedBy('after', 'amd64');
    await toleratedBy('before', 'amd64,arm64');
  });
});
