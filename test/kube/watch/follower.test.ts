import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { type JsonObject, stringAt } from '../../../src/kit/json.ts';
import type { WatchOptions } from '../../../src/kube/api-client.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import { follow } from '../../../src/kube/watch/follower.ts';
import { createHandClock } from '../../controllers/hand-clock.ts';
import { clientOf } from '../../support/client-of.ts';

const line = (type: string, object: JsonObject) => Buffer.from(`${JSON.stringify({ type, object })}\n`);
const event = (note: string, resourceVersion: string) => ({ metadata: { resourceVersion }, note });

/** Follows a collection whose watches do one after the other what `watches` says; then each watch hangs until the end. */
function world(...watches: ((options: WatchOptions) => void)[]) {
  const clock = createHandClock();
  const end = new AbortController();
  const asked: string[] = [];
  const seen: string[] = [];
  const troubles: string[] = [];
  let version = 100;
  const client = clientOf({
    async request(_verb, path) {
      asked.push(path);
      return { metadata: { resourceVersion: String(version++) }, items: [event('of before', '9')] };
    },
    async watch(path, options) {
      asked.push(path.replace(/watch=.*&resourceVersion=/, ''));
      const next = watches.shift();
      if (next !== undefined) return next(options);
      options.onOpen();
      await new Promise<void>((resolve, reject) => {
        end.signal.addEventListener('abort', () => resolve());
        options.signal.addEventListener('abort', () => reject(options.signal.reason));
      });
    },
  });
  const done = follow(
    {
      client,
      clock,
      path: '/events?q',
      onObject: (object) => void seen.push(stringAt(object, 'note') ?? ''),
      onTrouble: (_, reason) => void troubles.push(reason),
      onWorking: () => void troubles.push('works'),
    },
    end.signal,
  );
  return {
    /** Lets time pass in small steps, so that what one request leads to happens before the next step. */
    async pass(ms: number) {
      for (let step = 0; step < 50; step++) {
        await turn();
        await clock.advance(ms / 50);
      }
      await turn();
    },
    asked,
    seen,
    troubles,
    async stop() {
      end.abort();
      await done;
    },
  };
}

describe('the follower of a collection', () => {
  it('sees what is created and changed from now on, and nothing of before', async () => {
    const { pass, asked, seen, stop } = world(({ onPiece }) => {
      onPiece(line('ADDED', event('one', '101')));
      onPiece(line('MODIFIED', event('two', '102')));
      onPiece(line('BOOKMARK', event('', '103')));
      onPiece(line('DELETED', event('one', '104')));
    });
    await pass(10_000);
    expect(seen).to.deep.equal(['one', 'two']);
    expect(asked, 'and goes on where the watch ended').to.deep.equal([
      '/events?q&limit=1',
      '/events?q&100',
      '/events?q&104',
    ]);
    await stop();
  });

  it('begins with the version of now if its own has expired', async () => {
    const { pass, asked, stop } = world(({ onPiece }) => {
      onPiece(line('ERROR', { code: 410, reason: 'Expired', message: 'too old' }));
    });
    await pass(10_000);
    expect(asked).to.deep.equal(['/events?q&limit=1', '/events?q&100', '/events?q&limit=1', '/events?q&101']);
    await stop();
  });

  it('reports a missing right once, tries again every five minutes, and says when it works', async () => {
    const refuse = () => {
      throw new ApiError(403, { message: 'cannot watch events' }, 'watch');
    };
    const { pass, asked, troubles, stop } = world(refuse, refuse);
    await pass(4 * 60_000);
    expect(asked).to.have.length(2);
    await pass(7 * 60_000);
    expect(asked).to.have.length(4);
    expect(troubles).to.deep.equal(['watch: 403 cannot watch events', 'works']);
    await stop();
  });

  it('ends a watch that outlives its own end, and opens another', async () => {
    const { pass, asked, stop } = world();
    await pass(329_000);
    expect(asked).to.have.length(2);
    await pass(5_000);
    expect(asked).to.have.length(3);
    await stop();
  });

  it('passes over an Event that is far too long', async () => {
    const { pass, seen, stop } = world(({ onPiece }) => {
      onPiece(line('ADDED', event('x'.repeat(100_000), '101')));
      onPiece(line('ADDED', event('short', '102')));
    });
    await pass(1);
    expect(seen).to.deep.equal(['short']);
    await stop();
  });
});
