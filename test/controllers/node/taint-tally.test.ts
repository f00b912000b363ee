import { expect } from 'chai';
import { createTally } from '../../../src/controllers/node/taint-tally.ts';
import { taintKinds } from '../../../src/placement/nodes/node.ts';
import { node, taint } from '../../placement/objects.ts';

describe('the taints that nodes of the cluster have', () => {
  const arm = node({ taints: [taint('arch=arm64:NoSchedule'), taint('node.kubernetes.io/not-ready:NoExecute')] });
  const both = node({ taints: [taint('arch=amd64:NoSchedule'), taint('gpu=yes:NoSchedule')] });

  const rows: [given: string, steps: [typeof arm | undefined, 1 | -1][], changes: boolean[], all: string[]][] = [
    ['no node', [[undefined, 1]], [false], []],
    ['the first node', [[arm, 1]], [true], ['arch:NoSchedule']],
    [
      'two nodes with the same',
      [
        [arm, 1],
        [arm, 1],
      ],
      [true, false],
      ['arch:NoSchedule'],
    ],
    [
      'another taint on the second',
      [
        [arm, 1],
        [both, 1],
      ],
      [true, true],
      ['arch:NoSchedule', 'gpu:NoSchedule'],
    ],
    [
      'one of two gone',
      [
        [arm, 1],
        [arm, 1],
        [arm, -1],
      ],
      [true, false, false],
      ['arch:NoSchedule'],
    ],
    [
      'the last one gone',
      [
        [arm, 1],
        [arm, -1],
      ],
      [true, true],
      [],
    ],
    [
      'one taint of two gone with its node',
      [
        [arm, 1],
        [both, 1],
        [both, -1],
      ],
      [true, true, true],
      ['arch:NoSchedule'],
    ],
  ];
  for (const [given, steps, changes, all] of rows) {
    it(`are counted: ${given}`, () => {
      const live = createTally(taintKinds);
      expect(steps.map(([subject, step]) => live.count(subject, step))).to.deep.equal(changes);
      expect([...live.all()].sort()).to.deep.equal(all);
    });
  }
});
