import { expect } from 'chai';
import { ApiError, ConnectionError } from '../../src/kube/errors.ts';
import { find, get } from '../../src/kube/read.ts';

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
