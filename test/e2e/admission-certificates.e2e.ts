import { once } from 'node:events';
import { connect } from 'node:tls';
import { expect } from 'chai';
import { type Authority, createAuthority, type KeyPair } from '../../hack/cluster/certificates.ts';
import { at, listAt } from '../../hack/cluster/json.ts';
import { uidOf } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { arrangeWebhook, eventuallyTrusted, WEBHOOKS, type Webhook } from '../support/webhook.ts';
import { pod } from '../support/workloads.ts';
import { admit, eventuallyPlacedAtOnce, isOnArm } from './support/placed.ts';
import { arrange, type Places } from './support/places.ts';
import { worldForAll } from './support/world.ts';

const SECRET = 'archaware-controller-webhook';

/** The fingerprint of the certificate that somebody serves with on a port. */
async function served(port: number): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  try {
    await once(socket, 'secureConnect');
    return socket.getPeerCertificate().fingerprint256;
  } finally {
    socket.destroy();
  }
}

describe("the webhook's certificates, on the real control plane", () => {
  const world = worldForAll();
  let places: Places;
  let webhook: Webhook;
  let ns: string;
  let count = 0;

  before(async () => {
    places = await arrange(world);
    webhook = await arrangeWebhook(world);
    ns = await world.namespace('served');
  });
  afterEach(() => world.stopControllers());

  async function run(flags: readonly string[], port = webhook.port): Promise<RunningController> {
    const address = ['--webhook.enabled', '--webhook.address', `127.0.0.1:${port}`];
    return world.run([...address, '--placement.mode', 'affinity', '--leaderElection.leaseDuration', '3s', ...flags]);
  }
  const bundles = async () => {
    return listAt(await world.get(WEBHOOKS), 'webhooks').map((each) =>
      Buffer.from(String(at(each, 'clientConfig', 'caBundle') ?? ''), 'base64').toString(),
    );
  };
  const reviews = (controller: RunningController, outcome: string) =>
    controller.metric('archaware_admission_reviews_total', { outcome });

  /** Makes the image known and the API server call the webhook: waits for a pod that is placed at once. */
  async function warmUp(): Promise<void> {
    await eventuallyTrusted(world);
    await eventuallyPlacedAtOnce(world, ns);
  }

  /** Makes the API server call the webhook by this name, over new connections. */
  async function callBy(host: 'localhost' | '127.0.0.1'): Promise<void> {
    const patch = listAt(await world.get(WEBHOOKS), 'webhooks').map((each, index) => {
      const { pathname } = new URL(String(at(each, 'clientConfig', 'url')));
      const url = `https://${host}:${webhook.port}${pathname}`;
      return { op: 'replace', path: `/webhooks/${index}/clientConfig/url`, value: url };
    });
    await world.patch(WEBHOOKS, patch);
  }

  /** Creates pods, eight at a time and at least so many, until `enough`. Returns how many, and how many were not placed at once. */
  async function load(least: number, enough: () => boolean): Promise<{ created: number; missed: number }> {
    let [created, missed] = [0, 0];
    const work = async () => {
      while (created < least || !enough()) {
        const name = `load-${++count}`;
        created += 1;
        const found = await admit(world, pod(ns, name, { images: [world.image('arm64')] }));
        if (!isOnArm(found)) missed += 1;
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

  describe('of a directory', () => {
    let authority: Authority;
    const mount = (pair: KeyPair, ca = authority.certificate) =>
      places.mount('certificates', { 'tls.crt': pair.certificate, 'tls.key': pair.key, 'ca.crt': ca });
    const issue = (by = authority, notAfter?: Date) => by.issue('webhook', ['127.0.0.1'], notAfter);
    const serve = async (pair: KeyPair) => run(['--webhook.certificates', await mount(pair)]);

    beforeEach(async () => {
      authority = createAuthority('operator');
      // As if the configuration was applied again: authorities of earlier tests are no longer trusted.
      const paths = listAt(await world.get(WEBHOOKS), 'webhooks').map(
        (_, index) => `/webhooks/${index}/clientConfig/caBundle`,
      );
      await world.cluster.request(
        'PATCH',
        WEBHOOKS,
        paths.map((path) => ({ op: 'remove', path })),
      );
    });

    it('are exchanged under load, their authority too, without one review that fails', async () => {
      const controller = await serve(issue());
      await warmUp();
      const next = createAuthority('the next one');
      const [first, renewed, last] = [await served(webhook.port), issue(), issue(next)];
      const both = `${next.certificate}${authority.certificate}`;
      const patched = await reviews(controller, 'patched');
      let isOver = false;
      const exchange = async () => {
        try {
          await mount(renewed);
          await world.eventually('the renewed one', async () => (await served(webhook.port)) !== first);
          const second = await served(webhook.port);
          // Another authority is to be trusted before anything is signed by it.
          await mount(renewed, both);
          await world.eventually('both to be trusted', async () =>
            (await bundles()).every((bundle) => bundle === both),
          );
          await mount(last, both);
          await world.eventually('the last one', async () => (await served(webhook.port)) !== second);
        } finally {
          isOver = true;
        }
      };
      const [{ created, missed }] = await Promise.all([load(100, () => isOver), exchange()]);
      expect(missed).to.equal(0);
      expect((await reviews(controller, 'patched')) - patched).to.equal(created);
      expect(await reviews(controller, 'error')).to.equal(0);
      expect((await load(20, () => true)).missed).to.equal(0);
    });
  });
});
