import { expect } from 'chai';
import type { ApiClient } from '../../src/kube/api-client.ts';
import { type Server, startServer } from '../kube/cluster.ts';
import {
  bundleIn,
  CONFIGURATIONS,
  createWorld,
  entries,
  HOST,
  keeping,
  SECRET,
  type World,
  webhookConfiguration,
  wouldTrust,
} from './self-made.ts';

const BEGIN = Date.UTC(2030, 0, 1);
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** An authority is then valid for 30 days, and is replaced after 20. */
const LIFETIME = 3 * DAY;

describe('the rotation of self-made certificates', () => {
  let server: Server;
  let client: ApiClient;
  let world: World;
  beforeEach(async () => {
    server = await startServer();
    client = server.client;
    await client.request('create', '/api/v1/namespaces', { body: { metadata: { name: 'archaware' } } });
    await client.request('create', CONFIGURATIONS, { body: webhookConfiguration() });
    world = createWorld(client, BEGIN);
  });
  afterEach(async () => {
    await world.end();
    await server.stop();
  });

  it('breaks no connection over generations: the present and the previous bundle verify every served certificate', async () => {
    let leads: 'first' | 'second' = 'first';
    const past: unknown[] = [];
    /** Followers see the Secret as it was two steps before, so later than the callers see the bundle. */
    const replica = (name: typeof leads) =>
      world.replica({
        lifetimeMs: LIFETIME,
        mayWrite: () => leads === name,
        client: {
          ...client,
          request: (verb, path, request) =>
            verb === 'get' && path === SECRET && leads !== name && past.length > 2
              ? Promise.resolve(past.at(-2))
              : client.request(verb, path, request),
        },
      });
    const [first, second] = [await replica('first'), await replica('second')];
    for (const [source, name] of [[first, 'first'] as const, [second, 'second'] as const]) {
      await world.add((signal) =>
        keeping({
          client,
          source,
          mayWrite: () => leads === name,
          clock: world.clock,
          onProblem: (problem) => source.problems.push(problem ?? 'none'),
          signal,
        }),
      );
    }
    await world.pass(10_000);
    await world.pass(10_000);
    const authorities = new Set<string | undefined>();
    const certificates = new Set<string | undefined>();
    let widest = 0;
    let before = await bundleIn(client);
    while (world.now() < BEGIN + 23 * DAY) {
      // Each day has some checks close to each other, so that steps follow each other at different distances.
      for (const step of [8 * HOUR, 15 * HOUR, HOUR / 2, 10_000, HOUR / 2 - 10_000]) {
        past.push(await client.request('get', SECRET));
        await world.pass(step);
        const now = await bundleIn(client);
        const { 'ca.crt': kept } = await entries(client);
        for (const served of new Set([first, second].map(({ current }) => current()?.cert))) {
          for (const bundle of new Set([before, now, kept])) {
            const when = `${bundle === now ? 'now' : 'before, or kept'}, at ${new Date(world.now()).toISOString()}`;
            expect(wouldTrust(bundle, served, HOST, world.now()), when).to.equal(true);
          }
          certificates.add(served);
        }
        before = now;
        widest = Math.max(widest, now.split('BEGIN').length - 1);
      }
      authorities.add((await entries(client))['authority.crt']);
      leads = leads === 'first' ? 'second' : 'first';
    }
    expect(authorities.size).to.equal(2);
    expect(certificates.size).to.be.greaterThan(10);
    // The authority that signs, and the one before or after it.
    expect(widest).to.be.within(2, 3);
    expect([...first.problems, ...second.problems]).to.deep.equal([]);
  });

  it('waits for callers that do not know the next authority, as long as what is served is valid', async () => {
    const replica = await world.replica({ lifetimeMs: LIFETIME });
    const { 'authority.crt': authority } = await entries(client);
    // Nothing updates the bundle of the configuration, so no caller trusts the next authority.
    for (let days = 0; days < 21; days += 1) await world.pass(DAY);
    const late = await entries(client);
    expect(late['authority.crt']).not.to.equal(authority);
    const { cert, notAfter = 0 } = replica.current() ?? {};
    while (world.now() < notAfter - 8 * HOUR) await world.pass(6 * HOUR);
    expect(replica.current()?.cert).to.equal(cert);
    expect(wouldTrust(authority, cert, HOST, world.now())).to.equal(true);
    await world.pass(DAY);
    expect(wouldTrust(late['authority.crt'], replica.current()?.cert, HOST, world.now())).to.equal(true);
  });
});
