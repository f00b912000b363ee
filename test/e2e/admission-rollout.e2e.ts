import { once } from 'node:events';
import { request } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { at } from '../../hack/cluster/json.ts';
import { freePorts } from '../../hack/cluster/ports.ts';
import { leads, type RunningController } from '../support/running.ts';
import { applyWebhook } from '../support/webhook.ts';
import { pod } from '../support/workloads.ts';
import { worldForAll } from './support/world.ts';

const SECRET = 'archaware-controller-webhook';

/** Replicas as processes, which start, become ready and end in the order in which a Deployment's rollout has it. */
describe('a rollout, on the real control plane', () => {
  const world = worldForAll();
  let ns: string;
  let count = 0;
  before(async () => {
    ns = await world.namespace('served');
  });
  afterEach(() => world.stopControllers());

  const served = (port: number, mode: string, flags: readonly string[] = []) =>
    world.run(['--webhook.enabled', '--webhook.address', `127.0.0.1:${port}`, '--placement.mode', mode, ...flags]);

  it('loses no review: replicas that end go on answering new connections until nobody calls them', async () => {
    const ports = await freePorts(20);
    await applyWebhook(world, ports[0] ?? 0);
    /** Whom a new connection may reach, oldest first. */
    const endpoints: { port: number; replica: RunningController }[] = [];
    const add = async (): Promise<void> => {
      const port = ports.pop() ?? 0;
      try {
        endpoints.push({ port, replica: await served(port, 'affinity') });
      } catch (error) {
        // A port that was free may have gone to somebody else meanwhile.
        if (!String(error).includes('EADDRINUSE') || ports.length === 0) throw error;
        await add();
      }
    };
    await add();
    await add();
    const secret = await world.get('Secret', 'archaware', SECRET);
    const [ca, path] = ['ca.crt', 'path'].map((entry) =>
      Buffer.from(String(at(secret, 'data', entry)), 'base64').toString(),
    );

    /** Sends a review over a connection of its own, as the API server does without one to reuse. */
    async function review(port: number): Promise<number> {
      const name = `reviewed-${++count}`;
      const object = pod(ns, name, { images: [world.image('arm64')] });
      const body = JSON.stringify({
        apiVersion: 'admission.k8s.io/v1',
        kind: 'AdmissionReview',
        request: {
          uid: name,
          kind: { group: '', version: 'v1', kind: 'Pod' },
          resource: { group: '', version: 'v1', resource: 'pods' },
          namespace: ns,
          operation: 'CREATE',
          object,
        },
      });
      const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
      const options = { path: `${path}?timeout=2s`, method: 'POST', agent: false, ca, headers };
      const target = { host: '127.0.0.1', port, ...options };
      // A busy machine may answer late; what counts is that a replica answers.
      const sent = request({ ...target, signal: AbortSignal.timeout(10_000) });
      sent.end(body);
      const [response] = await once(sent, 'response');
      response.resume();
      await once(response, 'end');
      return response.statusCode;
    }

    const lost: string[] = [];
    let reviews = 0;
    const end = new AbortController();
    const underWay: Promise<unknown>[] = [];
    const load = async () => {
      while (!end.signal.aborted) {
        const { port } = endpoints[++reviews % endpoints.length] ?? { port: 0 };
        const sent = review(port).then(
          (status) => status === 200 || lost.push(`${port}: ${status}`),
          (error: unknown) => lost.push(`${port}: ${error}`),
        );
        underWay.push(sent);
        await delay(1000 / 30);
      }
    };
    const loading = load();
    const ends: Promise<number | null>[] = [];
    for (let restarts = 0; restarts < 10; restarts += 1) {
      await add();
      const [old] = endpoints;
      if (old === undefined) throw new Error('there is no endpoint');
      ends.push(old.replica.stop());
      // What kube-proxy needs until it calls an address no more.
      await delay(1_000 + 100 * restarts);
      endpoints.shift();
    }
    end.abort();
    await loading;
    await Promise.all(underWay);
    expect(lost, `of ${reviews}`).to.deep.equal([]);
    expect(await Promise.all(ends)).to.deep.equal(Array(10).fill(0));
    const left = await Promise.all(endpoints.map(({ replica }) => leads(replica)));
    expect(left.filter(Boolean).length).to.be.at.most(1);
  }).timeout(180_000);
});
