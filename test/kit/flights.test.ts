import { getEventListeners } from 'node:events';
import { expect } from 'chai';
import { type Askers, createAskers } from '../../src/kit/fairness/asking-namespaces.ts';
import { createFlights } from '../../src/kit/flights.ts';

const never = new AbortController().signal;
const turn = () => new Promise(setImmediate);

describe('work that runs once for all that ask for it', () => {
  /** Work that ends when the test says so. */
  function arrange() {
    const flights = createFlights<string>();
    const all: Askers[] = [];
    const signals: AbortSignal[] = [];
    let end: (error?: Error) => void = () => {};
    const join = (namespace: string, signal = never) => {
      const askers = createAskers(namespace);
      const work = (until: AbortSignal, names: Askers) => {
        all.push(names);
        signals.push(until);
        return new Promise<string>((resolve, reject) => {
          end = (error) => (error === undefined ? resolve(namespace) : reject(error));
        });
      };
      const found = flights.join('key', signal, work, askers).catch((error: unknown) => String(error));
      return { askers, found };
    };
    return { flights, all, signals, join, end: (error?: Error) => end(error) };
  }

  it('gives all of them its result, gets all of their namespaces, and may then start again', async () => {
    const { flights, all, join, end } = arrange();
    expect(flights.add('key', 'early')).to.equal(false);
    const [first, second] = [join('a'), join('b')];
    expect(flights.add('key', 'c')).to.equal(true);
    second.askers.join('d');
    first.askers.join('e');
    expect(all.map((names) => names.names())).to.deep.equal([['a', 'b', 'c', 'd', 'e']]);
    expect(flights.size).to.equal(1);
    end();
    expect(await Promise.all([first.found, second.found])).to.deep.equal(['a', 'a']);
    expect(flights.size).to.equal(0);
    second.askers.join('late');
    expect(all[0]?.names()).not.to.include('late');
    const third = join('f');
    end();
    expect(await third.found).to.equal('f');
  });

  it('gives all of them its failure', async () => {
    const { flights, join, end } = arrange();
    const all = [join('a'), join('b')];
    end(new Error('no'));
    expect(await Promise.all(all.map(({ found }) => found))).to.deep.equal(['Error: no', 'Error: no']);
    expect(flights.size).to.equal(0);
  });

  it('goes on when one caller leaves, ends when all have left, and keeps nothing of them', async () => {
    const { flights, signals, join } = arrange();
    const leaving = [new AbortController(), new AbortController()];
    const all = leaving.map(({ signal }, index) => join(`n${index}`, signal));
    for (const [index, controller] of leaving.entries()) {
      expect([signals[0]?.aborted, flights.size]).to.deep.equal([false, 1]);
      controller.abort(new Error('too late'));
      expect(await all[index]?.found).to.equal('Error: too late');
      expect(getEventListeners(controller.signal, 'abort')).to.have.length(0);
    }
    await turn();
    expect([signals[0]?.aborted, flights.size]).to.deep.equal([true, 0]);
  });
});
