import { expect } from 'chai';
import { nodesWithUnmanagedTaints } from '../../../src/placement/nodes/managed.ts';
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
  isUnmanaged: boolean,
];

const { taints: TAINTS } = settings();
const AFFINITY: Partial<Settings> = { mode: 'affinity', taints: { ...TAINTS, manage: false } };
const PROVIDER: Partial<Settings> = { taints: { ...TAINTS, manage: false } };
const OBSERVE: Partial<Settings> = { mode: 'observe' };
const ARCH = 'kubernetes.io/arch=arm64:NoSchedule';
const OLD = 'old=arm64:NoSchedule';
const BY_KUBERNETES: Partial<Settings> = {
  mode: 'affinity',
  taints: { ...TAINTS, manage: false, key: 'kubernetes.io/arch' },
};
const NEITHER: Partial<Settings> = { ...OBSERVE, ...PROVIDER };

const ROWS: readonly Row[] = [
  ['recorded', 'with the loop', {}, [OURS], RECORDED, false],
  ['recorded under another key', 'with the loop', {}, [OLD], { taints: [OLD] }, false],
  ['not recorded, with our key', 'with the loop', {}, [OURS], undefined, false],
  ['recorded', 'without the loop', {}, [OURS], RECORDED, true],
  ['not recorded, with our key', 'without the loop', {}, [OURS], undefined, true],
  ['recorded, in the mode affinity', 'with the loop', AFFINITY, [OURS], RECORDED, false],
  ['recorded, in the mode affinity', 'without the loop', AFFINITY, [OURS], RECORDED, true],
  ['not recorded, with our key, in the mode affinity', 'with the loop', AFFINITY, [OURS], undefined, true],
  ['with our key and another value', 'with the loop', AFFINITY, ['supported-arch=x:NoSchedule'], undefined, false],
  ['with our key and another effect', 'with the loop', AFFINITY, ['supported-arch=arm64:NoExecute'], undefined, false],
  ["others'", 'without the loop', AFFINITY, ['dedicated=infra:NoSchedule'], undefined, false],
  ['recorded, and gone from the node', 'without the loop', AFFINITY, [], RECORDED, false],
  ['recorded, with taints.manage: false', 'with the loop', PROVIDER, [OURS], RECORDED, false],
  ['recorded, with taints.manage: false', 'without the loop', PROVIDER, [OURS], RECORDED, true],
  ["the provider's, with taints.manage: false", 'without the loop', PROVIDER, [OURS], undefined, false],
  ['recorded, in the mode observe', 'without the loop', OBSERVE, [OURS], RECORDED, true],
  ['not recorded, with our key, in the mode observe', 'without the loop', OBSERVE, [OURS], undefined, true],
  ["the provider's, where archaware observes as well", 'without the loop', NEITHER, [OURS], undefined, false],
  ["the provider's, with a key of Kubernetes", 'without the loop', BY_KUBERNETES, [ARCH], undefined, false],
];

describe('taints that the configuration does not manage', () => {
  const nodeWith = (taints: readonly string[], recorded: unknown) =>
    node({
      architecture: 'arm64',
      taints: taints.map((text) => taint(text)),
      ...(recorded === undefined ? {} : { managed: JSON.stringify(recorded) }),
    });

  for (const [what, loop, given, taints, recorded, isUnmanaged] of ROWS) {
    it(`${what}, ${loop}: ${isUnmanaged ? 'not managed' : 'managed, or of somebody else'}`, () => {
      const nodes = [nodeWith(taints, recorded), nodeWith([], undefined)];
      const found = nodesWithUnmanagedTaints(nodes, settings(given), loop === 'with the loop');
      expect(found).to.deep.equal(isUnmanaged ? [nodes[0]] : []);
    });
  }
});
