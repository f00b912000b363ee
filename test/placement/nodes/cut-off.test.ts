import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import { isCutOff, isTaintedFor, unreadyNodesOf, wantsPodOn } from '../../../src/placement/nodes/cut-off.ts';
import { readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import { requires, term } from '../affinities.ts';
import { node as anyNode, settings, taint } from '../objects.ts';

const { taints } = settings();
const KEY = 'supported-arch';
const GPU = { key: 'gpu', value: 'yes', effect: 'NoSchedule' };

const node = (given: Parameters<typeof anyNode>[0] = {}) => anyNode({ architecture: 'amd64', ...given });
const daemonSet = (spec: JsonObject = {}) => readDaemonSet({ spec: { template: { spec } } });
const IN_POOL = { affinity: requires(term('pool In a')) };

describe('a DaemonSet wants a pod on a node', () => {
  const rows: [what: string, wants: boolean, spec: JsonObject, node: Parameters<typeof node>[0]][] = [
    ['without demands', true, {}, {}],
    ['whose label its selector names', true, { nodeSelector: { pool: 'a' } }, { labels: { pool: 'a' } }],
    ['without the label that its selector names', false, { nodeSelector: { pool: 'a' } }, {}],
    ['that its affinity names', true, IN_POOL, { labels: { pool: 'a' } }],
    ['that its affinity does not name', false, IN_POOL, { labels: { pool: 'b' } }],
    ['with a taint of others', false, {}, { taints: [GPU] }],
    ['with a taint that it tolerates', true, { tolerations: [{ key: 'gpu', operator: 'Exists' }] }, { taints: [GPU] }],
    ['with a taint that is only a preference', true, {}, { taints: [{ ...GPU, effect: 'PreferNoSchedule' }] }],
    ['with a taint of others while it is not ready', true, {}, { taints: [GPU], ready: false }],
    ['with our taint', true, {}, { taints: [{ key: KEY, value: 'amd64', effect: 'NoSchedule' }] }],
    ['that is cordoned', true, {}, { taints: [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }] }],
    ['uninitialized', true, {}, { taints: [taint('node.cloudprovider.kubernetes.io/uninitialized:NoSchedule')] }],
  ];
  for (const [what, wants, spec, given] of rows)
    it(`${what}: ${wants}`, () => expect(wantsPodOn(daemonSet(spec), node(given), KEY)).to.equal(wants));
});

describe('the taint cuts a DaemonSet off', () => {
  const tolerating = { tolerations: [{ key: KEY, operator: 'Equal', value: 'amd64', effect: 'NoSchedule' }] };
  const rows: [
    what: string,
    is: boolean,
    spec: JsonObject,
    architectures: string[] | undefined,
    given: Partial<typeof taints>,
  ][] = [
    ['without a toleration', true, {}, ['amd64'], {}],
    ['with it', false, tolerating, ['amd64'], {}],
    ['that tolerates everything', false, { tolerations: [{ operator: 'Exists' }] }, ['amd64'], {}],
    ['whose images do not run there', false, {}, ['arm64'], {}],
    ['whose images are not known', true, {}, undefined, {}],
    ['that does not want the node', false, { nodeSelector: { pool: 'a' } }, ['amd64'], {}],
    ['where the taint is only a preference', false, {}, ['amd64'], { effect: 'PreferNoSchedule' }],
  ];
  for (const [what, is, spec, architectures, given] of rows)
    it(`${what}: ${is}`, () =>
      expect(isCutOff(daemonSet(spec), architectures, node(), { ...taints, ...given })).to.equal(is));

  it('not from a node whose architecture is not known', () =>
    expect(isCutOff(daemonSet(), undefined, node({ architecture: '' }), taints)).to.equal(false));
});

describe('the nodes of a DaemonSet', () => {
  it('that are not ready are counted', () => {
    const nodes = [node(), node({ ready: false }), node({ ready: false, labels: { pool: 'a' } })];
    expect(unreadyNodesOf(daemonSet(), nodes, KEY)).to.equal(2);
    expect(unreadyNodesOf(daemonSet({ nodeSelector: { pool: 'a' } }), nodes, KEY)).to.equal(1);
  });

  it('are tainted if one that it wants is', () => {
    const ours = { key: KEY, value: 'amd64', effect: 'NoSchedule' };
    const nodes = [node(), node({ taints: [ours], labels: { pool: 'a' } })];
    expect(isTaintedFor(daemonSet(), nodes, taints)).to.equal(true);
    expect(isTaintedFor(daemonSet(), [node({ taints: [GPU] })], taints)).to.equal(false);
    expect(isTaintedFor(daemonSet({ nodeSelector: { pool: 'b' } }), nodes, taints)).to.equal(false);
  });
});
