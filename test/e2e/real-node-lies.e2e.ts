import { expect } from 'chai';
import { at } from '../../hack/cluster/json.ts';
import { podImage } from '../../hack/cluster/node-images.ts';
import type { JsonObject } from '../../src/kit/json.ts';
import { index } from '../../testimg/build.ts';
import { TESTIMG_REPOSITORY } from '../../testimg/fixtures.ts';
import { pushFixtures } from '../../testimg/push.ts';
import { isGoing, ours, scheduledOn, tolerations, uidOf } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { deployment, type KubernetesObject } from '../support/workloads.ts';
import { needsRealNode } from './support/real-node.ts';
import { otherArchitecture } from './support/real-world.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const NAMESPACE = 'lies';
const METRIC = 'archaware_image_lies';

/** The image has both architectures. The entry for the real node's holds a program for the other one. */
describe('the life of a lie on a real node, in this order', function () {
  this.timeout(240_000);
  let world: LiveWorld;
  let controller: RunningController;
  let real: string;
  let own: string;
  let other: string;
  let image: string;

  before(async function () {
    needsRealNode(this);
    world = await startWorld({ cluster: { node: 'real' }, nodes: [] });
    const { cluster, registry } = world;
    const { node } = cluster;
    if (node === undefined) throw new Error('the cluster has no node');
    [real, own, other] = [node.name, node.architecture, otherArchitecture(node)];
    const [lies, right] = await Promise.all([
      podImage(otherArchitecture(node), node.architecture),
      podImage(otherArchitecture(node)),
    ]);
    const built = index([
      { of: lies, platform: { os: 'linux', architecture: own } },
      { of: right, platform: { os: 'linux', architecture: other } },
    ]);
    const fixtures = [{ tag: 'turned-round', build: () => built }];
    await pushFixtures({ registry: registry.host, repository: TESTIMG_REPOSITORY, insecure: true, fixtures });
    image = world.image('turned-round');
    await cluster.createNode({ name: `fake-${other}`, architecture: other });
    await world.namespace(NAMESPACE);
    const [host = ''] = image.split('/', 1);
    const mirrors = JSON.stringify({ [host]: { endpoints: [registry.host], fallback: false } });
    controller = await world.run(['--registries.mirrors', mirrors]);
  });
  after(() => world?.stop());

  const podsOf = async (app: string) =>
    (await world.list('Pod', NAMESPACE)).filter((pod) => at(pod, 'metadata', 'labels', 'app') === app && !isGoing(pod));
  /** A Deployment whose pods prefer the real node. */
  const workload = (name: string, terminationMessagePolicy: string): KubernetesObject =>
    deployment(NAMESPACE, name, {
      images: [],
      spec: {
        affinity: {
          nodeAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              {
                weight: 100,
                preference: { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [real] }] },
              },
            ],
          },
        },
        containers: [{ name: 'main', image, terminationMessagePolicy }],
      },
    });
  /** Waits for the one pod of a Deployment to crash on the real node, and returns it. */
  const crashed = (app: string): Promise<JsonObject> =>
    world.eventually(`${app} to crash on the real node`, async () => {
      const [pod] = await podsOf(app);
      const status = pod && at(pod, 'status', 'containerStatuses', 0);
      const isOver = [at(status, 'state', 'terminated'), at(status, 'lastState', 'terminated')].some(
        (ended) => ended !== undefined && ended !== null,
      );
      return pod !== undefined && isOver && pod;
    });
  const ending = (pod: JsonObject) => {
    const status = at(pod, 'status', 'containerStatuses', 0);
    return at(status, 'lastState', 'terminated') ?? at(status, 'state', 'terminated');
  };

  it('shows only an exit code with the default terminationMessagePolicy, from which nothing is learned', async () => {
    await world.create(workload('silent', 'File'));
    const pod = await crashed('silent');
    expect(scheduledOn(pod)).to.equal(real);
    expect(tolerations(pod)).to.deep.include.members([...ours(own), ...ours(other)]);
    expect(at(ending(pod), 'exitCode')).to.be.oneOf([1, 255]);
    expect(at(ending(pod), 'message')).to.equal(undefined);
    expect(await controller.metric(METRIC)).to.equal(0);
    await world.remove('Deployment', NAMESPACE, 'silent');
  });

  it('is learned from the crash of a container that shows its log, and the next pod goes to the other node', async () => {
    await world.create(workload('web', 'FallbackToLogsOnError'));
    const first = await crashed('web');
    expect(scheduledOn(first)).to.equal(real);
    expect(String(at(ending(first), 'message'))).to.match(/exec \S+: exec format error/);
    const ended = Date.parse(String(at(ending(first), 'finishedAt')));
    await world.eventually('the lie to be learned', async () => (await controller.metric(METRIC)) === 1);
    const learned = Date.now();
    const note = await world.eventuallyEvent(NAMESPACE, 'ImageLies', /exec format error/);
    expect(note).to.include(`linux/${own}, but node ${real} refused the program of container main`);
    await world.remove('Pod', NAMESPACE, String(at(first, 'metadata', 'name')));
    const removed = Date.now();
    const next = await world.eventually('the next pod to run', async () => {
      const [pod] = await podsOf('web');
      const isNext = pod !== undefined && uidOf(pod) !== uidOf(first) && at(pod, 'status', 'phase') === 'Running';
      return isNext && pod;
    });
    expect(scheduledOn(next)).to.equal(`fake-${other}`);
    expect(tolerations(next).filter((text) => text.startsWith('supported-arch'))).to.deep.equal(ours(other));
    console.log(
      `      crash (a full second) to learned: ${learned - ended} ms; deletion to the next pod: ${Date.now() - removed} ms`,
    );
  });

  it('is kept in the ConfigMap, by the rights of the manifest', async () => {
    const text = await world.eventually('the ConfigMap', async () => {
      const read = ['-n', 'archaware', 'get', 'configmap', 'archaware-controller-lies', '-o', 'yaml'];
      const { code, stdout } = await world.cluster.kubectl(read);
      return code === 0 && stdout;
    });
    expect(text).to.include(` linux/${own} ${NAMESPACE}":{"image":"`);
  });
});
