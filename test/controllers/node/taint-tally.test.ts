import { expect } from 'chai';
import { createTally } from '../../../src/controllers/node/witnesses.ts';
import { taintKinds } from '../../../src/placement/nodes/node.ts';
import { node, taint } from '../../placement/objects.ts';

describe('the taints that nodes of the cluster have', () => {
  const arm = node({ taints: [taint('arch=arm64:NoSchedule'), taint('node.kubernetes.io/not-ready:NoExecute')] });
  const both = node({ taints: [taint('arch=amd64:NoSchedule'), taint('gpu=yes:NoSchedule')] });

  /** Nodes that come and go, `+arm -both`; whether each changes something; the taints in the end. */
  const rows: [given: string, steps: string, changes: boolean[], all: string[]][] = [
    ['no node', '+none', [false], []],
    ['the first node', '+arm', [true], ['arch:NoSchedule']],
    ['two nodes with the same', '+arm +arm', [true, false], ['arch:NoSchedule']],
    ['another taint on the second', '+arm +both', [true, true], ['arch:NoSchedule', 'gpu:NoSchedule']],
    ['one of two gone', '+arm +arm -arm', [true, false, false], ['arch:NoSchedule']],
    ['the last one gone', '+arm -arm', [true, true], []],
    ['one taint of two gone with its node', '+arm +both -both', [true, true, true], ['arch:NoSchedule']],
  ];
  for (const [given, steps, changes, all] of rows) {
    it(`are counted: ${given}`, () => {
      const live = createTally(taintKinds);
      const counted = steps.split(' ').map((step) => {
        const subject = step.endsWith('arm') ? arm : step.endsWith('both') ? both : undefined;
        return live.count(subject, step.startsWith('+') ? 1 : -1);
      });
      expect(counted).to.deep.equal(changes);
      expect([...live.all()].sort()).to.deep.equal(all);
    });
  }
});
