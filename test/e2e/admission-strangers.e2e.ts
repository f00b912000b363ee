import { expect } from 'chai';
import { expectSuccess } from '../../hack/cluster/client.ts';
import { at, listAt } from '../../hack/cluster/json.ts';
import type { RunningController } from '../support/running.ts';
import { arrangeWebhook, eventuallyTrusted, type Webhook } from '../support/webhook.ts';
import { patching, startWebhookServer, type WebhookServer } from '../support/webhook-server.ts';
import { pod } from '../support/workloads.ts';
import { pathOf } from '../support/world.ts';
import { admit, affinity, gates, MANAGED, onArch, required } from './support/placed.ts';
import { idle, mostMemory, post, reviewOf } from './support/stranger.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const CONFIGURATION = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archaware-controller';
const SECRET = 'archaware-controller-webhook';
const requires = (...values: string[]) => JSON.stringify({ nodeAffinity: required([onArch(...values)]) });
const ON_ARM = requires('arm64');
/** What the manifests give the process. */
const MEMORY_LIMIT_MIB = 256;
const SIZE = 7 * 1024 * 1024 - 100;

/** Bodies as large as they may be, and one that is larger, whose values would take many times that in memory. */
const BOMBS: readonly [what: string, body: string][] = [
  ['more than there may be', `[${'{},'.repeat(SIZE / 2)}{}]`],
  ['objects in a list', `[${'{},'.repeat(SIZE / 3 - 2)}{}]`],
  ['lists in a list', `[${'[],'.repeat(SIZE / 3 - 2)}[]]`],
  ['lists in lists', '['.repeat(SIZE / 2) + ']'.repeat(SIZE / 2)],
  ['objects in an object', `{"a":[${'{},'.repeat(SIZE / 3 - 6)}{}]}`],
  ['lists in an object', `{"a":[${'[],'.repeat(SIZE / 3 - 6)}[]]}`],
  ['objects in objects', `${'{"a":'.repeat(SIZE / 6)}1${'}'.repeat(SIZE / 6)}`],
  ['names', `{${Array.from({ length: 500_000 }, (_, index) => `"k${index}":{}`).join()}}`],
  ['numbers', `{"a":[${'1,'.repeat(SIZE / 2 - 6)}1]}`],
  ['names within the bounds', `{${Array.from({ length: 99_000 }, (_, index) => `"k${index}":{}`).join()}}`],
  ['values within the bounds', `{"a":[${'{},'.repeat(99_000)}{}],"b":"${'x'.repeat(SIZE - 700_000)}"}`],
];

describe('clients that are not the API server, on the real control plane', () => {
  let world: LiveWorld;
  let webhook: Webhook;
  let controller: RunningController;
  let ns: string;
  let count = 0;

  before(async () => {
    world = await startWorld();
    webhook = await arrangeWebhook(world);
    ns = await world.namespace('served');
    controller = await world.run([...webhook.flags, '--placement.mode', 'affinity'], {
      environment: { NODE_OPTIONS: '--max-old-space-size=128' },
    });
    await eventuallyTrusted(world);
    await world.eventually('the image to be known', async () => {
      const found = await admit(world, pod(ns, `warm-${++count}`, { images: [world.image('arm64')] }));
      return JSON.stringify(affinity(found)) === ON_ARM;
    });
    // Known from here on.
    await world.create(pod(ns, 'multi', { images: [world.image('multi')] }));
    await world.eventually('it to be released', async () => gates(await world.get('Pod', ns, 'multi')).length === 0);
  });
  after(() => world?.stop());

  const secretPath = async () => {
    const secret = await world.get('Secret', 'archaware', SECRET);
    return Buffer.from(String(at(secret, 'data', 'path')), 'base64').toString();
  };
  const called = async () => {
    const { body } = await world.cluster.request('GET', CONFIGURATION);
    return listAt(body, 'webhooks').map((each) => String(at(each, 'clientConfig', 'url')));
  };
  const review = () => admit(world, pod(ns, `web-${++count}`, { images: [world.image('arm64')] }), true);
  const isReviewed = async () => JSON.stringify(affinity(await review())) === ON_ARM;
  const ordinary = () => reviewOf(pod(ns, 'stranger', { images: [world.image('arm64')] }), ns);

  describe('at other paths', () => {
    it('get 404: the API server calls the one in the Secret', async () => {
      const path = await secretPath();
      expect(path).to.match(/^\/mutate\/[0-9a-f]{40}$/);
      expect(await called()).to.deep.equal(Array(3).fill(`https://127.0.0.1:${webhook.port}${path}`));
      expect(await isReviewed()).to.equal(true);
      expect(await post(webhook.port, path, ordinary())).to.equal(200);
      // The one that the manifest names, which is none, is answered for a while.
      await world.eventually('the root to be closed', async () => (await post(webhook.port, '/', ordinary())) === 404);
      for (const wrong of ['/mutate', '/mutate/', `${path}0`, `${path}/`, path.slice(0, -1), path.toUpperCase()]) {
        expect(await post(webhook.port, wrong, ordinary()), wrong).to.equal(404);
      }
    }).timeout(180_000);

    it('find it closed again within seconds after somebody has changed it, bundle included', async () => {
      const before = await called();
      const patch = [0, 1].flatMap((index) => [
        {
          op: 'replace',
          path: `/webhooks/${index}/clientConfig/url`,
          value: `https://127.0.0.1:${webhook.port}/mutate`,
        },
        { op: 'remove', path: `/webhooks/${index}/clientConfig/caBundle` },
      ]);
      expectSuccess('the patch', await world.cluster.request('PATCH', CONFIGURATION, patch));
      await world.eventually('it to be as before', async () => (await called()).join() === before.join());
      await eventuallyTrusted(world);
      await world.eventually('reviews', isReviewed);
    });
  });

  describe('that send what costs memory', () => {
    it('are refused, twenty at a time, and ordinary reviews are answered meanwhile', async () => {
      const path = await secretPath();
      const statuses = new Map<string, Set<number | undefined>>();
      for (const [what, body] of BOMBS) {
        const bytes = Buffer.from(body);
        const sent = Array.from({ length: 20 }, () => post(webhook.port, path, bytes));
        expect(await isReviewed(), what).to.equal(true);
        statuses.set(what, new Set(await Promise.all(sent)));
      }
      for (const [what, seen] of statuses) {
        expect(seen.has(200), what).to.equal(false);
        expect(
          [...seen].every((status) => [400, 413, 503].includes(Number(status))),
          `${what}: ${[...seen]}`,
        ).to.equal(true);
      }
      expect(await isReviewed()).to.equal(true);
      expect(await mostMemory(controller.pid)).to.be.below(MEMORY_LIMIT_MIB);
    }).timeout(180_000);

    it('by way of the API server: the largest objects that it lets through', async () => {
      const lists: readonly [field: string, list: readonly unknown[]][] = [
        ['tolerations', Array(1_000_000).fill({})],
        ['imagePullSecrets', Array(1_000_000).fill({})],
        ['tolerations', Array(60_000).fill({ key: 'example.com/x', operator: 'Exists' })],
      ];
      for (const [field, list] of lists) {
        const object = pod(ns, `big-${++count}`, { images: [world.image('arm64')], spec: { [field]: list } });
        await world.cluster.request('POST', pathOf('Pod', ns), object);
        expect(await isReviewed(), field).to.equal(true);
      }
      expect(await mostMemory(controller.pid)).to.be.below(MEMORY_LIMIT_MIB);
    }).timeout(180_000);
  });

  describe('that open many connections', () => {
    const HEAD = 'host: webhook\r\ncontent-type: application/json\r\n';
    const rows: readonly [what: string, text: () => string][] = [
      ['and send nothing', () => ''],
      ['and send half a head', () => `POST /mutate HTTP/1.1\r\n${HEAD}`],
      [
        'and send half a body',
        () => `POST /mutate HTTP/1.1\r\n${HEAD}content-length: 20000\r\n\r\n${'x'.repeat(15_000)}`,
      ],
    ];
    for (const [what, text] of rows) {
      it(`${what} keep no review of the API server out`, async () => {
        const from = await controller.metric('archaware_admission_reviews_total', { outcome: 'patched' });
        const sockets = await idle(webhook.port, 2_500, text());
        try {
          // The API server opens a connection of its own where it has none to reuse.
          expect(await Promise.all(Array.from({ length: 20 }, isReviewed))).to.deep.equal(Array(20).fill(true));
          expect(sockets.filter(({ closed }) => !closed).length).to.be.at.most(130);
        } finally {
          for (const socket of sockets) socket.destroy();
        }
        const patched = await controller.metric('archaware_admission_reviews_total', { outcome: 'patched' });
        expect(patched - from).to.equal(20);
        expect(await mostMemory(controller.pid)).to.be.below(MEMORY_LIMIT_MIB);
      }).timeout(180_000);
    }
  });

  describe("that claim another webhook's requirement as archaware's own", () => {
    let policy: WebhookServer;
    const claim = { required: [{ term: 0, key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] }] };
    const claiming = (annotations: Record<string, string>) => {
      const object = pod(ns, `claim-${++count}`, { images: [world.image('multi')], labels: { pinned: 'yes' } });
      return { ...object, metadata: { ...object.metadata, annotations } };
    };

    before(async () => {
      policy = await startWebhookServer();
      policy.answer('/pin', ({ object }) => {
        if (at(object, 'spec', 'affinity') !== undefined) return { allowed: true };
        return patching([{ op: 'add', path: '/spec/affinity', value: { nodeAffinity: required([onArch('amd64')]) } }]);
      });
      const webhooks = [policy.webhook('pin', { objectSelector: { matchLabels: { pinned: 'yes' } } })];
      const kind = { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'MutatingWebhookConfiguration' };
      // Its name comes first, and so does its answer.
      await world.cluster.apply(JSON.stringify({ ...kind, metadata: { name: 'aa-pin' }, webhooks }));
      await world.eventually('it to pin', async () => {
        const found = await admit(world, claiming({}), true);
        return JSON.stringify(affinity(found)) === requires('amd64');
      });
    });
    after(async () => {
      await world.cluster.kubectl(['delete', 'mutatingwebhookconfiguration', 'aa-pin']);
      await policy?.stop();
    });

    it('take nothing away from it', async () => {
      const signed = await admit(world, pod(ns, `signed-${++count}`, { images: [world.image('arm64')] }), true);
      const record = String(at(signed, 'metadata', 'annotations', MANAGED));
      const { signature } = JSON.parse(record);
      expect(signature).to.be.a('string');
      for (const text of [JSON.stringify(claim), JSON.stringify({ ...claim, signature }), record]) {
        const found = await admit(world, claiming({ [MANAGED]: text }), true);
        expect(JSON.stringify(affinity(found)), text).to.equal(requires('amd64'));
      }
    });
  });
});
