import { expect } from 'chai';
import { findLeftovers, leftoverNote } from '../../../src/cli/plan/left-behind.ts';
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
  managesNodes: boolean,
  input: Parameters<typeof findLeftovers> extends [infer Nodes, infer Sets, unknown] ? [Nodes, Sets] : never,
  expected: RegExp | undefined,
];

const ROWS: readonly Row[] = [
  ['a configuration that sets taints', {}, true, [[TAINTED], [TOLERATING]], undefined],
  [
    'affinity, nothing left',
    AFFINITY,
    true,
    [[CLEAN], [PLAIN]],
    /^no node and no DaemonSet .*: the component without-taints \(withoutTaints in the chart\) may be used$/,
  ],
  [
    'affinity, a node',
    AFFINITY,
    true,
    [[CLEAN, TAINTED], [PLAIN]],
    /^1 node\(s\) \(n1\) still carry .*do not use the component without-taints .* yet$/,
  ],
  [
    'affinity, a DaemonSet',
    AFFINITY,
    true,
    [[CLEAN], [PLAIN, TOLERATING]],
    /^1 DaemonSet\(s\) \(kube-system\/cni\) still carry .* yet$/,
  ],
  [
    'affinity, both',
    AFFINITY,
    true,
    [[TAINTED], [TOLERATING]],
    /^1 node\(s\) \(n1\) and 1 DaemonSet\(s\) \(kube-system\/cni\) still/,
  ],
  [
    'affinity, a node, and nobody to take its taint away',
    AFFINITY,
    false,
    [[TAINTED], undefined],
    /this configuration does not remove them/,
  ],
  [
    'affinity without the loops, nothing left',
    AFFINITY,
    false,
    [[CLEAN], undefined],
    /^no node carries .*; DaemonSets were not looked at$/,
  ],
  [
    "the provider's taints, and one of ours",
    PROVIDER,
    true,
    [[TAINTED], [TOLERATING]],
    /^1 node\(s\) \(n1\) still carry .*without-node-taints/,
  ],
  [
    "the provider's taints alone",
    PROVIDER,
    true,
    [[node({ taints: [taint('kubernetes.io/arch=arm64:NoSchedule')] })], [TOLERATING]],
    /without-node-taints .* may be used$/,
  ],
];

describe('leftover taints', () => {
  for (const [what, given, managesNodes, [nodes, daemonSets], expected] of ROWS) {
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
