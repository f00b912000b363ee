import { getEventListeners } from 'node:events';
import { expect } from 'chai';
import { createNamespaceTurns, createSharedRuns } from '../../../src/oci/credentials/program-turns.ts';
import { createAskers } from '../../../src/oci/lookup/askers.ts';

/** Runs that end when the test says so. */
function arrange() {
  const turns = createNamespaceTurns();
  const run = createSharedRuns<string>(turns);
  const other = createSharedRuns<string>(turns);
  const started: string[] = [];
  const ends = new Map<string, (error?: Error) => void>();
  const settled: string[] = [];
  const { signal } = new AbortController();

  function begin(key: string, namespace: string, until = signal, runs = run): Promise<unknown> {
    const work = () => {
      started.push(key);
      return new Promise<string>((resolve, reject) => {
        ends.set(key, (error) => (error === undefined ? resolve(key) : reject(error)));
      });
    };
    const askers = createAskers(namespace);
    return runs(key, askers, until, work).then(
      () => settled.push(`${key} for ${namespace}`),
      (error: Error) => settled.push(`${key} for ${namespace}: ${error.message}`),
    );
  }
  const turn = () => new Promise(setImmediate);
  return {
    ...{ begin, started, settled, turn, other, signal },
    async end(key: string, error?: Error) {
      ends.get(key)?.(error);
      await turn();
    },
  };
}

describe('the turns of helper programs', () => {
  it('come to two at once, over all helpers and plug-ins', async () => {
    const { begin, started, end, turn, other, signal } = arrange();
    void begin('a', 'shop');
    void begin('b', 'shop', signal, other);
    void begin('c', 'shop');
    await turn();
    expect(started).to.deep.equal(['a', 'b']);
    await end('b');
    expect(started).to.deep.equal(['a', 'b', 'c']);
  });

  it('come to one namespace after the other', async () => {
    const { begin, started, end, turn } = arrange();
    for (let index = 0; index < 100; index++) void begin(`t${index}`, 'tenant');
    void begin('mine', 'shop');
    await turn();
    await end('t0');
    await end('t1');
    expect(started).to.deep.equal(['t0', 't1', 't2', 'mine']);
  });

  it('come as soon as one of the namespaces that wait for the same has one', async () => {
    const { begin, started, settled, end, turn } = arrange();
    for (let index = 0; index < 100; index++) void begin(`t${index}`, 'tenant');
    void begin('t99', 'shop');
    await turn();
    await end('t0');
    await end('t1');
    expect(started).to.deep.equal(['t0', 't1', 't2', 't99']);
    await end('t99');
    expect(settled.slice(-2).sort()).to.deep.equal(['t99 for shop', 't99 for tenant']);
    for (let index = 2; index < 99; index++) await end(`t${index}`);
    expect(started, 'none runs twice').to.have.length(100);
  });

  it('go on to the next after a failure', async () => {
    const { begin, started, settled, end, turn } = arrange();
    for (const key of ['a', 'b', 'c']) void begin(key, 'shop');
    await turn();
    await end('a', new Error('ended with code 1'));
    expect([started, settled]).to.deep.equal([['a', 'b', 'c'], ['a for shop: ended with code 1']]);
  });

  it('are not waited for any longer than the caller waits, and leave nothing behind', async () => {
    const { begin, started, settled, end, turn } = arrange();
    const leaving = new AbortController();
    for (const key of ['a', 'b']) void begin(key, 'shop');
    void begin('c', 'shop', leaving.signal);
    void begin('d', 'shop');
    await turn();
    leaving.abort(new Error('too late'));
    await turn();
    expect(settled).to.deep.equal(['c for shop: too late']);
    await end('a');
    expect(started).to.deep.equal(['a', 'b', 'd']);
    expect(getEventListeners(leaving.signal, 'abort')).to.have.length(0);
    await begin('e', 'shop', leaving.signal);
    expect(settled.at(-1)).to.equal('e for shop: too late');
  });
});
