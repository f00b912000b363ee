import { expect } from 'chai';
import { findLeftovers, leftoverNote } from '../../../src/cli/plan/plan-notes.ts';
import { readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { node, settings, taint, toleration } from '../../placement/objects.ts';

const TAINT = 'supported-arch=arm64:NoSchedule';
const { taints: TAINTS } = settings();
const AFFINITY: Partial<Settings> = { mode: 'affinity', taints: { ...TAINTS, manage: false } };
const PROVIDER: Partial<Settings> = { taints: { ...TAINTS, manage: false, key: 'kubernetes.io/arch' } };

const TAINTED = node({ taints: [taint(TAINT)], managed: [TAINT] });
const CLEAN = node({ taints: [taint('dedicated=infra:NoSchedule')] });
const daemonSet = (name: string, ...recorded: readonly string[]) =>
  readDaemonSet({
    metadata: {
      namespace: 'kube-system',
      name,
      annotations: { 'archaware.dev/tolerations': JSON.stringify(recorded.map(toleration)) },
    },
  });
const TOLERATING = daemonSet('cni', TAINT);
const PLAIN = daemonSet('proxy');

type Row = [
  what: string,
  given: Partial<Settings>,
  input: [nodes: (typeof TAINTED)[], sets: (typeof TOLERATING)[] | undefined],
  expected: RegExp | undefined,
  managesNodes?: false,
];

const PROVIDERS = /^1 node\(s\) \(n1\) still carry .*without-node-taints/;
const FOREIGN = node({ taints: [taint('kubernetes.io/arch=arm64:NoSchedule')] });
const MAY = /^no node and no DaemonSet .*: the component without-taints \(withoutTaints in the chart\) may be used$/;
const NODE = /^1 node\(s\) \(n1\) still carry .*do not use the component without-taints .* yet$/;
const SET = /^1 DaemonSet\(s\) \(kube-system\/cni\) still carry .* yet$/;
const EACH = /^1 node\(s\) \(n1\) and 1 DaemonSet\(s\) \(kube-system\/cni\) still/;
const OF_NODES = /^no node carries .*; DaemonSets were not looked at$/;
const ROWS: readonly Row[] = [
  ['a configuration that sets taints', {}, [[TAINTED], [TOLERATING]], undefined],
  ['affinity, nothing left', AFFINITY, [[CLEAN], [PLAIN]], MAY],
  ['affinity, a node', AFFINITY, [[CLEAN, TAINTED], [PLAIN]], NODE],
  ['affinity, a DaemonSet', AFFINITY, [[CLEAN], [PLAIN, TOLERATING]], SET],
  ['affinity, both', AFFINITY, [[TAINTED], [TOLERATING]], EACH],
  ['affinity, without the loop', AFFINITY, [[TAINTED], undefined], /this configuration does not remove them/, false],
  ['affinity without the loops, nothing left', AFFINITY, [[CLEAN], undefined], OF_NODES, false],
  ["the provider's taints, and one of ours", PROVIDER, [[TAINTED], [TOLERATING]], PROVIDERS],
  ["the provider's taints alone", PROVIDER, [[FOREIGN], [TOLERATING]], /without-node-taints .* may be used$/],
];

describe('leftover taints', () => {
  for (const [what, given, [nodes, daemonSets], expected, managesNodes = true] of ROWS) {
    it(`${what}: ${expected === undefined ? 'nothing to say' : 'is said'}`, () => {
      const left = findLeftovers(nodes, daemonSets, settings(given));
      if (expected === undefined) expect(left).to.equal(undefined);
      else expect(left && leftoverNote(left, settings(given), managesNodes)).to.match(expected);
    });
  }

  it('names only a few of many objects', () => {
    const nodes = Array.from({ length: 9 }, (_, index) => ({ ...TAINTED, name: `n${index}` }));
    const left = findLeftovers(nodes, [], settings(AFFINITY));
    expect(left && leftoverNote(left, settings(AFFINITY), true)).to.match(/^9 node\(s\) \(n0, n1, n2, n3, n4, …\)/);
  });
});
