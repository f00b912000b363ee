import { expect } from 'chai';
import { systemClock } from '../../../src/kit/clock.ts';
import { createTurns } from '../../../src/kit/fairness/event-loop.ts';
import { ConnectionError } from '../../../src/kube/errors.ts';
import { type CollectionOptions, createCollection } from '../../../src/kube/watch/collection.ts';
import { clientOf } from '../../support/client-of.ts';

describe('a list whose body breaks off', () => {
  const never = new AbortController().signal;
  const named = (...names: string[]) => names.map((name) => ({ metadata: { name } }));

  type Named = { readonly uid: string; readonly resourceVersion: string; readonly name: string };

  /** Each answer: the text of a page, and whether the connection breaks after it. */
  function arrange(answers: { readonly metadata: object; readonly items: object[]; readonly breaks?: boolean }[]) {
    const asked: string[] = [];
    const options: CollectionOptions<Named> = {
      client: clientOf({
        async request(_verb, path, options = {}) {
          asked.push(path);
          const { breaks = false, ...page } = answers.shift() ?? { metadata: {}, items: [] };
          const text = JSON.stringify(page);
          const reader = options.reader?.();
          reader?.take(Buffer.from(breaks ? text.slice(0, -4) : text));
          if (breaks) throw new ConnectionError('ended too early');
          return void reader?.end();
        },
      }),
      path: '/api/v1/pods',
      read: ({ metadata }) => ({ uid: '1', resourceVersion: '1', name: String((metadata as { name: string }).name) }),
      keyOf: ({ name }) => name,
      onChange: () => undefined,
    };
    const collection = createCollection(options, createTurns(systemClock));
    async function read() {
      await collection.list(never);
      return { version: collection.version(), keys: collection.store.keys() };
    }
    return { asked, read };
  }

  it('forgets what the broken first page had, because the next answer is a newer state', async () => {
    const { read } = arrange([
      { metadata: { resourceVersion: '100' }, items: named('a', 'b', 'c'), breaks: true },
      { metadata: { resourceVersion: '105' }, items: named('a', 'c') },
    ]);
    let failed = false;
    await read().catch(() => {
      failed = true;
    });
    expect(failed).to.equal(true);
    const { version, keys } = await read();
    expect(version).to.equal('105');
    expect([...keys]).to.deep.equal(['a', 'c']);
  });

  it('keeps the pages before a later page that broke, because all of them are one state', async () => {
    const { read, asked } = arrange([
      { metadata: { resourceVersion: '100', continue: 'next' }, items: named('a', 'b') },
      { metadata: { resourceVersion: '100' }, items: named('c', 'd', 'e'), breaks: true },
      { metadata: { resourceVersion: '100' }, items: named('c', 'd', 'e') },
    ]);
    await read().catch(() => undefined);
    expect([...(await read()).keys]).to.deep.equal(['a', 'b', 'c', 'd', 'e']);
    expect(asked.map((path) => path.includes('continue=next'))).to.deep.equal([false, true, true]);
  });
});
