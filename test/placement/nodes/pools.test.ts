import { expect } from 'chai';
import { parseSelector } from '../../../src/kit/label-syntax.ts';
import { taintText } from '../../../src/placement/nodes/managed.ts';
import {
  blocksInitialization,
  joinedUntainted,
  joinedUntaintedNote,
  notInitializedNote,
  type PoolSettings,
  poolOf,
  poolText,
} from '../../../src/placement/nodes/pools.ts';
import { node, settings, taint } from '../objects.ts';

const OURS = 'supported-arch=arm64:NoSchedule';
const KARPENTER = { 'karpenter.sh/nodepool': 'a' };

/** Settings with these changes to `taints`. */
const withTaints = (given: Partial<PoolSettings['taints']>, mode: PoolSettings['mode'] = 'taints'): PoolSettings => ({
  mode,
  taints: { ...settings().taints, ...given },
});

describe('the pool of a node', () => {
  const rows: [labels: Record<string, string>, pool: string | undefined][] = [
    [{}, undefined],
    [{ 'karpenter.sh/nodepool': 'a' }, 'NodePool a'],
    [{ 'eks.amazonaws.com/nodegroup': 'b' }, 'EKS node group b'],
    [{ 'cloud.google.com/gke-nodepool': 'c' }, 'GKE node pool c'],
    [{ 'kubernetes.azure.com/agentpool': 'd' }, 'AKS node pool d'],
    [{ agentpool: 'e' }, 'AKS node pool e'],
    [{ agentpool: 'e', 'karpenter.sh/nodepool': 'a' }, 'NodePool a'],
    [{ agentpool: '' }, undefined],
    [{ pool: 'x' }, undefined],
  ];
  for (const [labels, expected] of rows) {
    it(`with the labels ${JSON.stringify(labels)} is ${expected ?? 'unknown'}`, () => {
      const pool = poolOf(node({ labels }));
      expect(pool && poolText(pool)).to.equal(expected);
    });
  }
});

describe('a node that joins', () => {
  type Row = [
    what: string,
    given: Parameters<typeof node>[0],
    by: PoolSettings,
    /** The taint that is missing; `?` if its value is not known. */
    missing: string | undefined,
  ];
  const plain = withTaints({});
  const selecting = withTaints({ nodeSelector: parseSelector('team=x') });
  /** A node of a pool with these taints. */
  const pooled = (...texts: string[]) => ({ labels: KARPENTER, taints: texts.map((text) => taint(text)) });
  const rows: Row[] = [
    ['of a pool, without the taint', pooled(), plain, OURS],
    ['of a pool, with the taint', pooled(OURS), plain, undefined],
    ['of a pool, with the taint of another architecture', pooled('supported-arch=amd64:NoSchedule'), plain, OURS],
    ['of a pool, with another effect', pooled('supported-arch=arm64:PreferNoSchedule'), plain, OURS],
    ['of no pool', { labels: {} }, plain, undefined],
    ['that is being deleted', { labels: KARPENTER, deleting: true }, plain, undefined],
    ['whose architecture is not known', { labels: KARPENTER, architecture: '' }, plain, '?'],
    ['whose architecture is not known, with the taint', { ...pooled(OURS), architecture: '' }, plain, undefined],
    ['by its label alone', { labels: { ...KARPENTER, 'kubernetes.io/arch': 'arm64' }, architecture: '' }, plain, OURS],
    ['in the mode affinity', pooled(), withTaints({ manage: false }, 'affinity'), undefined],
    ['with taints.manage: false', pooled(), withTaints({ manage: false }), undefined],
    ['outside of taints.nodeSelector', pooled(), selecting, undefined],
  ];
  for (const [what, given, by, missing] of rows) {
    it(`${what}: ${missing === undefined ? 'lacks nothing' : `lacks ${missing}`}`, () => {
      const found = joinedUntainted(node(given), by);
      expect(found && (found.taint === undefined ? '?' : taintText(found.taint))).to.equal(missing);
    });
  }

  it('is reported with the pool, the taint, and what to do', () => {
    const arm64 = { key: 'supported-arch', value: 'arm64', effect: 'NoSchedule' };
    expect(joinedUntaintedNote({ kind: 'NodePool', name: 'a' }, arm64, plain)).to.equal(
      'the node joined NodePool a without the taint supported-arch=arm64:NoSchedule. The controller sets the taint, but an ' +
        'autoscaler that plans without it may start nodes that pending pods cannot use. Add the taint to ' +
        'spec.template.spec.taints of a NodePool for one architecture, or use placement.mode: affinity (docs/autoscalers.md)',
    );
    expect(joinedUntaintedNote({ kind: 'EKS node group', name: 'b' }, undefined, plain)).to.match(
      /joined EKS node group b without the taint supported-arch=<architecture>:NoSchedule\..* Add the taint to the taints of EKS node group b, so that its nodes register with it/,
    );
  });
});

describe('a node of Karpenter that is not initialized', () => {
  const REGISTERED = { ...KARPENTER, 'karpenter.sh/registered': 'true' };
  const rows: [what: string, labels: Record<string, string>, taints: string[], blocked: boolean][] = [
    ['with the taint alone', REGISTERED, [OURS], true],
    ['with the taint alone, under another value and effect', REGISTERED, ['supported-arch=x:PreferNoSchedule'], true],
    ['without a taint', REGISTERED, [], false],
    ['with one more taint', REGISTERED, [OURS, 'node.kubernetes.io/not-ready:NoSchedule'], false],
    ['with a taint of others', REGISTERED, ['node.cilium.io/agent-not-ready:NoExecute'], false],
    ['that has not joined', KARPENTER, [OURS], false],
    ['that is initialized after all', { ...REGISTERED, 'karpenter.sh/initialized': 'true' }, [OURS], false],
  ];
  for (const [what, labels, taints, blocked] of rows) {
    it(`${what}, ${blocked ? 'waits' : 'does not wait'} for the taint of archaware to go`, () => {
      const found = blocksInitialization(node({ labels, taints: taints.map((text) => taint(text)) }), settings());
      expect(found && taintText(found)).to.equal(blocked ? taints[0] : undefined);
    });
  }

  it('is reported with the pool and what to do', () => {
    const arm64 = { key: 'supported-arch', value: 'arm64', effect: 'NoSchedule' };
    expect(notInitializedNote(node({ labels: REGISTERED }), arm64, 5)).to.equal(
      'Karpenter has not initialized the node for 5 minutes, and supported-arch=arm64:NoSchedule is the only taint that is left. ' +
        'If that taint is in startupTaints of NodePool a, move it to taints: it is never removed, so Karpenter keeps counting the ' +
        'node as free for every pod, and starts no other (docs/autoscalers.md)',
    );
  });
});
