import { expect } from 'chai';
import { stringAt } from '../../src/kit/json.ts';
import { ApiError, ConnectionError } from '../../src/kube/errors.ts';
import { find, get, readAll } from '../../src/kube/read.ts';

const failure = (status: number): ApiError => new ApiError(status, {}, 'get /p');

/** A client with this one answer. */
const clientOf = (answer: unknown) => ({
  asked: [] as unknown[],
  async request(...request: unknown[]) {
    this.asked.push(request);
    if (answer instanceof Error) throw answer;
    return answer;
  },
});

describe('reading one object', () => {
  const rows: [what: string, answer: unknown, found: unknown, got: unknown][] = [
    ['an object', { kind: 'Pod' }, { kind: 'Pod' }, { kind: 'Pod' }],
    ['an answer that is not an object', ['Pod'], undefined, {}],
    ['an object that does not exist', failure(404), undefined, 404],
    ['a refusal', failure(403), 403, 403],
    ['no answer', new ConnectionError('server.test is away'), 'ConnectionError', 'ConnectionError'],
  ];
  const outcome = (error: unknown) =>
    error instanceof ApiError ? error.status : error instanceof Error ? error.name : error;
  for (const [what, answer, found, got] of rows) {
    it(`of ${what}`, async () => {
      expect(await find(clientOf(answer), '/p').catch(outcome)).to.deep.equal(found);
      expect(await get(clientOf(answer), '/p').catch(outcome)).to.deep.equal(got);
    });
  }

  it('sends one get, with the signal', async () => {
    const { signal } = new AbortController();
    for (const read of [find, get]) {
      const client = clientOf({});
      await read(client, '/api/v1/pods/a', signal);
      expect(client.asked).to.deep.equal([['get', '/api/v1/pods/a', { signal }]]);
    }
  });
});

describe('a list that is read page by page', () => {
  const expired = (metadata = {}) => new ApiError(410, { reason: 'Expired', metadata }, 'list /x');
  const page = (names: readonly string[], token = '') => ({
    metadata: { continue: token },
    items: names.map((name) => ({ name })),
  });

  /** Reads a list from a server that gives these answers, one after the other. */
  async function read(...answers: (object | Error)[]) {
    const asked: string[] = [];
    const request = async (_verb: string, path: string) => {
      asked.push(new URLSearchParams(path.split('?')[1]).get('continue') ?? '');
      const answer = answers[asked.length - 1] ?? new Error('asked too often');
      if (answer instanceof Error) throw answer;
      return answer;
    };
    const names = await readAll({ request }, '/x', (object) => stringAt(object, 'name'), new AbortController().signal);
    return { names, asked };
  }

  it('goes on after its pages expired, with the token that the API server offers', async () => {
    const answers = [page(['a', 'b'], 'one'), expired({ continue: 'inconsistent' }), page(['c'], 'two'), page(['d'])];
    const { names, asked } = await read(...answers);
    expect(names).to.deep.equal(['a', 'b', 'c', 'd']);
    expect(asked).to.deep.equal(['', 'one', 'inconsistent', 'two']);
  });

  it('goes on each time that its pages expire', async () => {
    const slow = [expired({ continue: 'later' }), page(['b'], 'two'), expired({ continue: 'latest' }), page(['c'])];
    expect((await read(page(['a'], 'one'), ...slow)).names).to.deep.equal(['a', 'b', 'c']);
  });

  it('begins again, once, if the API server offers no token', async () => {
    const { names, asked } = await read(page(['a'], 'one'), expired(), page(['a'], 'two'), page(['b']));
    expect(names).to.deep.equal(['a', 'b']);
    expect(asked).to.deep.equal(['', 'one', '', 'two']);
  });

  it('fails if the same token is offered again', async () => {
    const same = expired({ continue: 'one' });
    const failed = await read(page(['a'], 'one'), same, page(['a'], 'one'), same).catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(ApiError);
  });
});
