import { expect } from 'chai';
import { at } from '../../hack/cluster/json.ts';
import type { RunningController } from '../support/running.ts';
import { arrangeWebhook, eventuallyTrusted, type Webhook } from '../support/webhook.ts';
import { pod } from '../support/workloads.ts';
import { admit, eventuallyPlacedAtOnce, isOnArm } from './support/placed.ts';
import { idle, mostMemory, post } from './support/stranger.ts';
import { worldForAll } from './support/world.ts';

const SECRET = 'archaware-controller-webhook';
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
  const world = worldForAll();
  let webhook: Webhook;
  let controller: RunningController;
  let ns: string;
  let count = 0;

  before(async () => {
    webhook = await arrangeWebhook(world);
    ns = await world.namespace('served');
    controller = await world.run([...webhook.flags, '--placement.mode', 'affinity'], {
      environment: { NODE_OPTIONS: '--max-old-space-size=128' },
    });
    await eventuallyTrusted(world);
    await eventuallyPlacedAtOnce(world, ns);
  });

  const secretPath = async () => {
    const secret = await world.get('Secret', 'archaware', SECRET);
    return Buffer.from(String(at(secret, 'data', 'path')), 'base64').toString();
  };
  const isReviewed = async () =>
    isOnArm(await admit(world, pod(ns, `web-${++count}`, { images: [world.image('arm64')] }), true));

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
  });

  describe('that open many connections', () => {
    it('and send half a body keep no review of the API server out', async () => {
      const from = await controller.metric('archaware_admission_reviews_total', { outcome: 'patched' });
      const head = 'POST /mutate HTTP/1.1\r\nhost: webhook\r\ncontent-type: application/json\r\n';
      const sockets = await idle(webhook.port, 2_500, `${head}content-length: 20000\r\n\r\n${'x'.repeat(15_000)}`);
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
  });
});
