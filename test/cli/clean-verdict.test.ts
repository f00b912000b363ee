import { expect } from 'chai';
import { createLedger } from '../../src/clean/outcomes.ts';
import { printOutcome } from '../../src/cli/clean/clean.ts';

const POD = { kind: 'Pod', namespace: 'shop', name: 'web' };
const NODE = { kind: 'Node', name: 'a' };
const DONE = { unlisted: 0, steps: undefined as string[][] | undefined, isBlind: false, isBrokenOff: false };
type Ledger = ReturnType<typeof createLedger>;

describe('what clean says first', () => {
  const rows: [what: string, work: Partial<typeof DONE>, fill: (ledger: Ledger) => void, says: string][] = [
    ['all is removed', {}, (ledger) => ledger.removed('nodes', NODE), '✓ Nothing of archaware is left.'],
    [
      'pods are kept, listed or not',
      { unlisted: 2 },
      (ledger) => {
        ledger.kept('pods', POD, 'bare');
        ledger.kept('daemonSets', { ...POD, kind: 'DaemonSet' }, 'no record');
      },
      '✓ Nothing of archaware is left but harmless tolerations, affinity or annotations of 3 pods and 1 DaemonSet.',
    ],
    ['one is left', {}, (ledger) => ledger.left('nodes', NODE, 'refused'), '✗ 1 object left: the reasons are below.'],
    ['the configuration is not known', { isBlind: true }, () => {}, '! Nothing was found, but perhaps not everything.'],
    [
      'the work was broken off',
      { isBrokenOff: true },
      (ledger) => ledger.removed('nodes', NODE),
      '✗ clean did not end: what it found is removed, but it did not look again. Run it again.',
    ],
    ['a dry run finds nothing', { steps: [] }, () => {}, '✓ There is nothing to remove.'],
    [
      'a dry run finds something',
      { steps: [] },
      (ledger) => ledger.left('nodes', NODE, 'would lose its taint'),
      '! clean would remove what archaware wrote to 1 object.',
    ],
    [
      'a dry run finds a controller',
      { steps: [] },
      (ledger) => ledger.left('controllers', { ...POD, kind: 'Lease' }, 'refuses'),
      '✗ clean would refuse: archaware runs, and would undo its work.',
    ],
  ];
  for (const [what, work, fill, says] of rows) {
    it(`where ${what}`, () => {
      const ledger = createLedger();
      fill(ledger);
      let printed = '';
      const print = (text: string) => {
        printed += text;
      };
      printOutcome(ledger.outcome(''), { ...DONE, ...work }, [], {
        output: 'table',
        columns: 200,
        colors: false,
        print,
      });
      expect(printed.split('\n')[0]).to.equal(says);
    });
  }
});
