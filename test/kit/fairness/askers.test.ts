import { expect } from 'chai';
import { createAskers, waitForTurn } from '../../../src/kit/fairness/askers.ts';

describe('a wait for the turn of any of several namespaces', () => {
  /** Lines by namespace; a namespace in `open` has its turn at once. */
  function create(open: readonly string[] = []) {
    const lines = new Map<string, (turn: string) => void>();
    const askers = createAskers('a');
    const controller = new AbortController();
    const turn = waitForTurn<string>(askers, controller.signal, (namespace, start) => {
      lines.set(namespace, start);
      if (open.includes(namespace)) start(namespace);
      return () => lines.delete(namespace);
    });
    return { lines, askers, controller, turn };
  }

  it('ends with the first of them, and leaves the other lines', async () => {
    const { lines, askers, turn } = create();
    askers.join('b');
    expect([...lines.keys()]).to.deep.equal(['a', 'b']);
    lines.get('b')?.('b');
    askers.join('c');
    expect(await turn).to.equal('b');
    expect([...lines.keys()]).to.deep.equal([]);
  });

  it('may end at once', async () => {
    const { lines, turn } = create(['a']);
    expect(await turn).to.equal('a');
    expect(lines.size).to.equal(0);
  });

  it('ends with the signal', async () => {
    const { lines, controller, turn } = create();
    controller.abort(new Error('over'));
    expect(String(await turn.catch((error: unknown) => error))).to.equal('Error: over');
    expect(lines.size).to.equal(0);
  });
});
