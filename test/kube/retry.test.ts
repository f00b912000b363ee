import { expect } from 'chai';
import type { ApiVerb } from '../../src/kube/api-client.ts';
import { ApiError, ConnectionError } from '../../src/kube/errors.ts';
import { createRetryingClient } from '../../src/kube/retry.ts';
import { clientOf } from '../support/client-of.ts';
import { createSetClock } from './cluster.ts';

const failure = (status: number, retryAfterMs?: number) => new ApiError(status, {}, 'list /x', retryAfterMs);

/** A client that fails with these errors, one after the other, and then succeeds. */
function failing(...errors: Error[]) {
  let sent = 0;
  const request = async () => {
    const error = errors[sent++];
    if (error !== undefined) throw error;
    return { done: true };
  };
  return { client: clientOf({ request }), sent: () => sent };
}

describe('a request that is retried', () => {
  const { signal } = new AbortController();
  const rows: [what: string, verb: ApiVerb, errors: Error[], sent: number, succeeds: boolean][] = [
    ['a list that answers 503', 'list', [failure(503)], 2, true],
    ['a list that answers 429', 'list', [failure(429), failure(429)], 3, true],
    ['a read without an answer', 'get', [new ConnectionError('reset')], 2, true],
    ['a patch that answers 500', 'patch', [failure(500)], 2, true],
    ['a deletion that answers 504', 'delete', [failure(504)], 2, true],
    ['a list that always fails', 'list', Array.from({ length: 9 }, () => failure(503)), 5, false],
    ['a list that is forbidden', 'list', [failure(403)], 1, false],
    ['a list that has expired', 'list', [failure(410)], 1, false],
    ['a creation', 'create', [failure(503)], 1, false],
    ['a replacement', 'update', [failure(503)], 1, false],
  ];
  for (const [what, verb, errors, sent, succeeds] of rows) {
    it(`${what} is sent ${sent} times and ${succeeds ? 'succeeds' : 'fails'}`, async () => {
      const server = failing(...errors);
      const client = createRetryingClient(server.client, { clock: createSetClock(), signal });
      const outcome = await client.request(verb, '/x').then(
        () => true,
        () => false,
      );
      expect([server.sent(), outcome]).to.deep.equal([sent, succeeds]);
    });
  }

  it('waits longer each time, and as long as Retry-After says', async () => {
    const clock = createSetClock();
    const server = failing(failure(503), failure(503), failure(429, 5_000), failure(429, 30_000));
    await createRetryingClient(server.client, { clock, signal }).request('list', '/x');
    expect(clock.delays).to.deep.equal([500, 1_000, 5_000, 30_000]);
  });

  it('ends with its signal', async () => {
    const end = new AbortController();
    const server = failing(failure(503), failure(503));
    const onRetry = () => end.abort(new Error('over'));
    const client = createRetryingClient(server.client, { clock: createSetClock(), signal, onRetry });
    const error: unknown = await client
      .request('list', '/x', { signal: end.signal })
      .catch((thrown: unknown) => thrown);
    expect(String(error)).to.equal('Error: over');
    expect(server.sent()).to.equal(1);
  });
});
