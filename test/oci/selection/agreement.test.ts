import { expect } from 'chai';
import { differencesOf, lookUp } from './oracle.ts';
import { answersOf, everydayTrees, readRecorded, recordedOf } from './recorded.ts';
import type { Tree } from './trees.ts';

/** test/e2e/selection.e2e.ts asks the packages themselves, and records their answers. */
describe('what counts of a thousand random indexes', () => {
  let trees: Tree[];
  before(() => {
    trees = everydayTrees();
  });

  it('is compared with answers of these versions of the runtimes to these indexes', async () => {
    const recorded = await readRecorded();
    const { oracle, trees: hash } = await recordedOf(trees, []);
    const how =
      'WRITE_ANSWERS=1 npx mocha --no-config --node-option import=tsx --timeout 240000 test/e2e/selection.e2e.ts';
    expect(recorded, `stale; record the answers again: ${how}`).to.include({ oracle, trees: hash });
    expect(recorded.answers).to.have.length(trees.length);
  });

  it('is nothing that containerd or CRI-O refuses', async () => {
    const answers = answersOf(await readRecorded());
    for (const [at, tree] of trees.entries()) {
      const found = await lookUp(tree);
      const [answer] = answers.slice(at, at + 1);
      const differences = answer === undefined ? [] : differencesOf(found, answer);
      const wrong = differences.filter(({ kind }) => kind === 'wrong');
      expect(wrong, `index ${at}: ${tree.objects[tree.root.digest]}`).to.deep.equal([]);
    }
  });
});
