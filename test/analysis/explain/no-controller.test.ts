import { expect } from 'chai';
import {
  adviseAway,
  awayText,
  type ControllerState,
  checkController,
  handsOf,
} from '../../../src/analysis/explain/no-controller.ts';
import { readNode } from '../../../src/placement/nodes/node.ts';
import { settings } from '../../placement/objects.ts';

const spec = { taints: [{ key: 'supported-arch', value: 'amd64', effect: 'NoSchedule' }] };
const TAINTED = [readNode({ metadata: { name: 'n' }, spec })];
const UNTAINTED = [readNode({ metadata: { name: 'n' }, spec: {} })];
const noLeader = { kind: 'no-leader', lease: 'tools/lease', deployment: 'tools/arch', wanted: 2 } as const;

describe('the advice about the controller', () => {
  const rows: [
    what: string,
    state: ControllerState | undefined,
    nodes: typeof TAINTED,
    expected: string | undefined,
  ][] = [
    ['nothing where it is not known', undefined, TAINTED, undefined],
    ['nothing where a replica leads', { kind: 'leads', deployment: 'tools/arch' }, TAINTED, undefined],
    [
      'the runbook where no replica leads',
      noLeader,
      TAINTED,
      'no replica leads (Lease tools/lease), so nothing is written: docs/alerts.md, "ArchawareNoLeader"; archaware status shows the rest',
    ],
    [
      'to scale where the Deployment wants no replica',
      { ...noLeader, wanted: 0 },
      TAINTED,
      'no replica leads (Lease tools/lease), so nothing is written: the Deployment is scaled to 0: kubectl -n tools scale deployment/arch --replicas=2; archaware status shows the rest',
    ],
    [
      'clean where archaware is gone and its taint is not',
      { kind: 'not-installed' },
      TAINTED,
      'archaware is not installed, but nodes have its taint supported-arch:NoSchedule: install it (docs/install.md), or remove what it left with archaware clean',
    ],
    [
      'the installation where there is no taint either',
      { kind: 'not-installed' },
      UNTAINTED,
      'archaware is not installed, so nothing is written: install it (docs/install.md), or remove what it left with archaware clean',
    ],
  ];
  for (const [what, state, nodes, expected] of rows)
    it(`is ${what}`, () => expect(adviseAway(state, nodes, settings())).to.equal(expected));

  const hands: [state: ControllerState | undefined, mode: 'taints' | 'observe', expected: string, away?: string][] = [
    [undefined, 'taints', 'acts'],
    [{ kind: 'leads', deployment: undefined }, 'taints', 'acts'],
    [{ kind: 'leads', deployment: undefined }, 'observe', 'observes'],
    [noLeader, 'taints', 'no-leader', 'no replica of archaware leads'],
    [noLeader, 'observe', 'observes'],
    [{ kind: 'unknown' }, 'taints', 'unknown'],
    [{ kind: 'not-installed' }, 'taints', 'not-installed', 'archaware is not installed'],
    [{ kind: 'not-installed' }, 'observe', 'not-installed', 'archaware is not installed'],
  ];
  for (const [state, mode, expected, away] of hands) {
    it(`is for one that ${expected}: ${state?.kind ?? 'no state'} in the mode ${mode}`, () => {
      const found = handsOf(state, { mode });
      expect([found, awayText(found)]).to.deep.equal([expected, away]);
    });
  }

  it('names the Deployment whose log to read, or that the controller runs elsewhere', () => {
    expect(checkController({ kind: 'leads', deployment: 'tools/arch' })).to.include(
      'kubectl -n tools logs deployment/arch',
    );
    expect(checkController({ kind: 'leads', deployment: undefined })).to.include('outside of the cluster');
    expect(checkController(undefined)).to.include('kubectl -n archaware logs deployment/archaware-controller');
  });
});
