import { expect } from 'chai';
import { createLayerTree } from '../../../src/oci/deep/layer-tree.ts';

/** A tree that counts its steps. */
function counted() {
  let steps = 0;
  const tree = createLayerTree({ step: () => (steps += 1) });
  return {
    tree,
    /** Returns where a path leads, and how many steps that took. */
    ask(path: string): readonly [kind: string, steps: number] {
      const before = steps;
      const { kind } = tree.resolve(path);
      return [kind, steps - before];
    },
  };
}

const PROGRAM = { kind: 'other', text: 'a program' } as const;

describe('the steps of looking a path up', () => {
  it('are the components of the path, however many layers there are', () => {
    const { tree, ask } = counted();
    for (let layer = 0; layer < 100; layer += 1) {
      tree.begin();
      tree.add(`etc/${layer}`, PROGRAM);
      tree.end(false);
    }
    expect(ask('usr/local/bin/app')).to.deep.equal(['unread', 4]);
  });

  it('count those of links, too', () => {
    const { tree, ask } = counted();
    tree.begin();
    tree.add('bin', { kind: 'symlink', target: 'usr/bin' });
    tree.add('usr/bin/app', PROGRAM);
    // `bin`, then `app` below it, which no layer has, then `usr/bin/app`.
    expect(ask('bin/app')).to.deep.equal(['found', 5]);
  });

  it('are not taken again for what further layers cannot change', () => {
    const { tree, ask } = counted();
    tree.begin();
    tree.add('bin', { kind: 'directory' });
    tree.add('bin/app', PROGRAM);
    tree.add('bin/.wh.gone', PROGRAM);
    tree.end(false);
    expect([ask('bin/app'), ask('bin/gone')]).to.deep.equal([
      ['found', 2],
      ['absent', 2],
    ]);
    tree.begin();
    tree.add('bin/gone', PROGRAM);
    tree.end(true);
    expect([ask('bin/app'), ask('bin/gone')]).to.deep.equal([
      ['found', 0],
      ['absent', 0],
    ]);
  });

  it('are not taken again until there is a new entry', () => {
    const { tree, ask } = counted();
    tree.begin();
    expect([ask('app'), ask('app')]).to.deep.equal([
      ['unread', 1],
      ['unread', 0],
    ]);
    tree.add('app', PROGRAM);
    expect(ask('app')).to.deep.equal(['found', 1]);
  });
});
