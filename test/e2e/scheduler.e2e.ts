import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { nameOf, runs, scheduledOn } from '../support/objects.ts';
import { deployment, type PodOptions, pod, spread } from '../support/workloads.ts';
import { arrange, type Places } from './support/places.ts';
import { worldForAll } from './support/world.ts';

describe('explain, beside the scheduler', () => {
  const world = worldForAll({
    nodes: [
      { name: 'amd64-1', architecture: 'amd64', labels: { disk: 'ssd', cores: '16' } },
      { name: 'amd64-2', architecture: 'amd64', labels: { cores: '8' } },
      { name: 'arm64-1', architecture: 'arm64', labels: { disk: 'hdd', cores: '4' } },
      { name: 'arm64-2', architecture: 'arm64', taints: [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }] },
      { name: 'arm64-3', architecture: 'arm64', labels: { disk: 'ssd' } },
    ],
  });
  let places: Places;

  before(async () => {
    places = await arrange(world);
    await world.patch('Node', '', 'arm64-3', { spec: { unschedulable: true } });
    await world.run();
    await world.eventuallyTainted();
  });

  const explain = async (...args: readonly string[]): Promise<unknown> => {
    const { code, stdout, stderr } = await world.command(['explain', ...args, '--output', 'json']);
    expect([code, stderr]).to.deep.equal([0, '']);
    return JSON.parse(stdout);
  };

  /** Nodes by the first reason of each, as the scheduler counts them. Since 1.36 it does not say which taint. */
  const counted = (explained: unknown): Record<string, number> => {
    const counts: Record<string, number> = {};
    for (const group of listAt(explained, 'nodes')) {
      const [first = 'fits'] = listAt(group, 'reasons').map(String);
      const reason = first.replace(/untolerated taint \{.*\}/, 'untolerated taint(s)');
      counts[reason] = (counts[reason] ?? 0) + listAt(group, 'names').length;
    }
    return counts;
  };
  const told = (message: string): Record<string, number> =>
    Object.fromEntries(
      [...message.matchAll(/(\d+) (node\(s\) [^,.]+)/g)].map(([, count, reason = '']) => [reason, Number(count)]),
    );
  const messages = async (namespace: string, name: string): Promise<string[]> =>
    (await world.list('Event', namespace))
      .filter((event) => at(event, 'reason') === 'FailedScheduling' && at(event, 'regarding', 'name') === name)
      .map((event) => String(at(event, 'note')));

  const required = (...nodeSelectorTerms: readonly object[]) => ({
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  });
  type Expression = readonly [key: string, operator: string, ...values: string[]];
  const all = (...expressions: readonly Expression[]) => ({
    matchExpressions: expressions.map(([key, operator, ...values]) => ({
      ...{ key, operator },
      ...(values.length > 0 ? { values } : {}),
    })),
  });
  const everything = [{ operator: 'Exists' }];
  const UNSCHEDULABLE = { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' };

  const rows: [name: string, image: 'both' | 'torn' | 'arm64', more: Partial<PodOptions>][] = [
    ['held', 'torn', {}],
    ['held-on-cordoned', 'torn', { tolerations: [UNSCHEDULABLE] }],
    ['selector', 'both', { spec: { nodeSelector: { disk: 'nvme' } } }],
    ['selector-of-arm', 'arm64', { spec: { nodeSelector: { disk: 'ssd' } } }],
    ['in', 'both', { tolerations: everything, spec: required(all(['disk', 'In', 'nvme', 'tape'])) }],
    [
      'not-in',
      'both',
      { tolerations: [], spec: required(all(['disk', 'NotIn', 'ssd', 'hdd'], ['cores', 'DoesNotExist'])) },
    ],
    ['exists', 'arm64', { spec: required(all(['disk', 'Exists'], ['disk', 'In', 'ssd'])) }],
    ['greater', 'both', { tolerations: everything, spec: required(all(['cores', 'Gt', '16'])) }],
    ['less', 'both', { tolerations: everything, spec: required(all(['cores', 'Lt', '4']), {}) }],
    ['empty-term', 'both', { tolerations: everything, spec: required({}) }],
    [
      'not-these-names',
      'both',
      {
        spec: required({
          matchFields: [{ key: 'metadata.name', operator: 'NotIn', values: ['arm64-1'] }],
          ...all(['disk', 'In', 'hdd']),
        }),
      },
    ],
  ];
  for (const [name, image, more] of rows) {
    it(`counts nodes as the scheduler does for a pod that waits: ${name}`, async () => {
      const namespace = await world.namespace(`waits-${name}`);
      const images = image === 'torn' ? ['amd64', 'arm64'] : image === 'both' ? ['multi'] : ['arm64'];
      await world.create(pod(namespace, name, { images: images.map(world.image), ...more }));
      let explained: unknown;
      const agreed = await world.eventually('the scheduler to say the same', async () => {
        explained = await explain(`${namespace}/${name}`);
        const mine = counted(explained);
        const theirs = (await messages(namespace, name)).map(told);
        if (theirs.some((each) => sorted(each) === sorted(mine))) return mine;
        throw new Error(`explain: ${sorted(mine)}; the scheduler: ${theirs.map(sorted).join(' / ')}`);
      });
      expect(agreed).not.to.have.property('fits');
      expect(at(explained, 'pod', 'state')).to.equal('pending');
      expect(listAt(explained, 'nodes').every((group) => at(group, 'placed', 'fits') === false)).to.equal(true);
    });
  }

  it('says of a Deployment in a file where its pods then go', async () => {
    const namespace = 'from-a-file';
    const spec = { tolerations: [{ key: 'gpu', operator: 'Exists' }] };
    const manifest = deployment(namespace, 'web', { images: [world.image('arm64')], replicas: 4, spec });
    const explained = await explain('-f', await places.file('web.json', JSON.stringify(manifest)));
    const fit = listAt(explained, 'nodes').filter((group) => at(group, 'placed', 'fits') === true);
    const names = fit.flatMap((group) => listAt(group, 'names').map(String)).sort();
    expect(names).to.deep.equal(['arm64-1', 'arm64-2']);
    await world.namespace(namespace);
    await world.create(manifest);
    const pods = await world.eventuallyAllRun(namespace, 'web', 4);
    expect([...new Set(pods.map(scheduledOn))].sort()).to.deep.equal(names);
  });

  it('the taint keeps pods of a hard topology spread waiting; explain and plan name it, and what they advise lets all run', async () => {
    const namespace = await world.namespace('spread');
    const counting = (more = {}) => ({ topologySpreadConstraints: [spread('kubernetes.io/hostname', more)] });
    const images = [world.image('amd64')];
    await world.create(deployment(namespace, 'web', { images, replicas: 4, spec: counting() }));
    const isRefused = (found: unknown) =>
      String(at(listAt(found, 'status', 'conditions')[0], 'message')).includes('topology spread constraints');
    const waits = await world.eventually('the scheduler to have judged all pods', async () => {
      const found = await world.pods(namespace, 'web');
      const refused = found.filter((each) => !runs(each) && isRefused(each));
      return found.filter(runs).length === 2 && refused.length === 2 && refused[0];
    });
    const advice = listAt(await explain(`${namespace}/${nameOf(waits)}`), 'advice').map(String);
    expect(advice.join()).to.match(
      /topology spread over kubernetes\.io\/hostname .* counts arm64 nodes.*: set nodeTaintsPolicy: Honor/,
    );
    const planned = await world.command(['plan', '-n', namespace]);
    expect(planned.stderr).to.include(`Deployment ${namespace}/web: ${advice[0]}`);

    await world.patch('Deployment', namespace, 'web', {
      spec: { template: { spec: counting({ nodeTaintsPolicy: 'Honor' }) } },
    });
    const found = await world.eventuallyAllRun(namespace, 'web', 4);
    expect([...new Set(found.map(scheduledOn))].sort()).to.deep.equal(['amd64-1', 'amd64-2']);
  });
});

function sorted(counts: Readonly<Record<string, number>>): string {
  return JSON.stringify(Object.entries(counts).sort());
}
