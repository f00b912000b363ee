import { expect } from 'chai';
import { at } from '../../hack/cluster/json.ts';
import { isGoing, isReady, ours, scheduledOn, taints, tolerations, uidOf } from '../support/objects.ts';
import { isTrusted } from '../support/webhook.ts';
import { deployment, type KubernetesObject, pod } from '../support/workloads.ts';
import { arrangeHelm, CHART_PATH, type Helm, RELEASE } from './support/helm.ts';
import { eventuallyOn, nothingIsLeft, restartUnderStream, reviewsPods, whatIsThere } from './support/real-checks.ts';
import { configurationEdit, editConfiguration, installManifest, realWorldForAll } from './support/real-world.ts';

/** `hack/verify.sh --all` asks for more. */
const RESTARTS = Number(process.env.ARCHAWARE_RESTARTS || 3);
const PODS_PER_SECOND = 30;

/** Each part goes on with what the one before has left. */
describe('a real node, in this order', function () {
  this.timeout(300_000);
  const { real, world } = realWorldForAll();
  let own: string;
  let other: string;

  before(() => {
    ({ own, other } = real);
  });
  afterEach(async function () {
    if (this.currentTest?.state === 'failed') console.log(await whatIsThere(world));
  });

  describe('with the single manifest', () => {
    const ns = 'shop';
    const images = new Map<string, string>();

    it('runs the image that hack/build.sh builds, installed as docs/install.md says', async () => {
      const { repository, digest } = await installManifest(real);
      const pods = (await world.list('Pod', 'archaware')).filter((one) => !isGoing(one));
      expect(pods.map(scheduledOn)).to.deep.equal([real.node.name, real.node.name]);
      for (const one of pods)
        expect(at(one, 'status', 'containerStatuses', 0, 'imageID')).to.equal(`${repository}@${digest}`);
    });

    it('taints every node, as docs/install.md says', async () => {
      await real.block('docs/install.md', 'kubectl wait node --all');
      expect(taints(await world.node(real.node.name))).to.deep.equal(ours(own));
      expect(taints(await world.node(real.fake))).to.deep.equal(ours(other));
    });

    it('reads a changed configuration without a restart, and places pods by their images', async () => {
      await editConfiguration(real, `registries: {insecure: ["${world.registry.nodeHost}"]}`);
      for (const tag of [`program-${own}`, `index-${other}`, 'index-both']) images.set(tag, world.image(tag));
      await world.namespace(ns);
      await world.create(...[...images].map(([tag, image]) => deployment(ns, tag, { images: [image] })));
      const toleratedBy = {
        [`program-${own}`]: ours(own),
        [`index-${other}`]: ours(other),
        'index-both': ours(own, other),
      };
      for (const [tag, wanted] of Object.entries(toleratedBy)) {
        await eventually(`${tag} to run, tolerating ${wanted}`, async () => {
          const [found] = await world.pods(ns, tag);
          return at(found, 'status', 'phase') === 'Running' && tolerations(found).join() === wanted.join();
        });
      }
      const nodeOf = async (tag: string) => scheduledOn((await world.pods(ns, tag))[0]);
      expect(await nodeOf(`program-${own}`)).to.equal(real.node.name);
      expect(await nodeOf(`index-${other}`)).to.equal(real.fake);
    });

    /** A pod that was bound past the scheduler. */
    const bound = (name: string, tag: string): KubernetesObject => {
      const container = { name: 'main', image: world.image(tag), terminationMessagePolicy: 'FallbackToLogsOnError' };
      return pod(ns, name, { images: [], spec: { nodeName: real.node.name, containers: [container] } });
    };
    const where = () => `node ${real.node.name} (${own})`;

    it('knows a pod on a wrong node by what the runtime says of an index without its platform', async () => {
      await world.create(bound('no-platform', `index-${other}`));
      const note = await eventuallyEvent(ns, 'WrongNode', /no match for platform/);
      expect(note).to.include(`container main has no image for ${where()}: no match for platform in manifest`);
      expect(note).to.include(`linux/${other}`);
    });

    it('knows it by the exec format error of an image without an index', async () => {
      await world.create(bound('wrong-program', `program-${other}`));
      const note = await eventuallyEvent(ns, 'WrongNode', /exec format error/);
      expect(note).to.include(`container main died with an exec format error on ${where()}`);
      expect(note).to.include(`linux/${other}`);
    });

    it('says of an image with a wrong architecture what it claims, and what to write', async () => {
      const before = await world.events(ns, 'WrongNode');
      await world.create(bound('mislabelled', 'mislabelled'));
      const note = await eventually('an Event about the pod', async () =>
        (await world.events(ns, 'WrongNode')).find((text) => !before.includes(text) && text.includes(':mislabelled')),
      );
      expect(note).to.include(`died with an exec format error on ${where()}`);
      const image = world.image('mislabelled');
      expect(note).to.match(new RegExp(`its image \\S+@sha256:[0-9a-f]{64} claims to run on ${own}, but it does not`));
      expect(note).to.include(`state the architectures of "${image}" in images.overrides`);
      await real.kubectl('-n', ns, 'delete', 'pod', 'no-platform', 'wrong-program', 'mislabelled', '--grace-period=1');
    });

    it('turns the webhook on within 30 s, as docs/changing-modes.md says', async () => {
      const lines = [
        `registries: {insecure: ["${world.registry.nodeHost}"]}`,
        'webhook: {enabled: true}',
        'placement: {mode: both}',
      ];
      const limit = { '--timeout=2m': '--timeout=30s' };
      await real.block(
        'docs/changing-modes.md',
        'kubectl apply -f manifests/webhook.yaml',
        limit,
        configurationEdit(...lines),
      );
      await eventually('every webhook to have a caBundle', () => isTrusted(world));
      await eventually('a new pod to be reviewed', () => reviewsPods(world, ns, images.get('index-both') ?? ''));
    });

    it(`lets no pod pass unreviewed in ${RESTARTS} rolling restarts, at ${PODS_PER_SECOND} pods a second`, async () => {
      const image = images.get(`index-${other}`) ?? '';
      await restartUnderStream(real, { restarts: RESTARTS, namespace: ns, image, perSecond: PODS_PER_SECOND });
    }).timeout(60_000 + RESTARTS * 120_000);

    it('is uninstalled as the documents say, and leaves nothing', async () => {
      await real.block('docs/operating.md', 'main.js clean --dry-run');
      await real.block('docs/operating.md', 'main.js clean --yes', { 'clean --yes': 'clean --yes --pods restart' });
      await nothingIsLeft(world);
      await real.kubectl('delete', 'namespace', ns);
    }).timeout(300_000);
  });

  describe('with the chart', () => {
    let helm: Helm;
    let values: Readonly<Record<string, unknown>>;

    before(async () => {
      helm = await arrangeHelm(world.cluster.kubeconfig);
      values = {
        image: await real.image(),
        config: {
          placement: { mode: 'both' },
          webhook: { enabled: true },
          registries: { insecure: [world.registry.nodeHost] },
        },
      };
      await eventually('the namespace to be gone', async () => {
        return (await world.cluster.request('GET', '/api/v1/namespaces/archaware')).status === 404;
      });
    });
    after(() => helm?.remove());

    const waiting = ['--wait', '--timeout', '2m'];

    it('is installed, with the webhook on from the start', async () => {
      await helm.must(['install', ...RELEASE, CHART_PATH, '--create-namespace', ...waiting], values);
      await eventually('every webhook to have a caBundle', () => isTrusted(world));
    });

    it('passes helm test', async () => {
      expect(await helm.must(['test', ...RELEASE, '--timeout', '1m'])).to.match(/Phase:\s+Succeeded/);
    });

    const ns = 'single';
    /** Each workload was created in one mode, and wants two pods. */
    const workloads: string[] = [];
    const podsOf = async (app: string) => (await world.pods(ns, app)).filter((one) => !isGoing(one));
    const readyOf = async (app: string) => (await podsOf(app)).filter(isReady).length;

    for (const mode of ['taints', 'both', 'affinity', 'taints'] as const) {
      it(`is upgraded to ${mode}, and runs images of one architecture and of both`, async () => {
        const { config, ...rest } = values;
        const changed = { ...Object(config), placement: { mode }, webhook: { enabled: mode !== 'taints' } };
        await helm.must(['upgrade', ...RELEASE, CHART_PATH, ...waiting], { ...rest, config: changed });
        if (mode !== 'taints') await eventually('every webhook to have a caBundle', () => isTrusted(world));
        await eventually(`the taints of ${mode}`, async () => {
          const nodes = await world.list('Node', '');
          return nodes.every((node) => taints(node).length === (mode === 'affinity' ? 0 : 1));
        });
        if (workloads.includes(`${mode}-one`)) return;
        if (workloads.length === 0) await world.namespace(ns);
        for (const [name, tag] of [
          ['one', `program-${own}`],
          ['other', `index-${other}`],
          ['all', 'index-both'],
        ]) {
          workloads.push(`${mode}-${name}`);
          await world.create(deployment(ns, `${mode}-${name}`, { images: [world.image(tag ?? '')], replicas: 2 }));
        }
        for (const app of workloads) await eventually(`${app} to be ready`, async () => (await readyOf(app)) === 2);
      });
    }

    it('is uninstalled: the hook cleans what four modes have left, and touches no pod', async () => {
      const uids = async () =>
        Object.fromEntries(
          await Promise.all(workloads.map(async (app) => [app, (await podsOf(app)).map(uidOf).sort()])),
        );
      const before = await uids();
      const least = Object.fromEntries(workloads.map((app) => [app, 2]));
      let over = false;
      const uninstalling = helm.must(['uninstall', ...RELEASE, '--wait', '--timeout', '5m']).finally(() => {
        over = true;
      });
      while (!over) {
        for (const app of workloads) least[app] = Math.min(least[app] ?? 0, await readyOf(app));
      }
      await uninstalling;
      expect(await uids()).to.deep.equal(before);
      for (const [app, count] of Object.entries(least)) expect(count, app).to.equal(2);
      await nothingIsLeft(world, { keepsPods: true });
      await eventually('nothing to be left in the namespace but what every namespace has', async () => {
        const left = await real.kubectl('-n', 'archaware', 'get', 'all,configmaps,secrets,leases', '-o', 'name');
        if (left === 'configmap/kube-root-ca.crt\n') return true;
        throw new Error(left);
      });
    });
  });

  const eventually = <T>(what: string, condition: () => Promise<T | false | undefined>) =>
    eventuallyOn(world)(what, condition);
  const eventuallyEvent = (namespace: string, reason: string, note: RegExp) =>
    eventually(`an Event ${reason} like ${note}`, async () =>
      (await world.events(namespace, reason)).find((text) => note.test(text)),
    );
});
