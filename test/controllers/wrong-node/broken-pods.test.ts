import { expect } from 'chai';
import { createBrokenPods } from '../../../src/controllers/wrong-node/broken-pods.ts';
import type { BrokenContainer } from '../../../src/placement/objects/start-error.ts';

const BROKEN: readonly BrokenContainer[] = [{ name: 'c', image: 'app', trouble: 'failing', pulled: undefined }];
const on = (nodeName: string | undefined) => ({ nodeName, broken: BROKEN });
const RUNS = { nodeName: 'n1', broken: undefined };

describe('the index of broken pods', () => {
  const rows: [
    given: string,
    changes: readonly (ReturnType<typeof on> | typeof RUNS | undefined)[],
    expected: string | undefined,
  ][] = [
    ['that breaks', [RUNS, on('n1')], 'n1'],
    ['that is not bound', [on(undefined)], undefined],
    ['that is bound while broken', [on(undefined), on('n1')], 'n1'],
    ['that runs again', [on('n1'), RUNS], undefined],
    ['that is gone', [on('n1'), undefined], undefined],
    ['that was made again on another node', [on('n1'), on('n2')], 'n2'],
    ['that says the same again', [on('n1'), on('n1')], 'n1'],
    ['that was never there', [undefined], undefined],
  ];
  for (const [given, changes, expected] of rows) {
    it(`has a pod ${given}: ${expected ?? 'nowhere'}`, () => {
      const index = createBrokenPods();
      for (const pod of changes) index.changed('shop/a', pod);
      expect([...index.keys()]).to.deep.equal(expected === undefined ? [] : ['shop/a']);
      for (const node of ['n1', 'n2']) {
        expect([...index.on(node)], node).to.deep.equal(node === expected ? ['shop/a'] : []);
      }
    });
  }

  it('keeps the pods of a node apart from those of others', () => {
    const index = createBrokenPods();
    for (const [key, node] of [
      ['a', 'n1'],
      ['b', 'n1'],
      ['c', 'n2'],
    ] as const)
      index.changed(key, on(node));
    index.changed('a', undefined);
    expect([[...index.on('n1')], [...index.on('n2')], [...index.keys()]]).to.deep.equal([['b'], ['c'], ['b', 'c']]);
  });
});
