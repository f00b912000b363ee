import { once } from 'node:events';
import { Agent, type RequestOptions } from 'node:https';
import { connect as connectPlain } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { expect } from 'chai';
import { RequestError } from '../../src/webhook/body.ts';
import { until } from '../oci/server.ts';
import { type AdmissionWorld, PATH, REVIEW, startAdmissionWorld, textOf } from './admission-world.ts';

const HEAD = `POST ${PATH} HTTP/1.1\r\nhost: webhook\r\ncontent-type: application/json\r\n`;

describe('the admission server', () => {
  let world: AdmissionWorld;
  const start = async (limits = {}) => {
    world = await startAdmissionWorld({ limits });
  };
  afterEach(() => world.stop());
  /** Sends this over a connection of its own; returns the beginning of the answer. */
  const firstOf = async (sent: string): Promise<string> => {
    const socket = await world.open();
    socket.write(sent);
    return String((await once(socket, 'data'))[0]);
  };

  const mediaTypes = ['application/json', 'application/json; charset=utf-8', 'Application/JSON;charset=UTF-8'];
  for (const mediaType of mediaTypes) {
    it(`hands a review of ${mediaType} on, answers with its result and counts it`, async () => {
      await start();
      const bodies: unknown[] = [];
      world.review = (body) => {
        bodies.push(body);
        const answer = { kind: 'AdmissionReview', response: { uid: 'u1', allowed: true } };
        return { outcome: 'gated', text: JSON.stringify(answer) };
      };
      const answered = await world.ask(REVIEW, { headers: { 'content-type': mediaType } });
      expect(answered).to.deep.include({
        status: 200,
        body: { kind: 'AdmissionReview', response: { uid: 'u1', allowed: true } },
      });
      expect(answered.headers['content-type']).to.equal('application/json');
      expect(bodies).to.deep.equal([REVIEW]);
      expect(world.outcomes).to.deep.equal(['gated']);
    });
  }

  it('keeps an idle connection for longer than the API server does', async () => {
    await start();
    const { headers } = await world.ask(REVIEW);
    expect(Number(/timeout=(\d+)/.exec(String(headers['keep-alive']))?.[1])).to.be.above(90);
  });

  it('accepts an object and its previous version of 3 MiB each', async () => {
    await start();
    const object = 'x'.repeat(3 * 1024 * 1024);
    const answered = await world.ask({ ...REVIEW, request: { uid: 'u1', object, oldObject: object } });
    expect(answered.status).to.equal(200);
  });

  const refused: [what: string, body: string, options: RequestOptions, status: number][] = [
    ['another path', '{}', { path: '/' }, 404],
    ['the path of earlier versions', '{}', { path: '/mutate' }, 404],
    ['another method at another path', '', { path: '/mutate', method: 'GET' }, 404],
    ['a path below', '{}', { path: `${PATH}/pods` }, 404],
    ['another method', '', { method: 'GET' }, 405],
    ['a body by another method', '{}', { method: 'PUT' }, 405],
    ['another content type', '{}', { headers: { 'content-type': 'application/yaml' } }, 415],
    ['a content type that begins alike', '{}', { headers: { 'content-type': 'application/json-patch+json' } }, 415],
    ['no content type', '{}', { headers: { 'content-type': '' } }, 415],
    ['a body that is no JSON', '{"a":', {}, 400],
    ['no body', '', {}, 400],
    ['a body that is not an object', '[]', {}, 400],
    ['a body over the limit', `{"a":"${'x'.repeat(9 * 1024 * 1024)}"}`, {}, 413],
    ['a length over the limit', '{}', { headers: { 'content-length': '99999999999' } }, 413],
  ];
  for (const [what, body, options, status] of refused) {
    it(`refuses ${what} with ${status} and says why`, async () => {
      await start();
      const answered = await world.ask(body, options);
      expect(answered.status).to.equal(status);
      expect(answered.body).to.have.all.keys('error');
      expect(answered.headers.allow).to.equal(status === 405 ? 'POST' : undefined);
      expect(world.outcomes).to.deep.equal(['error']);
      expect((await world.ask(REVIEW)).status).to.equal(200);
    });
  }

  it('answers a request to another path before its body arrives, and reads only a little of the body', async () => {
    await start();
    const socket = await world.open();
    socket.write('POST /mutate HTTP/1.1\r\nhost: webhook\r\ncontent-type: application/json\r\n');
    socket.write(`content-length: 100000000\r\n\r\n{"a":"`);
    const [answered] = await once(socket, 'data');
    expect(String(answered)).to.match(/^HTTP\/1\.1 404 /);
    socket.write('x'.repeat(1024 * 1024));
    await until(() => socket.closed);
    expect(world.outcomes).to.deep.equal(['error']);
  });

  it('does not request the body for another path', async () => {
    await start();
    const head = 'POST / HTTP/1.1\r\nhost: webhook\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n';
    expect(await firstOf(head)).to.match(/^HTTP\/1\.1 404 /);
  });

  it('refuses a body with too many values, or nested too deep, before it is complete', async () => {
    await start();
    for (const body of [`{"a":[${'{},'.repeat(200_000)}`, '{"a":'.repeat(100)]) {
      const answered = await firstOf(`${HEAD}content-length: 7000000\r\n\r\n${body}`);
      expect(answered).to.match(/^HTTP\/1\.1 413 .*the body (?:has more than|is nested)/s);
    }
    expect((await world.ask(REVIEW)).status).to.equal(200);
  });

  it('closes only connections without a request to the right path, if there are too many', async () => {
    await start({ connections: { all: 10, unproven: 3 } });
    const known = await world.open();
    known.write(`${HEAD}content-length: 2\r\n\r\n{}`);
    await once(known, 'data');
    const strangers: TLSSocket[] = [];
    for (let opened = 0; opened < 6; opened += 1) {
      const stranger = await world.open();
      stranger.resume().write('POST /mutate HTTP/1.1\r\nhost: webhook\r\n');
      strangers.push(stranger);
    }
    await until(() => strangers.filter(({ closed }) => closed).length === 3);
    expect(strangers.map(({ closed }) => closed)).to.deep.equal([true, true, true, false, false, false]);
    known.write(`${HEAD}content-length: 2\r\n\r\n{}`);
    const [answered] = await once(known, 'data');
    expect(String(answered)).to.match(/^HTTP\/1\.1 200 /);
    expect((await world.ask(REVIEW)).status).to.equal(200);
  });

  it('refuses a body of unknown length as soon as it is over the limit', async () => {
    await start({ size: 100 });
    const answered = await firstOf(`${HEAD}transfer-encoding: chunked\r\n\r\nff\r\n${'x'.repeat(255)}\r\n`);
    expect(answered).to.match(/^HTTP\/1\.1 413 .*\{"error":"[^"]+"\}$/s);
    expect(world.outcomes).to.deep.equal(['error']);
  });

  it('refuses bodies that need too much memory together', async () => {
    await start({ total: 1000 });
    const other = await world.open();
    other.write(`${HEAD}content-length: 900\r\n\r\n{`);
    await until(async () => (await world.ask('{}'.padEnd(200))).status === 503);
    other.destroy();
    await until(async () => (await world.ask(REVIEW)).status === 200);
  });

  const broken: [what: string, sent: string, status: number][] = [
    ['a body that is shorter than it says', `${HEAD}content-length: 100\r\n\r\n{}`, 408],
    ['a head that does not end', HEAD, 408],
    ['a chunk that is none', `${HEAD}transfer-encoding: chunked\r\n\r\nnothing\r\n`, 400],
    ['two lengths', `${HEAD}content-length: 2\r\ncontent-length: 3\r\n\r\n{}`, 400],
    ['what is no HTTP', 'hello\r\n\r\n', 400],
    ['headers without end', `${HEAD}x: ${'x'.repeat(20_000)}\r\n`, 431],
  ];
  for (const [what, sent, status] of broken) {
    it(`answers ${what} with ${status}, once, and hangs up`, async () => {
      // Only what does not end needs a short time, which a busy machine takes for the handshake alone.
      await start(status === 408 ? { time: 1_000 } : {});
      const socket = await world.open();
      socket.write(sent);
      const text = await textOf(socket);
      expect(text).to.match(new RegExp(`^HTTP/1\\.1 ${status} .*\\{"error":"[^"]+"\\}$`, 's'));
      expect(text.match(/HTTP\/1\.1/g)).to.have.length(1);
      await until(() => world.outcomes.length > 0);
      expect((await world.ask(REVIEW)).status).to.equal(200);
      expect(world.outcomes).to.deep.equal(['error', 'unchanged']);
    });
  }

  it('answers the announced part of a body that is longer than announced', async () => {
    await start();
    const socket = await world.open();
    socket.write(`${HEAD}content-length: 2\r\n\r\n{}and more`);
    expect(await textOf(socket)).to.match(/^HTTP\/1\.1 (?:200|400) /);
    expect((await world.ask(REVIEW)).status).to.equal(200);
  });

  it('waits for the first request of a connection that was opened in advance', async () => {
    await start({ time: 1_000 });
    const ahead = await world.open();
    // Connections that were opened later are closed, but not this one.
    const slow = await world.open();
    slow.write(HEAD);
    await textOf(slow);
    ahead.write(`${HEAD}connection: close\r\ncontent-length: 2\r\n\r\n{}`);
    expect(await textOf(ahead)).to.match(/^HTTP\/1\.1 200 /);
  });

  it('counts a client that goes away, and serves the others', async () => {
    await start();
    const socket = await world.open();
    socket.write(`${HEAD}content-length: 100\r\n\r\n{`);
    socket.destroy();
    await until(() => world.outcomes.length > 0);
    expect((await world.ask(REVIEW)).status).to.equal(200);
    expect(world.outcomes).to.deep.equal(['error', 'unchanged']);
    expect(world.errors).to.deep.equal([]);
  });

  it('closes the connection of a client that does not use TLS', async () => {
    await start();
    const socket = connectPlain(world.port, '127.0.0.1');
    socket.on('error', () => undefined).write('GET /mutate HTTP/1.1\r\n\r\n');
    socket.resume();
    await once(socket, 'close');
    expect((await world.ask(REVIEW)).status).to.equal(200);
    expect(world.outcomes).to.deep.equal(['unchanged']);
  });

  const defect = new TypeError('a defect');
  const { apiVersion, kind } = REVIEW;
  const allowed = { apiVersion, kind, response: { uid: 'u1', allowed: true } };
  const failures: [what: string, failure: Error, asked: object, status: number, body: object, errors: Error[]][] = [
    ['with the reason why it refuses a request', new RequestError(400, 'no uid'), REVIEW, 400, { error: 'no uid' }, []],
    ['that allows the object unchanged if it fails', defect, REVIEW, 200, allowed, [defect]],
    ['500 if it fails and the body has no uid', defect, {}, 500, { error: 'the review failed' }, [defect]],
  ];
  for (const [what, failure, asked, status, body, errors] of failures) {
    it(`gives the answer of a review ${what}`, async () => {
      await start();
      world.review = () => {
        throw failure;
      };
      expect(await world.ask(asked)).to.deep.include({ status, body });
      expect([world.outcomes, world.errors]).to.deep.equal([['error'], errors]);
    });
  }
});

describe('the certificate of the admission server', () => {
  let world: AdmissionWorld;
  afterEach(() => world.stop());

  const handshake = async (options = {}): Promise<unknown> => {
    const agent = new Agent({ ca: world.authority.certificate });
    return await world.ask(REVIEW, { agent, ...options }).catch((error: unknown) => error);
  };

  it('may come later: until then handshakes fail with an alert', async () => {
    world = await startAdmissionWorld({ certified: false });
    expect(String(await handshake())).to.match(/alert handshake failure/);
    world.exchange();
    expect(await handshake()).to.include({ status: 200 });
    expect(world.outcomes).to.deep.equal(['unchanged']);
  });

  it('is replaced without closing a connection', async () => {
    world = await startAdmissionWorld();
    const open = await world.open();
    const before = open.getPeerX509Certificate()?.serialNumber;
    world.exchange();
    const after = (await world.open()).getPeerX509Certificate()?.serialNumber;
    expect(after).to.be.a('string').and.not.equal(before);
    open.write(`${HEAD}connection: close\r\ncontent-length: 2\r\n\r\n{}`);
    expect(await textOf(open)).to.match(/^HTTP\/1\.1 200 /);
  });

  it('stays if the next one cannot be used', async () => {
    world = await startAdmissionWorld();
    const [one, other] = [world.exchange(), world.exchange()];
    world.exchange({ cert: one.cert, key: other.key });
    expect(world.errors).to.have.length(1);
    expect(await handshake()).to.include({ status: 200 });
  });

  it('is not shown to a client with an old TLS version', async () => {
    world = await startAdmissionWorld();
    world.exchange();
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' };
    expect(String(await handshake(old))).to.match(/alert protocol version/);
    expect(await handshake({ ...old, maxVersion: 'TLSv1.2' })).to.include({ status: 200 });
  });
});

describe('the end of the admission server', () => {
  let world: AdmissionWorld;
  beforeEach(async () => {
    world = await startAdmissionWorld({ limits: { farewell: 200 } });
  });
  afterEach(() => world.stop());
  /** A connection whose request is under way: its body is awaited. */
  const underWay = async (): Promise<TLSSocket> => {
    const socket = await world.open();
    socket.write(`${HEAD}content-length: 2\r\nexpect: 100-continue\r\n\r\n`);
    await once(socket, 'data');
    return socket;
  };

  it('answers new connections while it is leaving, and ends each with its answer', async () => {
    world.leave();
    for (let times = 0; times < 3; times += 1) {
      const socket = await world.open();
      const text = textOf(socket);
      socket.write(`${HEAD}content-length: 2\r\n\r\n{}`);
      expect(await text).to.match(/^HTTP\/1\.1 200 .*connection: close/ims);
    }
    expect(world.outcomes).to.deep.equal(['unchanged', 'unchanged', 'unchanged']);
  });

  it('lets requests under way end, closes their connections, and is over with the last one', async () => {
    const socket = await underWay();
    const text = textOf(socket);
    world.end();
    let isClosed = false;
    const closed = world.closed.then(() => {
      isClosed = true;
    });
    await new Promise(setImmediate);
    expect(isClosed).to.equal(false);
    socket.write('{}');
    expect(await text).to.match(/^HTTP\/1\.1 200 .*connection: close/ims);
    await closed;
    expect(world.outcomes).to.deep.equal(['unchanged']);
  });

  it('closes connections that are idle, at once', async () => {
    const socket = await world.open();
    socket.write(`${HEAD}content-length: 2\r\n\r\n{}`);
    await once(socket, 'data');
    const closed = once(socket, 'close');
    world.end();
    await closed;
  });

  it('does not wait long for anybody', async () => {
    const socket = await underWay();
    world.end();
    await once(socket, 'close');
    await until(() => world.outcomes.length > 0);
    expect(world.outcomes).to.deep.equal(['error']);
  });

  it('frees the port', async () => {
    world.end();
    const failure = await world.open().catch((error: unknown) => error);
    expect(failure).to.have.property('code', 'ECONNREFUSED');
  });
});
