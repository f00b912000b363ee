import { expect } from 'chai';
import { nextNode } from '../../../src/analysis/workloads/next-node.ts';
import type { JsonObject } from '../../../src/kit/json.ts';
import { readDemands } from '../../../src/placement/fit.ts';
import { node, settings, taint, toleration } from '../../placement/objects.ts';

type NextCase = {
  readonly spec?: JsonObject;
  readonly written?: boolean;
  readonly mode?: 'taints' | 'both' | 'affinity' | 'observe';
  /** More taints of the only amd64 node. */
  readonly taints?: readonly string[];
  readonly runsOn?: string;
};

const EXISTS = { tolerations: [{ operator: 'Exists' }] };
const GPU = ['gpu=yes:NoSchedule'];

describe('a new pod like one whose images run on amd64, on a node of arm64', () => {
  const rows: readonly (readonly [what: string, given: NextCase, expected: 'nowhere' | 'back' | undefined])[] = [
    ['goes to the node of amd64', {}, undefined],
    ['goes there in the mode affinity', { mode: 'affinity' }, undefined],
    ['goes nowhere if no node has the architecture', { runsOn: 's390x' }, 'nowhere'],
    ['goes nowhere if that node has a taint of somebody else', { taints: GPU }, 'nowhere'],
    ['the same in the mode observe', { mode: 'observe', taints: GPU }, 'nowhere'],
    [
      'goes there if it tolerates that taint',
      { taints: GPU, spec: { tolerations: [{ key: 'gpu', operator: 'Exists' }] } },
      undefined,
    ],
    [
      'goes nowhere if it asks for another label',
      { spec: { nodeSelector: { 'kubernetes.io/arch': 'arm64' } } },
      'nowhere',
    ],
    ['may come back if it tolerates every taint', { spec: EXISTS }, 'back'],
    ['does not where affinity keeps it off', { spec: EXISTS, mode: 'both' }, undefined],
    [
      'may come back by a toleration of its own',
      { spec: { tolerations: [toleration('supported-arch=arm64:NoSchedule')] } },
      'back',
    ],
    [
      'does not by a toleration that archaware wrote to the pod',
      { written: true, spec: { tolerations: [toleration('supported-arch=arm64:NoSchedule')] } },
      undefined,
    ],
  ];
  for (const [what, { spec = {}, written, mode = 'taints', taints = [], runsOn = 'amd64' }, expected] of rows) {
    it(what, () => {
      const label = (architecture: string) => ({ architecture, labels: { 'kubernetes.io/arch': architecture } });
      const nodes = [node({ ...label('amd64'), taints: taints.map((text) => taint(text)) }), node(label('arm64'))];
      const demands = readDemands(spec);
      const pod = {
        selects: demands,
        tolerations: demands.tolerations,
        written: written ? { tolerations: true, architectures: undefined } : undefined,
      };
      expect(nextNode(pod, [runsOn], settings({ mode }), nodes)).to.equal(expected);
    });
  }
});
