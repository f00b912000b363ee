import { expect } from 'chai';
import { createAskers, createJoint, waitForTurn } from '../../../src/oci/lookup/askers.ts';

describe('work that runs once for all that ask for it', () => {
  /** Work that ends when the test says so. */
  function create() {
    const joint = createJoint<string>();
    const ended: string[] = [];
    let end: (fails?: boolean) => void = () => undefined;
    const run = (namespace: string) => {
      const askers = createAskers(namespace);
      const found = joint.run(
        'key',
        askers,
        () =>
          new Promise((resolve, reject) => (end = (fails) => (fails ? reject(new Error('no')) : resolve(namespace)))),
        () => ended.push(`${namespace} ${joint.size}`),
      );
      return { askers, found };
    };
    return { joint, ended, run, end: (fails?: boolean) => end(fails) };
  }

  it('gives all of them its result, has its turns for all of their namespaces, and may then start again', async () => {
    const { joint, ended, run, end } = create();
    expect(joint.join('key', 'early')).to.equal(false);
    const [first, second] = [run('a'), run('b')];
    expect(joint.join('key', 'c')).to.equal(true);
    second.askers.join('d');
    expect(first.askers.names()).to.deep.equal(['a', 'b', 'c', 'd']);
    expect(joint.size).to.equal(1);
    end();
    expect(await Promise.all([first.found, second.found])).to.deep.equal(['a', 'a']);
    expect(ended).to.deep.equal(['a 0']);
    second.askers.join('late');
    expect(first.askers.names()).not.to.include('late');
    const third = run('e');
    end();
    expect(await third.found).to.equal('e');
  });

  it('may fail although no caller waits for it', async () => {
    const { ended, run, end } = create();
    run('a');
    end(true);
    await new Promise(setImmediate);
    expect(ended).to.deep.equal(['a 0']);
  });
});

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
