import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import type { Placement } from '../../../src/placement/decide.ts';
import { type Node, readNode } from '../../../src/placement/nodes/node.ts';
import { readWorkload } from '../../../src/placement/objects/workload.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { createSpreadLimits, type SpreadLimit } from '../../../src/placement/spread/limit.ts';
import { lastingNodes } from '../../../src/placement/spread/nodes.ts';
import { rollsAhead, spreadPod } from '../../../src/placement/spread/pod.ts';
import { settings } from '../objects.ts';
import { CONSTELLATIONS, type Constellation, DOMAINS, spread } from './constellations.ts';

const NODES = Object.entries(DOMAINS).map(([name, labels]) => nodeOf(name, labels));

function nodeOf(name: string, labels: JsonObject, more: JsonObject = {}): Node {
  const [architecture = ''] = name.split('-');
  const taints = name === 'arm64-2' ? { taints: [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }] } : {};
  return readNode({
    metadata: { name, labels: { 'kubernetes.io/hostname': name, 'kubernetes.io/arch': architecture, ...labels } },
    spec: { ...taints, ...more },
    status: { nodeInfo: { architecture }, conditions: [{ type: 'Ready', status: 'True' }] },
  });
}

function placed(architectures: readonly string[]): Placement {
  return {
    ...{ kind: 'place', architectures, basis: 'images', followsCluster: false, os: undefined },
    ...{ failed: [], unknown: [], images: [] },
  };
}

/** The limit on a Deployment, in a mode; the nodes are not tainted yet. */
function limitOn(
  { image, constraints, spec = {}, labels = {}, others = [] }: Constellation,
  mode: Settings['mode'] = 'taints',
  nodes: readonly Node[] = NODES,
): SpreadLimit | undefined {
  const own = settings({ mode });
  const metadata = { name: 'web', namespace: 'shop', labels: { app: 'web', ...labels } };
  const template = { metadata, spec: { ...spec, topologySpreadConstraints: constraints } };
  const workload = readWorkload({ kind: 'Deployment', metadata, spec: { template } });
  if (workload === undefined) throw new Error('there is no Deployment');
  const pod = spreadPod(
    { ...workload, constraints: workload.spread },
    placed(image === 'multi' ? ['amd64', 'arm64'] : [image]),
    own,
  );
  return createSpreadLimits(lastingNodes(nodes, own), own.taints)(pod, () =>
    others.map(({ on, labels: of }) => ({ nodeName: on, labels: of })),
  );
}

const HOST: Constellation = { title: '', image: 'amd64', replicas: 4, constraints: [spread('host')], runs: 2 };

describe('the limit of a topology spread constraint', () => {
  for (const constellation of CONSTELLATIONS) {
    const { title, replicas, runs, isOurs = true } = constellation;
    it(`lets ${runs} of ${replicas} pods run: ${title}`, () => {
      const limit = limitOn(constellation);
      if (isOurs) expect(Math.min(replicas, limit?.most ?? replicas)).to.equal(runs);
      else expect(limit).to.equal(undefined);
    });
  }

  const modes: readonly (readonly [mode: Settings['mode'], more: JsonObject, most: number | undefined])[] = [
    ['taints', {}, 2],
    ['both', {}, undefined],
    ['affinity', {}, undefined],
    ['observe', {}, undefined],
    ['taints', { nodeAffinityPolicy: 'Ignore' }, 2],
    ['both', { nodeAffinityPolicy: 'Ignore' }, 2],
    ['affinity', { nodeAffinityPolicy: 'Ignore' }, 2],
    ['both', { nodeAffinityPolicy: 'Ignore', nodeTaintsPolicy: 'Honor' }, undefined],
    ['affinity', { nodeAffinityPolicy: 'Ignore', nodeTaintsPolicy: 'Honor' }, 2],
  ];
  for (const [mode, more, most] of modes) {
    const how = Object.entries(more).map(([key, value]) => `${key}: ${value}`);
    it(`lets ${most ?? 'all'} pods run in the mode ${mode}${how.length > 0 ? ` with ${how.join(', ')}` : ''}`, () => {
      expect(limitOn({ ...HOST, constraints: [spread('host', more)] }, mode)?.most).to.equal(most);
    });
  }

  const cures: readonly (readonly [
    title: string,
    mode: Settings['mode'],
    more: JsonObject,
    cures: readonly string[],
  ])[] = [
    ['Honor for taints, or node affinity', 'taints', {}, ['honor-taints', 'mode-affinity']],
    ['Honor for taints, where affinity is ignored', 'taints', { nodeAffinityPolicy: 'Ignore' }, ['honor-taints']],
    ['either Honor in the mode both', 'both', { nodeAffinityPolicy: 'Ignore' }, ['honor-taints', 'honor-affinity']],
    ['Honor for affinity in the mode affinity', 'affinity', { nodeAffinityPolicy: 'Ignore' }, ['honor-affinity']],
    ['none, where minDomains asks for more', 'taints', { minDomains: 3 }, []],
  ];
  for (const [title, mode, more, expected] of cures) {
    it(`is cured by ${title}`, () => {
      expect(limitOn({ ...HOST, constraints: [spread('host', more)] }, mode)?.cures).to.deep.equal(expected);
    });
  }

  it('names the domains that stay empty, with their nodes and taints', () => {
    const limit = limitOn({ ...HOST, constraints: [spread('shelf')] });
    expect(limit).to.deep.include({ most: 1, cures: ['honor-taints', 'mode-affinity'] });
    expect(limit?.empty).to.deep.equal([
      { name: '2', nodes: ['arm64-1'], taints: ['supported-arch=arm64:NoSchedule'] },
      { name: '3', nodes: ['arm64-2'], taints: ['gpu=yes:NoSchedule', 'supported-arch=arm64:NoSchedule'] },
    ]);
  });

  const passing: readonly (readonly [title: string, more: JsonObject])[] = [
    ['is cordoned', { unschedulable: true }],
    ['is not ready', { taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }] }],
    ['is being removed', { taints: [{ key: 'ToBeDeletedByClusterAutoscaler', value: '1', effect: 'NoSchedule' }] }],
  ];
  for (const [title, more] of passing) {
    it(`does not count as empty what passes: a node that ${title}`, () => {
      const nodes = [nodeOf('amd64-1', { host: 'h1' }), nodeOf('amd64-2', { host: 'h2' }, more)];
      expect(limitOn(HOST, 'taints', nodes)).to.equal(undefined);
      expect(limitOn(HOST, 'taints', [...nodes, nodeOf('arm64-1', { host: 'h3' })])?.most).to.equal(2);
    });
  }

  it('sets no limit by a taint that only prefers', () => {
    const own = settings();
    const taints = { ...own.taints, effect: 'PreferNoSchedule' };
    const nodes = lastingNodes(NODES, { ...own, taints });
    const workload = readWorkload({
      kind: 'Deployment',
      spec: {
        template: { metadata: { labels: { app: 'web' } }, spec: { topologySpreadConstraints: [spread('host')] } },
      },
    });
    if (workload === undefined) throw new Error('there is no Deployment');
    const given = { ...workload, constraints: workload.spread };
    const pod = spreadPod(given, placed(['amd64']), { ...own, taints });
    expect(createSpreadLimits(nodes, taints)(pod, () => [])).to.equal(undefined);
  });
});

describe('whether a rollout starts a new pod before it stops an old one', () => {
  const rows: readonly (readonly [kind: string, strategy: JsonObject | undefined, replicas: number, ahead: boolean])[] =
    [
      ['Deployment', undefined, 1, true],
      ['Deployment', undefined, 3, true],
      ['Deployment', undefined, 4, false],
      ['Deployment', { type: 'Recreate' }, 1, false],
      ['Deployment', { rollingUpdate: { maxUnavailable: 1 } }, 2, false],
      ['Deployment', { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } }, 10, true],
      ['Deployment', { rollingUpdate: { maxUnavailable: '10%', maxSurge: 0 } }, 4, false],
      ['StatefulSet', undefined, 1, false],
    ];
  for (const [kind, strategy, replicas, ahead] of rows) {
    it(`${ahead ? 'yes' : 'no'}: ${kind} of ${replicas}, ${JSON.stringify(strategy ?? 'the default')}`, () => {
      expect(rollsAhead(kind, strategy === undefined ? {} : { strategy }, replicas)).to.equal(ahead);
    });
  }
});
