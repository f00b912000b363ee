import { expect } from 'chai';
import { expectSuccess } from '../../hack/cluster/client.ts';
import { at, listAt } from '../../hack/cluster/json.ts';
import { uidOf } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { arrangeWebhook, eventuallyTrusted, type Webhook } from '../support/webhook.ts';
import { pod } from '../support/workloads.ts';
import { admit, affinity, onArch, required } from './support/placed.ts';
import { arrange, type Places } from './support/places.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const CONFIGURATION = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archaware-controller';
const SECRET = 'archaware-controller-webhook';
const ON_ARM = JSON.stringify({ nodeAffinity: required([onArch('arm64')]) });

describe("the webhook's certificates, on the real control plane", () => {
  let world: LiveWorld;
  let places: Places;
  let webhook: Webhook;
  let ns: string;
  let count = 0;

  before(async () => {
    world = await startWorld();
    places = await arrange(world);
    webhook = await arrangeWebhook(world);
    ns = await world.namespace('served');
  });
  after(async () => {
    await world?.stop();
    await places?.remove();
  });
  afterEach(() => world.stopControllers());

  async function run(flags: readonly string[], port = webhook.port): Promise<RunningController> {
    const address = ['--webhook.enabled', '--webhook.address', `127.0.0.1:${port}`];
    return world.run([...address, '--placement.mode', 'affinity', '--leaderElection.leaseDuration', '3s', ...flags]);
  }
  const reviews = (controller: RunningController, outcome: string) =>
    controller.metric('archaware_admission_reviews_total', { outcome });

  /** Makes the image known and the API server call the webhook: waits for a pod that is placed at once. */
  async function warmUp(): Promise<void> {
    await eventuallyTrusted(world);
    await world.eventually('a pod to be placed at once', async () => {
      const found = await admit(world, pod(ns, `warm-${++count}`, { images: [world.image('arm64')] }));
      return JSON.stringify(affinity(found)) === ON_ARM;
    });
  }

  /** Makes the API server call the webhook by this name, over new connections. */
  async function callBy(host: 'localhost' | '127.0.0.1'): Promise<void> {
    const { body } = await world.cluster.request('GET', CONFIGURATION);
    const patch = listAt(body, 'webhooks').map((each, index) => {
      const { pathname } = new URL(String(at(each, 'clientConfig', 'url')));
      const url = `https://${host}:${webhook.port}${pathname}`;
      return { op: 'replace', path: `/webhooks/${index}/clientConfig/url`, value: url };
    });
    expectSuccess('the patch', await world.cluster.request('PATCH', CONFIGURATION, patch));
  }

  /** Creates pods, eight at a time and at least so many, until `enough`. Returns how many, and how many were not placed at once. */
  async function load(least: number, enough: () => boolean): Promise<{ created: number; missed: number }> {
    let [created, missed] = [0, 0];
    const work = async () => {
      while (created < least || !enough()) {
        const name = `load-${++count}`;
        created += 1;
        const found = await admit(world, pod(ns, name, { images: [world.image('arm64')] }));
        if (JSON.stringify(affinity(found)) !== ON_ARM) missed += 1;
      }
    };
    await Promise.all(Array.from({ length: 8 }, work));
    return { created, missed };
  }

  describe('that we make ourselves', () => {
    it('are made again when somebody deletes the Secret, without one review that fails', async () => {
      const controller = await run([]);
      await warmUp();
      const before = await world.get('Secret', 'archaware', SECRET);
      const patched = await reviews(controller, 'patched');
      await world.remove('Secret', 'archaware', SECRET);
      let isBack = false;
      const back = world
        .eventually('the Secret to be back', async () => {
          const found = await world.get('Secret', 'archaware', SECRET).catch(() => undefined);
          return found !== undefined && uidOf(found) !== uidOf(before);
        })
        .finally(() => {
          isBack = true;
        });
      const [first] = await Promise.all([load(50, () => isBack), back]);
      // New connections, too: what is served now is still what the API server trusts.
      await callBy('localhost');
      const second = await load(50, () => true);
      await callBy('127.0.0.1');
      expect(first.missed + second.missed).to.equal(0);
      expect((await reviews(controller, 'patched')) - patched).to.equal(first.created + second.created);
      expect(await reviews(controller, 'error')).to.equal(0);
      await warmUp();
    });
  });
});
