import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:tls';
import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import { listen } from '../../../src/kit/network/listen.ts';
import type { ApiClient, ApiVerb } from '../../../src/kube/api-client.ts';
import { issueServing, makeAuthority } from '../../../src/webhook/certificates/issue.ts';
import type { CertificateSource } from '../../../src/webhook/certificates/source.ts';
import { type Server, startServer } from '../../kube/cluster.ts';
import {
  CONFIGURATIONS,
  createWorld,
  entries,
  HOST,
  SECRET,
  SECRETS,
  until,
  type World,
  webhookConfiguration,
  wouldTrust,
} from '../self-made.ts';

const BEGIN = Date.UTC(2030, 0, 1);
const MINUTE = 60_000;
const DAY = 1440 * MINUTE;
const LOOK = 10_000;
const SEARCH = 2000;

describe('self-made certificates', () => {
  let server: Server;
  let client: ApiClient;
  let world: World;
  beforeEach(async () => {
    server = await startServer();
    client = server.client;
    await client.request('create', '/api/v1/namespaces', { body: { metadata: { name: 'archaware' } } });
    world = createWorld(client, BEGIN);
  });
  afterEach(async () => {
    await world.end();
    await server.stop();
  });

  /** Requests that wrote the Secret. */
  const writes = () => server.asked(SECRETS).filter((request) => !request.startsWith('GET'));
  async function damage(changes: Readonly<Record<string, string>>): Promise<void> {
    const data = Object.fromEntries(Object.entries(changes).map(([name, text]) => [name, btoa(text)]));
    await client.request('patch', SECRET, { body: { data } });
  }
  /** Certificate, key and bundle of a stranger, which belong together. */
  async function stranger(): Promise<{ cert: string; key: string; ca: string }> {
    const life = { notBefore: BEGIN, notAfter: BEGIN + DAY };
    const authority = await makeAuthority(life);
    return { ...(await issueServing(authority, { dns: [HOST], ips: [] }, life)), ca: authority.cert };
  }

  it('are accepted by a TLS client that trusts their bundle, under every name, and by no other client', async () => {
    world = createWorld(client, Date.now());
    const current = (await world.replica()).current();
    expect(current).not.to.equal(undefined);
    if (current?.ca === undefined) return;
    const listening = createServer({ cert: current.cert, key: current.key }, (socket) => socket.end('hello'));
    listening.on('tlsClientError', () => undefined);
    const port = await listen(listening, '127.0.0.1:0');
    const said = async (host: string, ca: string): Promise<string> => {
      const socket = connect({ host: '127.0.0.1', port, servername: host, ca });
      try {
        const [chunk] = await once(socket, 'data');
        return String(chunk);
      } catch (error) {
        return error instanceof Error && 'code' in error ? String(error.code) : String(error);
      } finally {
        socket.destroy();
      }
    };
    try {
      for (const host of [HOST, `${HOST}.cluster.local`, 'archaware-controller.archaware', 'localhost']) {
        expect(await said(host, current.ca), host).to.equal('hello');
      }
      expect(await said('other.archaware.svc', current.ca)).to.equal('ERR_TLS_CERT_ALTNAME_INVALID');
      expect(await said(HOST, (await stranger()).ca)).to.equal('UNABLE_TO_VERIFY_LEAF_SIGNATURE');
    } finally {
      listening.close();
    }
    const certificate = new X509Certificate(current.cert);
    for (const ip of ['127.0.0.1', '::1']) expect(certificate.checkIP(ip)).to.equal(ip);
    expect(current.notAfter).to.equal(Date.parse(certificate.validTo));
  });

  const follower = { mayWrite: () => false };
  /** Somebody configures how the webhook is called. */
  const configure = (clientConfig: JsonObject) =>
    client.request('create', CONFIGURATIONS, { body: webhookConfiguration(clientConfig) });
  const service = { name: 'archaware-controller', namespace: 'archaware', path: '/mutate' };
  const url = 'https://webhook.example.com:9443/mutate';

  it('are created by the first replica, leader or not; the others find them and write nothing', async () => {
    const first = await world.replica(follower);
    expect(first.current()).not.to.equal(undefined);
    const second = await world.replica(follower);
    const leader = await world.replica();
    await world.pass(LOOK);
    for (const { current } of [second, leader]) expect(current()).to.deep.equal(first.current());
    expect(first.current()?.path, 'in the same write').to.match(/^\/mutate\/[0-9a-f]{40}$/);
    expect(writes()).to.have.length(1);
    expect([...first.problems, ...second.problems, ...leader.problems]).to.deep.equal([]);
  });

  it('are renewed by the leader only', async () => {
    const one = await world.replica(follower);
    const before = one.current()?.cert;
    await world.pass(61 * DAY);
    expect(one.current()?.cert).to.equal(before);
    expect(writes()).to.have.length(1);
    await world.replica();
    await world.pass(LOOK);
    expect(one.current()?.cert).not.to.equal(before);
  });

  it('are left to the leader for a while if callers trust an authority already, which it may have in memory', async () => {
    await configure({ service, caBundle: btoa((await stranger()).ca) });
    const waiting = await world.replica(follower);
    for (let looks = 0; looks < 5; looks += 1) await world.pass(SEARCH);
    expect(waiting.current()).to.equal(undefined);
    expect(waiting.problems).to.have.length(1);
    expect(waiting.problems[0]).to.contain('archaware/archaware-controller-webhook has no certificate yet');
    for (let looks = 0; looks < 2; looks += 1) await world.pass(SEARCH);
    expect(waiting.current()).not.to.equal(undefined);
    expect(waiting.problems.at(-1)).to.equal('none');
  });

  it('come back from the memory of the leader, and not from a replica that starts meanwhile', async () => {
    const leader = await world.replica();
    const before = leader.current()?.cert;
    await configure({ service, caBundle: btoa(leader.current()?.ca ?? '') });
    await client.request('delete', SECRET);
    const started = await world.replica(follower);
    for (let looks = 0; looks < 6; looks += 1) await world.pass(SEARCH);
    expect(started.current()?.cert).to.equal(before);
  });

  it('stay as they are when a replica starts, and while nothing is due', async () => {
    const first = await world.replica();
    const second = await world.replica();
    for (let days = 0; days < 56; days += 7) await world.pass(7 * DAY);
    expect(second.current()).to.deep.equal(first.current());
    expect(writes()).to.have.length(1);
  });

  it('are not overwritten by a replica that lost the lease while it created them', async () => {
    const before = (await world.replica(follower)).current();
    await configure({ url });
    const answers = [true, false];
    const replica = await world.replica({ mayWrite: () => answers.shift() ?? false });
    expect(writes()).to.have.length(1);
    expect(replica.current()).to.deep.equal(before);
  });

  /** Delays the first requests of a kind until that many have arrived. */
  function meeting(verb: ApiVerb, count: number): ApiClient {
    let came = 0;
    return {
      ...client,
      async request(asked, path, options) {
        if (asked === verb && path.startsWith(SECRETS)) {
          came += 1;
          await until('the other writer is there', () => came >= count);
        }
        return client.request(asked, path, options);
      },
    };
  }

  it('are the same for two replicas that create them at once', async () => {
    const both = meeting('create', 2);
    const [one, other] = await Promise.all([
      world.replica({ client: both, ...follower }),
      world.replica({ client: both, ...follower }),
    ]);
    expect(writes().filter((request) => request.startsWith('POST'))).to.have.length(2);
    expect(one.current()).not.to.equal(undefined);
    expect(other.current()).to.deep.equal(one.current());
    expect((await entries(client))['tls.crt']).to.equal(one.current()?.cert);
    expect([...one.problems, ...other.problems]).to.deep.equal([]);
  });

  it('are the same for two replicas that both believe they lead and renew them at once', async () => {
    const both = meeting('update', 2);
    const [one, other] = [await world.replica({ client: both }), await world.replica({ client: both })];
    const before = one.current();
    await world.pass(61 * DAY);
    expect(writes().filter((request) => request.startsWith('PUT'))).to.have.length(2);
    expect(one.current()?.cert).not.to.equal(before?.cert);
    expect(other.current()).to.deep.equal(one.current());
    expect((await entries(client))['tls.crt']).to.equal(one.current()?.cert);
  });

  it('are issued again by the same authority when the webhook is called by another name', async () => {
    const replica = await world.replica();
    const before = replica.current();
    await configure({ url });
    await world.pass(LOOK);
    const after = replica.current();
    expect(after?.ca).to.equal(before?.ca);
    expect(wouldTrust(before?.ca, after?.cert, 'webhook.example.com', world.now())).to.equal(true);
    await world.pass(LOOK);
    expect(writes()).to.have.length(2);
  });

  it('leave what others keep in the Secret', async () => {
    const metadata = { name: 'archaware-controller-webhook', labels: { team: 'a' } };
    const data = { 'tls.crt': '', 'tls.key': '', note: btoa('mine') };
    await client.request('create', SECRETS, { body: { type: 'kubernetes.io/tls', metadata, data } });
    const replica = await world.replica();
    expect(replica.current()).not.to.equal(undefined);
    expect(replica.problems).to.deep.equal([]);
    const secret = await client.request('get', SECRET);
    expect(secret).to.have.nested.property('metadata.labels.team', 'a');
    expect(secret).to.have.property('type', 'kubernetes.io/tls');
    expect((await entries(client)).note).to.equal('mine');
  });

  /** What is written over entries of the Secret: a text, or what a stranger has. */
  type Damage = Readonly<Record<string, 'hello' | 'cert' | 'key' | 'ca'>>;
  const damages: [what: string, problem: string, changes: Damage][] = [
    ['a certificate that is none', 'tls.crt contains no PEM', { 'tls.crt': 'hello' }],
    ['a key that is none', 'tls.key cannot be read', { 'tls.key': 'hello' }],
    ['a key of another', 'tls.key does not match tls.crt', { 'tls.key': 'key' }],
    ['a bundle that is none', 'ca.crt contains no PEM', { 'ca.crt': 'hello' }],
    ['a bundle of another', 'ca.crt does not verify', { 'ca.crt': 'ca' }],
    ['a pair of another', 'ca.crt does not verify tls.crt', { 'tls.crt': 'cert', 'tls.key': 'key' }],
    ['a leaf for the CA', 'authority.crt is not a CA certificate', { 'authority.crt': 'cert', 'authority.key': 'key' }],
  ];
  for (const [what, problem, changes] of damages) {
    it(`with ${what}: the leader reports it and replaces it, and no replica serves a certificate that clients do not trust`, async () => {
      const leader = await world.replica();
      const follower = await world.replica({ mayWrite: () => false });
      const written = await entries(client);
      const texts = { ...(await stranger()), hello: 'hello' };
      await damage(Object.fromEntries(Object.entries(changes).map(([name, text]) => [name, texts[text]])));
      for (let look = 0; look < 2; look += 1) {
        const before = leader.current();
        await world.pass(LOOK);
        for (const { current } of [leader, follower]) {
          expect(wouldTrust(before?.ca, current()?.cert, HOST, world.now())).to.equal(true);
        }
      }
      expect(leader.problems[0]).to.contain(problem).and.not.contain('PRIVATE');
      expect(leader.problems.at(-1)).to.equal('none');
      expect(follower.current()).to.deep.equal(leader.current());
      // What was damaged is back. A bundle keeps what others put into it.
      expect({ ...(await entries(client)), 'ca.crt': '' }).to.deep.equal({ ...written, 'ca.crt': '' });
      const replica = await world.replica({ mayWrite: () => false });
      expect(replica.current()).to.deep.equal(leader.current());
      expect(replica.problems).to.deep.equal([]);
    });
  }

  it('come back as they were, however often somebody deletes the Secret, and whoever leads then', async () => {
    let leads = 'one';
    const leader = await world.replica({ mayWrite: () => leads === 'one' });
    await world.replica({ mayWrite: () => leads === 'other' });
    await world.pass(LOOK);
    const before = await entries(client);
    for (let losses = 0; losses < 9; losses += 1) {
      await client.request('delete', SECRET);
      await world.pass(LOOK);
      expect(await entries(client), String(losses)).to.deep.equal(before);
      leads = leads === 'one' ? 'other' : 'one';
    }
    expect(leader.current()?.cert).to.equal(before['tls.crt']);
    await world.pass(LOOK);
    expect(leader.problems).to.deep.equal([]);
  });

  it('keep what verifies them in a bundle that others fill', async () => {
    const leader = await world.replica();
    const before = await entries(client);
    const others = await Promise.all(Array.from({ length: 9 }, async () => (await stranger()).ca));
    await damage({ 'ca.crt': [...others, before['ca.crt']].join(''), 'authority.crt': '', 'authority.key': '' });
    await world.pass(LOOK);
    const after = await entries(client);
    expect(after['tls.crt']).to.equal(before['tls.crt']);
    expect(wouldTrust(after['ca.crt'], after['tls.crt'], HOST, world.now())).to.equal(true);
    expect(after['ca.crt']?.split('BEGIN')).to.have.lengthOf(9);
    expect(leader.current()?.ca).to.equal(after['ca.crt']);
  });

  it('are replaced as a whole if everything has expired, which is reported', async () => {
    const first = createWorld(client, BEGIN - 1000 * DAY);
    const old = (await first.replica()).current();
    await first.end();
    const follower = await world.replica({ mayWrite: () => false });
    expect(follower.current()).to.deep.equal(old);
    expect(follower.problems[0]).to.contain('tls.crt expired at 2027');
    const leader = await world.replica();
    expect(leader.problems[0]).to.contain('tls.crt expired at 2027');
    expect(wouldTrust(leader.current()?.ca, leader.current()?.cert, HOST, BEGIN)).to.equal(true);
    await world.pass(LOOK);
    expect(follower.current()).to.deep.equal(leader.current());
    expect([leader.problems.at(-1), follower.problems.at(-1)]).to.deep.equal(['none', 'none']);
  });

  it('are still served while the API server does not answer, which is reported if it lasts, or when they expire', async () => {
    let isDown = false;
    const failing: ApiClient = {
      ...client,
      request: (...request) => (isDown ? Promise.reject(new Error('no route')) : client.request(...request)),
    };
    const replica = await world.replica({ client: failing });
    const before = replica.current();
    isDown = true;
    await world.pass(LOOK);
    expect(replica.problems).to.deep.equal([]);
    for (let looks = 0; looks < 4; looks += 1) await world.pass(LOOK);
    expect(replica.problems).to.have.length(1);
    expect(replica.problems[0]).to.contain('no route');
    await world.pass(91 * DAY);
    expect(replica.problems.at(-1)).to.contain('tls.crt expired at 2030');
    expect(replica.current()).to.equal(before);
    isDown = false;
    await world.pass(LOOK);
    await world.pass(LOOK);
    expect(replica.problems.at(-1)).to.equal('none');
    expect(replica.current()?.cert).not.to.equal(before?.cert);
  });

  it('have their keys in the Secret only', async () => {
    const { current } = await world.replica();
    const names = Object.keys(await entries(client)).sort();
    expect(names.join(' ')).to.equal('authority.crt authority.key ca.crt path tls.crt tls.key');
    expect([current()?.cert, current()?.ca].join()).not.to.contain('PRIVATE KEY');
  });

  describe('and the path of the webhook', () => {
    const pathOf = (source: CertificateSource) => source.current()?.path;
    const remove = (...names: string[]) =>
      client.request('patch', SECRET, { body: { data: Object.fromEntries(names.map((name) => [name, null])) } });

    it('is added by the leader to a Secret without it; a follower waits for it', async () => {
      const first = await world.replica(follower);
      const certificate = first.current()?.cert;
      await remove('path');
      const late = await world.replica(follower);
      expect([late.current()?.cert, pathOf(late)]).to.deep.equal([certificate, undefined]);
      const leader = await world.replica();
      await world.pass(LOOK);
      expect(leader.current()?.cert).to.equal(certificate);
      expect(pathOf(leader)).to.match(/^\/mutate\//);
      for (const source of [first, late]) expect(pathOf(source)).to.deep.equal(pathOf(leader));
    });

    it('is restored if somebody deletes the Secret or damages it', async () => {
      const leader = await world.replica();
      const before = pathOf(leader);
      await client.request('delete', SECRET);
      await world.pass(LOOK);
      expect((await entries(client)).path).to.equal(before);
      for (const path of ['', '/mutate', '/mutate/../x', '/', `/mutate/${'A'.repeat(40)}`]) {
        await damage({ path });
        await world.pass(LOOK);
        expect([(await entries(client)).path, pathOf(leader)], path).to.deep.equal([before, before]);
      }
    });

    it('does not prevent the certificate from being served if it cannot be added', async () => {
      await world.replica(follower);
      await remove('path');
      const request: ApiClient['request'] = (verb, path, options) =>
        verb === 'update' ? Promise.reject(new Error('forbidden')) : client.request(verb, path, options);
      const leader = await world.replica({ client: { ...client, request } });
      expect(leader.current()?.cert).to.be.a('string');
      for (let looks = 0; looks < 4; looks += 1) await world.pass(LOOK);
      expect(leader.problems.join()).to.match(/cannot be read or renewed: forbidden/);
    });
  });
});
