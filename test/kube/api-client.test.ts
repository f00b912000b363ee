import { getEventListeners } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { expect } from 'chai';
import { listen } from '../../src/kit/network/listen.ts';
import type { ApiRequest, ConnectedClient, WatchOptions } from '../../src/kube/api-client.ts';
import { ApiError, ConnectionError } from '../../src/kube/errors.ts';
import { clientAt } from './cluster.ts';

type Answer = { readonly status?: number; readonly headers?: Record<string, string>; readonly body?: string };

/** More than a second: undici then counts it in turns of the event loop, so a busy machine has time to answer. */
const SILENCE_MS = 1_500;

describe('the client', () => {
  let answers: (Answer | Promise<Answer> | 'reset' | 'silence' | 'half' | 'stall' | 'drip')[];
  let asked: { line: string; authorization: string; body: string }[];
  let finished: ApiRequest[];
  let logins: number;
  let now: number;
  let authenticate: () => Promise<Record<string, string>>;
  let later: { ms: number; act: () => void }[];
  let client: ConnectedClient;
  let server: string;
  let stop: () => Promise<void>;
  beforeEach(async () => {
    [answers, asked, finished, logins, now] = [[], [], [], 0, 0];
    later = [];
    authenticate = async () => ({ authorization: `Bearer token-${++logins}` });
    const listening = createServer((request, response) => void serve(request, response));
    const port = await listen(listening, '127.0.0.1:0');
    server = `http://127.0.0.1:${port}/prefix`;
    client = connect(server);
    stop = async () => {
      await client.close();
      listening.closeAllConnections();
      await new Promise((resolve) => listening.close(resolve));
    };
  });
  afterEach(() => stop());

  const connect = (url: string, silenceMs = 60_000) =>
    clientAt(
      url,
      { authenticate: () => authenticate() },
      {
        ...{ connections: 2, now: () => now, onRequest: (request) => void finished.push(request), silenceMs },
        after(ms, act) {
          const planned = { ms, act };
          later.push(planned);
          return () => void later.splice(later.indexOf(planned), 1);
        },
      },
    );

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    asked.push({ line: `${request.method} ${request.url}`, authorization: request.headers.authorization ?? '', body });
    const answer = await (answers.shift() ?? {});
    if (answer === 'silence') return;
    if (answer === 'reset') return void request.socket.destroy();
    if (answer === 'half') {
      response.writeHead(200, { 'content-length': '100' }).write('{');
      setImmediate(() => request.socket.destroy());
      return;
    }
    if (answer === 'stall' || answer === 'drip') {
      response.writeHead(200).write('{');
      const drops = answer === 'drip' ? setInterval(() => response.write(' '), 20) : undefined;
      response.on('close', () => clearInterval(drops));
      return;
    }
    response.writeHead(answer.status ?? 200, answer.headers).end(answer.body ?? '{}');
  }
  const failure = async (promise: Promise<unknown>): Promise<unknown> => promise.catch((error: unknown) => error);
  const get = (signal?: AbortSignal) => client.request('get', '/api/v1/nodes/n', { signal });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const arrived = async (count: number) => {
    while (asked.length < count) await turn();
  };
  const tokens = () => asked.map(({ authorization }) => authorization.replace('Bearer ', ''));
  const WATCH = '/api/v1/pods?watch=true';
  const receiver = (more: Partial<WatchOptions> = {}): WatchOptions => ({
    ...{ signal: new AbortController().signal, onOpen: () => undefined, onPiece: () => undefined },
    ...more,
  });

  it('asks below the path of its server', async () => {
    await get();
    expect(asked.map(({ line }) => line)).to.deep.equal(['GET /prefix/api/v1/nodes/n']);
  });

  it('knows the addresses of its server once it is connected', async () => {
    expect([...client.addresses()]).to.deep.equal([]);
    await get();
    expect([...client.addresses()]).to.deep.equal(['127.0.0.1']);
  });

  it('logs in again, once, after a 401', async () => {
    answers = [{ status: 401 }, { body: '{"a":1}' }];
    expect(await get()).to.deep.equal({ a: 1 });
    expect(tokens()).to.deep.equal(['token-1', 'token-2']);
    answers = [{ status: 401 }, { status: 401, body: '{"message":"Unauthorized"}' }];
    expect(await failure(get()))
      .to.be.instanceOf(ApiError)
      .and.to.have.property('status', 401);
    expect(asked).to.have.lengthOf(4);
  });

  it('uses a login for a minute', async () => {
    await get();
    now = 60_000;
    await get();
    expect(logins).to.equal(1);
    now = 60_001;
    await get();
    expect(logins).to.equal(2);
  });

  const retries = [
    ['7', 7_000],
    ['100000', 30_000],
    ['soon', undefined],
  ] as const;
  for (const [header, ms] of retries) {
    it(`reads Retry-After: ${header}`, async () => {
      answers = [{ status: 429, headers: { 'retry-after': header }, body: '{"reason":"TooManyRequests"}' }];
      const error = await failure(get());
      expect(error).to.include({ status: 429, reason: 'TooManyRequests', retryAfterMs: ms });
    });
  }

  it('reports the request and the answer', async () => {
    answers = [{ status: 403, body: '{"message":"nodes \\"n\\" is forbidden"}' }];
    expect(await failure(client.request('patch', '/api/v1/nodes/n?fieldManager=x', { body: [] }))).to.have.property(
      'message',
      'patch /api/v1/nodes/n: 403 nodes "n" is forbidden',
    );
    answers = [{ status: 502, body: '<html>bad gateway</html>' }];
    expect(await failure(get())).to.have.property('message', 'get /api/v1/nodes/n: 502 <html>bad gateway</html>');
  });

  it('names a server that cannot be reached', async () => {
    await stop();
    const error = await failure(get());
    expect(error).to.be.instanceOf(Error);
    const gone = connect('http://127.0.0.1:1');
    const refused = await failure(gone.request('get', '/version'));
    expect(refused).to.be.instanceOf(ConnectionError);
    expect(String(refused)).to.include('cannot reach the API server at 127.0.0.1:1: ECONNREFUSED; check that it runs');
    await gone.close();
    const unknown = connect('http://nowhere.invalid');
    expect(String(await failure(unknown.request('get', '/version')))).to.match(
      /nowhere\.invalid: (?:its name was not found in the DNS|the DNS did not answer) \(E[A-Z_]+\); check that/,
    );
    await unknown.close();
    stop = async () => {};
  });

  for (const [what, answer] of [
    ['a reset', 'reset'],
    ['an answer that is broken off', 'half'],
  ] as const) {
    it(`reports ${what} as no answer`, async () => {
      answers = [answer];
      const error = await failure(get());
      expect(error).to.be.instanceOf(ConnectionError);
      expect(String(error)).to.contain('127.0.0.1:');
    });
  }

  it('breaks watches at once, and requests that stay silent, and opens new connections, at most every ten seconds', async () => {
    const silent = (): Promise<unknown> => {
      answers = ['silence'];
      return failure(get());
    };
    const [first, isAsked] = [silent(), arrived(1)];
    await isAsked;
    client.renew();
    expect(await get(), 'over a new connection').to.deep.equal({});
    expect(later.map(({ ms }) => ms)).to.deep.equal([5000]);
    later.shift()?.act();
    expect(await first).to.be.instanceOf(ConnectionError);
    const second = silent();
    await arrived(3);
    now = 9_999;
    client.renew();
    expect(later).to.deep.equal([]);
    now = 10_000;
    client.renew();
    later.shift()?.act();
    expect(await second).to.be.instanceOf(ConnectionError);

    now = 20_000;
    answers = ['silence'];
    const watching = failure(client.watch(WATCH, receiver()));
    await arrived(4);
    client.renew();
    expect(await watching).to.be.instanceOf(ConnectionError);
  });

  it('leaves a request alone that is answered within five seconds, though its connection was doubted', async () => {
    let begin = () => {};
    answers = [new Promise((resolve) => (begin = () => resolve({})))];
    const listed = get();
    await arrived(1);
    client.renew();
    begin();
    expect(await listed).to.deep.equal({});
    later.shift()?.act();
    expect(await get()).to.deep.equal({});
  });

  it('uses the old login while it requests a new one, so that a slow plug-in delays nothing', async () => {
    await get();
    now = 60_001;
    let finish = () => {};
    authenticate = () => new Promise((resolve) => (finish = () => resolve({ authorization: 'Bearer late' })));
    await get();
    await get();
    finish();
    await turn();
    await get();
    expect(tokens()).to.deep.equal(['token-1', 'token-1', 'token-1', 'late']);
  });

  it('goes on with the login before if there is no new one', async () => {
    await get();
    now = 60_001;
    authenticate = () => Promise.reject(new Error('the file is empty'));
    await get();
    await turn();
    await get();
    expect(tokens()).to.deep.equal(['token-1', 'token-1', 'token-1']);
    answers = [{ status: 401 }];
    expect(String(await failure(get()))).to.equal('Error: the file is empty');
  });

  it('requests one login, however many requests need it at once', async () => {
    await Promise.all([get(), get(), get()]);
    expect(logins).to.equal(1);
  });

  it('logs in for itself: a plug-in that hangs for one client does not delay another', async () => {
    const logged = authenticate;
    authenticate = () => new Promise(() => {});
    const end = new AbortController();
    const hanging = failure(get(end.signal));
    authenticate = logged;
    const other = connect(server);
    expect(await other.request('get', '/version')).to.deep.equal({});
    await other.close();
    end.abort('enough');
    expect(await hanging).to.equal('enough');
  });

  it('gives up an answer whose body stalls, to a list and to a patch', async () => {
    answers = ['stall', 'stall'];
    const impatient = connect(server, SILENCE_MS);
    const sent = [impatient.request('list', '/api/v1/pods'), impatient.request('patch', '/api/v1/pods', { body: [] })];
    for (const error of await Promise.all(sent.map(failure))) {
      expect(error).to.be.instanceOf(ConnectionError);
      expect(String(error)).to.include('ended its answer too early: UND_ERR_BODY_TIMEOUT');
    }
    expect(later).to.deep.equal([]);
    await impatient.close();
  });

  it('gives up an answer that is never complete, even if bytes arrive', async () => {
    answers = ['drip'];
    const waiting = failure(client.request('list', '/api/v1/pods', { completeMs: 77_000 }));
    while (later.length === 0) await turn();
    expect(later.map(({ ms }) => ms)).to.deep.equal([77_000]);
    later[0]?.act();
    const error = await waiting;
    expect(error).to.be.instanceOf(ConnectionError);
    expect(String(error)).to.include('it was not complete after 77 s');
  });

  it('leaves a watch open that is silent for longer than an answer may be', async () => {
    answers = ['stall'];
    const impatient = connect(server, SILENCE_MS);
    const end = new AbortController();
    const pieces: string[] = [];
    let isOpen = false;
    const onOpen = () => {
      isOpen = true;
    };
    const onPiece = (piece: Buffer) => void pieces.push(String(piece));
    const reading = failure(impatient.watch(WATCH, { signal: end.signal, onOpen, onPiece }));
    while (!isOpen) await turn();
    answers = ['silence'];
    // By then a body would have been given up as well: undici owns both timers, and they began in this order.
    expect(String(await failure(impatient.request('get', '/api/v1/nodes/n')))).to.include('UND_ERR_HEADERS_TIMEOUT');
    expect(getEventListeners(end.signal, 'abort')).to.have.lengthOf(1);
    end.abort(new Error('enough'));
    expect(String(await reading)).to.equal('Error: enough');
    expect(pieces).to.deep.equal(['{']);
    await impatient.close();
    await turn();
    expect(getEventListeners(end.signal, 'abort')).to.have.lengthOf(0);
  });

  it('ends requests with their signal, and adds one listener to it, however many wait', async () => {
    answers = ['silence', 'silence'];
    const end = new AbortController();
    const waiting = Array.from({ length: 2_000 }, () => failure(get(end.signal)));
    await arrived(2);
    expect(getEventListeners(end.signal, 'abort')).to.have.lengthOf(1);
    end.abort(new Error('enough'));
    for (const error of await Promise.all(waiting)) expect(String(error)).to.match(/enough|abort/i);
    expect(getEventListeners(end.signal, 'abort')).to.have.lengthOf(0);
  });

  it('sends nothing if its signal has aborted already', async () => {
    await get();
    const error = await failure(get(AbortSignal.abort(new Error('enough'))));
    expect(String(error)).to.equal('Error: enough');
    expect(asked).to.have.lengthOf(1);
  });

  it('escapes what the API server escapes, because a test operation compares strings as they are stored', async () => {
    await client.request('patch', '/api/v1/nodes/n', {
      body: [{ op: 'test', path: '/a', value: '<a & b>\u2028\u2029' }],
    });
    expect(asked[0]?.body).to.equal('[{"op":"test","path":"/a","value":"\\u003ca \\u0026 b\\u003e\\u2028\\u2029"}]');
  });

  it('counts each request by verb, resource and answer', async () => {
    answers = [{}, { status: 401 }, {}, 'reset', {}];
    await get();
    await client.request('create', '/api/v1/namespaces/a/pods/p/eviction', { body: {} });
    await failure(client.request('list', '/apis/apps/v1/daemonsets?limit=1'));
    await client.request('get', '/version');
    expect(finished.map(({ verb, resource, code }) => `${verb} ${resource} ${code}`)).to.deep.equal([
      'get nodes 200',
      'create pods/eviction 401',
      'create pods/eviction 200',
      'list daemonsets error',
      'get version 200',
    ]);
  });

  it('reads a watch piece by piece, and throws before the first piece if it is refused', async () => {
    answers = [{ body: '{"a":1}\n' }, { status: 410, body: '{"reason":"Expired"}' }];
    const seen: string[] = [];
    const options = receiver({
      onOpen: () => void seen.push('open'),
      onPiece: (piece: Buffer) => void seen.push(String(piece)),
    });
    await client.watch(WATCH, options);
    expect(seen).to.deep.equal(['open', '{"a":1}\n']);
    const refused = await failure(client.watch(WATCH, options));
    expect(seen).to.have.lengthOf(2);
    expect(refused).to.include({ status: 410, reason: 'Expired' });
  });

  it('ends a watch whose receiver throws, and throws the same', async () => {
    answers = [{ body: 'nonsense\n' }];
    const onPiece = () => {
      throw new Error('not an event');
    };
    expect(String(await failure(client.watch(WATCH, receiver({ onPiece }))))).to.equal('Error: not an event');
  });
});
