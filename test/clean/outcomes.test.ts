import { expect } from 'chai';
import { createLedger } from '../../src/clean/outcomes.ts';
import { leftRows, resultRows } from '../../src/clean/rows.ts';

describe('the ledger and the report of clean', () => {
  const pod = (name: string) => ({ kind: 'Pod', namespace: 'shop', name });

  it('add up: everything found is either removed or left with a reason', () => {
    const ledger = createLedger();
    ledger.found('nodes', [
      { kind: 'Node', name: 'a', labels: 2 },
      { kind: 'Node', name: 'b', labels: 1 },
    ]);
    ledger.found('gates', [pod('one')]);
    ledger.found('pods', [pod('one'), pod('two'), pod('three')]);
    ledger.removed('nodes', { kind: 'Node', name: 'a' });
    ledger.removed('pods', pod('one'));
    ledger.left('pods', pod('two'), 'a budget');
    const outcome = ledger.outcome('not reached');
    expect(resultRows(outcome, 0)).to.deep.equal([
      ['admission configurations', '0', '0'],
      ['gates of pods', '0', '1'],
      ['nodes with taint or labels', '1', '1'],
      ['labels of nodes', '2', '1'],
      ['tolerations of DaemonSets', '0', '0'],
      ['pods with tolerations or affinity', '1', '2'],
      ['annotations of pods', '0', '0'],
    ]);
    expect(outcome.left).to.deep.equal([
      { kind: 'Node', name: 'b', reason: 'not reached' },
      { ...pod('one'), reason: 'not reached' },
      { ...pod('two'), reason: 'a budget' },
      { ...pod('three'), reason: 'not reached' },
    ]);
  });

  it('count an object that came back as left, until it is removed again', () => {
    const ledger = createLedger();
    const node = { kind: 'Node', name: 'a' };
    ledger.found('nodes', [node]);
    ledger.removed('nodes', node);
    ledger.found('nodes', [node]);
    expect(ledger.count('nodes')).to.deep.equal({ removed: 0, remaining: 1 });
    ledger.removed('nodes', node);
    expect(ledger.count('nodes')).to.deep.equal({ removed: 1, remaining: 0 });
  });

  it('show only the first of many similar objects, and how many there are', () => {
    const ledger = createLedger();
    for (let index = 0; index < 25; index++) ledger.left('pods', pod(`web-${index}`), 'a budget');
    ledger.left('pods', pod('bare'), 'nothing would bring it back');
    const rows = leftRows(ledger.outcome('').left);
    expect(rows.length).to.equal(22);
    expect(rows.at(-1)).to.deep.equal(['Pod', '-', 'and 5 more (--output json has all)', 'a budget']);
  });

  it('do not count a pod that is kept as left, and name it with its reason', () => {
    const ledger = createLedger();
    ledger.kept('pods', pod('one'), 'it would not run');
    ledger.left('pods', pod('two'), 'a budget');
    expect(ledger.count('pods')).to.deep.equal({ removed: 0, remaining: 1 });
    const outcome = ledger.outcome('');
    expect(outcome.left).to.deep.equal([{ ...pod('two'), reason: 'a budget' }]);
    expect(outcome.kept).to.deep.equal([{ ...pod('one'), reason: 'it would not run' }]);
    expect(resultRows(outcome, 0)).to.deep.include.members([
      ['pods with tolerations or affinity', '0', '1'],
      ['pods with tolerations or affinity, kept', '0', '1'],
    ]);
  });

  it('count pods that keep their tolerations', () =>
    expect(resultRows(createLedger().outcome(''), 7)).to.deep.include([
      'pods with tolerations or affinity, kept',
      '0',
      '7',
    ]));
});
