import { expect } from 'chai';
import { taintText } from '../../../src/placement/nodes/managed.ts';
import {
  nodesWithUnmanagedTaints,
  unmanagedTaintNote,
  unmanagedTaints,
} from '../../../src/placement/nodes/unmanaged.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { node, settings, taint } from '../objects.ts';

const OURS = 'supported-arch=arm64:NoSchedule';
const RECORDED = { taints: [OURS] };

type Row = [
  what: string,
  loop: 'with the loop' | 'without the loop',
  given: Partial<Settings>,
  taints: readonly string[],
  recorded: unknown,
  unmanaged: readonly string[],
];

const { taints: TAINTS } = settings();
const AFFINITY: Partial<Settings> = { mode: 'affinity', taints: { ...TAINTS, manage: false } };
const PROVIDER: Partial<Settings> = { taints: { ...TAINTS, manage: false } };
const OBSERVE: Partial<Settings> = { mode: 'observe' };
const KEY_OF_PROVIDER = { ...TAINTS, manage: false, key: 'kubernetes.io/arch' };

const ROWS: readonly Row[] = [
  ['recorded', 'with the loop', {}, [OURS], RECORDED, []],
  [
    'recorded under another key',
    'with the loop',
    {},
    ['old=arm64:NoSchedule'],
    { taints: ['old=arm64:NoSchedule'] },
    [],
  ],
  ['not recorded, with our key', 'with the loop', {}, [OURS], undefined, []],
  ['recorded', 'without the loop', {}, [OURS], RECORDED, [OURS]],
  ['not recorded, with our key', 'without the loop', {}, [OURS], undefined, [OURS]],
  ['recorded, in the mode affinity', 'with the loop', AFFINITY, [OURS], RECORDED, []],
  ['recorded, in the mode affinity', 'without the loop', AFFINITY, [OURS], RECORDED, [OURS]],
  ['not recorded, with our key, in the mode affinity', 'with the loop', AFFINITY, [OURS], undefined, [OURS]],
  ['with our key and another value', 'with the loop', AFFINITY, ['supported-arch=x:NoSchedule'], undefined, []],
  ['with our key and another effect', 'with the loop', AFFINITY, ['supported-arch=arm64:NoExecute'], undefined, []],
  ["others'", 'without the loop', AFFINITY, ['dedicated=infra:NoSchedule'], undefined, []],
  ['recorded, and gone from the node', 'without the loop', AFFINITY, [], RECORDED, []],
  ['recorded, with taints.manage: false', 'with the loop', PROVIDER, [OURS], RECORDED, []],
  ['recorded, with taints.manage: false', 'without the loop', PROVIDER, [OURS], RECORDED, [OURS]],
  ["the provider's, with taints.manage: false", 'without the loop', PROVIDER, [OURS], undefined, []],
  ['recorded, in the mode observe', 'without the loop', OBSERVE, [OURS], RECORDED, [OURS]],
  ['not recorded, with our key, in the mode observe', 'without the loop', OBSERVE, [OURS], undefined, [OURS]],
  [
    "the provider's, with taints.manage: false, in the mode observe",
    'without the loop',
    { ...OBSERVE, ...PROVIDER },
    [OURS],
    undefined,
    [],
  ],
  [
    "the provider's, with a key of Kubernetes",
    'without the loop',
    { mode: 'affinity', taints: KEY_OF_PROVIDER },
    ['kubernetes.io/arch=arm64:NoSchedule'],
    undefined,
    [],
  ],
];

describe('taints that the configuration does not manage', () => {
  const nodeWith = (taints: readonly string[], recorded: unknown) =>
    node({
      architecture: 'arm64',
      taints: taints.map((text) => taint(text)),
      ...(recorded === undefined ? {} : { managed: JSON.stringify(recorded) }),
    });

  for (const [what, loop, given, taints, recorded, unmanaged] of ROWS) {
    it(`${what}, ${loop}: ${unmanaged.join() || 'none'}`, () => {
      const found = unmanagedTaints(nodeWith(taints, recorded), settings(given), loop === 'with the loop');
      expect(found.map(taintText)).to.deep.equal(unmanaged);
    });
  }

  it('are listed by node', () => {
    const nodes = [nodeWith([OURS], RECORDED), nodeWith([], undefined)];
    const found = nodesWithUnmanagedTaints(nodes, settings(AFFINITY), false);
    expect(found.map((each) => each.node)).to.deep.equal([nodes[0]]);
  });

  it('are reported with the reason, the consequence and what to do', () => {
    const taints = unmanagedTaints(nodeWith([OURS], RECORDED), settings(AFFINITY), false);
    expect(unmanagedTaintNote(taints, settings(AFFINITY), false, 2)).to.equal(
      "taint supported-arch=arm64:NoSchedule is archaware's, and this configuration does not manage it (the loop for nodes " +
        'does not run): new pods without a toleration stay Pending; let the loop for nodes run until it is gone, or run ' +
        'archaware-controller clean; 2 more node(s) have such taints',
    );
    expect(unmanagedTaintNote(taints, settings(AFFINITY), true, 0)).to.include(
      'kubectl taint nodes NAME supported-arch:NoSchedule-',
    );
    expect(unmanagedTaintNote(taints, settings(OBSERVE), false, 0)).to.equal(
      "taint supported-arch=arm64:NoSchedule is archaware's, and this configuration does not manage it (placement.mode is " +
        'observe, which writes nothing): new pods without a toleration stay Pending; run archaware-controller clean; ' +
        'archaware is not ready until then',
    );
  });
});
