import { expect } from 'chai';
import { nodePoolProblems, readNodePool } from '../../../src/analysis/nodes/node-pools.ts';
import { type PooledPod, planPools } from '../../../src/analysis/nodes/pool-plan.ts';
import type { JsonObject } from '../../../src/kit/json.ts';
import { readDemands } from '../../../src/placement/fit.ts';
import type { PoolSettings } from '../../../src/placement/nodes/pools.ts';
import { settings } from '../../placement/objects.ts';
import { jsonPatch } from '../../simulator/objects/patch.ts';
import { node } from '../readiness/world.ts';

type Given = {
  architectures?: readonly string[];
  weight?: number;
  taints?: JsonObject[];
  startupTaints?: JsonObject[];
};

const taint = (value: string, key = 'supported-arch') => ({ key, value, effect: 'NoSchedule' });
const requirement = (values: readonly string[]) => ({ key: 'kubernetes.io/arch', operator: 'In', values });

function pool(name: string, { architectures, weight, ...more }: Given): JsonObject {
  const requirements = [{ key: 'topology.kubernetes.io/zone', operator: 'Exists' }];
  const all = architectures === undefined ? requirements : [requirement(architectures), ...requirements];
  const labels = { team: name };
  const template = { metadata: { labels }, spec: { requirements: all, nodeClassRef: { name: 'default' }, ...more } };
  return {
    metadata: { name, uid: name },
    spec: { template, limits: { cpu: '9' }, ...(weight === undefined ? {} : { weight }) },
  };
}

function pod(architectures: readonly string[] | undefined, spec: JsonObject = {}): PooledPod {
  return { architectures, demands: readDemands(spec) };
}

/** What every NodePool is once all steps are carried out, and whether anything is still wrong. */
function afterSteps(objects: readonly JsonObject[], by: PoolSettings = settings()) {
  const all = objects.flatMap((object, index) => {
    const [plan] = planPools([object], [node('amd64'), node('arm64')], [], by);
    const made = (plan?.steps ?? []).flatMap((step) => (step.kind === 'create' ? [step.manifest] : []));
    const patches = (plan?.steps ?? []).flatMap((step) => (step.kind === 'patch' ? step.patch : []));
    return [jsonPatch(objects[index] ?? {}, JSON.stringify(patches)), ...made];
  });
  return all.map((object) => {
    const read = readNodePool(object);
    const problems = read === undefined ? [] : nodePoolProblems(read, by).map(({ problem }) => problem);
    const taints = read?.taints.map(({ key, value }) => `${key}=${value}`);
    const { weight } = object.spec as JsonObject;
    return {
      name: read?.name,
      architectures: read?.architectures,
      taints,
      startup: read?.startupTaints.length,
      weight,
      problems,
    };
  });
}

describe('the steps for a NodePool', () => {
  const right = (name: string, architecture: string, more: JsonObject = {}) => ({
    ...{ name, architectures: [architecture], taints: [`supported-arch=${architecture}`] },
    ...{ startup: 0, weight: undefined, problems: [] },
    ...more,
  });
  const others = taint('gpu', 'example.com/only');
  const cases: readonly [string, Given, readonly JsonObject[]][] = [
    ['lacks the taint', { architectures: ['arm64'] }, [right('a', 'arm64')]],
    ['has it in startupTaints', { architectures: ['arm64'], startupTaints: [taint('arm64')] }, [right('a', 'arm64')]],
    ['has the one of another', { architectures: ['arm64'], taints: [taint('amd64')] }, [right('a', 'arm64')]],
    [
      'allows two',
      { architectures: ['amd64', 'arm64'], weight: 30, taints: [others] },
      [
        right('a', 'amd64', { weight: 30, taints: ['example.com/only=gpu', 'supported-arch=amd64'] }),
        right('a-arm64', 'arm64', { weight: 29, taints: ['example.com/only=gpu', 'supported-arch=arm64'] }),
      ],
    ],
    [
      'names none, and has the taint of one',
      { taints: [taint('amd64')] },
      [right('a', 'amd64', { weight: 10 }), right('a-arm64', 'arm64', { weight: 9 })],
    ],
    ['is right', { architectures: ['arm64'], taints: [taint('arm64')] }, [right('a', 'arm64')]],
  ];
  for (const [what, given, expected] of cases)
    it(`bring one in line that ${what}`, () => expect(afterSteps([pool('a', given)])).to.deep.equal(expected));

  it('remove the taint in the mode affinity, and nothing else', () => {
    const given = { architectures: ['amd64', 'arm64'], taints: [others, taint('amd64')] };
    const [after, ...more] = afterSteps([pool('a', given)], settings({ mode: 'affinity' }));
    expect([after?.taints, after?.architectures, after?.problems, more]).to.deep.equal([
      ['example.com/only=gpu'],
      ['amd64', 'arm64'],
      [],
      [],
    ]);
  });
});

describe('how many pods a pool could run', () => {
  const shares = (pods: readonly PooledPod[], by: PoolSettings = settings()) =>
    planPools(
      [
        pool('both', { architectures: ['amd64', 'arm64'] }),
        pool('arm', { architectures: ['arm64'], taints: [taint('arm64')] }),
      ],
      [node('amd64', { labels: { 'eks.amazonaws.com/nodegroup': 'old', disk: 'ssd' } })],
      pods,
      by,
    ).map(({ kind, name, couldRun, pods: all }) => `${kind} ${name} ${couldRun}/${all}`);
  const none = ['EKS node group old 0/1', 'NodePool arm 0/1', 'NodePool both 0/1'];
  const cases: readonly [string, PooledPod, readonly string[]][] = [
    ['for amd64', pod(['amd64']), ['EKS node group old 1/1', 'NodePool arm 0/1', 'NodePool both 1/1']],
    ['for arm64', pod(['arm64']), ['EKS node group old 0/1', 'NodePool arm 1/1', 'NodePool both 1/1']],
    ['whose images are not known', pod([]), none],
    ['left alone by archaware', pod(undefined), ['EKS node group old 1/1', 'NodePool arm 0/1', 'NodePool both 1/1']],
    [
      'for a zone, which is chosen with the node',
      pod(['arm64'], { nodeSelector: { 'topology.kubernetes.io/zone': 'a' } }),
      ['EKS node group old 0/1', 'NodePool arm 1/1', 'NodePool both 1/1'],
    ],
    [
      'for a label of one of them',
      pod(['amd64', 'arm64'], { nodeSelector: { disk: 'ssd' } }),
      ['EKS node group old 1/1', 'NodePool arm 0/1', 'NodePool both 0/1'],
    ],
    [
      'for another architecture by its own selector, on its node',
      pod(['amd64', 'arm64'], { nodeName: 'x', nodeSelector: { 'kubernetes.io/arch': 's390x' } }),
      none,
    ],
  ];
  for (const [what, one, expected] of cases)
    it(`counts a pod ${what}`, () => expect(shares([one])).to.deep.equal(expected));
});
