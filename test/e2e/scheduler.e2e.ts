import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { CONSTELLATIONS, DOMAINS, spread } from '../placement/spread/constellations.ts';
import { nameOf, runs, scheduledOn } from '../support/objects.ts';
import { deployment, type PodOptions, pod } from '../support/workloads.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

describe('explain, beside the scheduler', () => {
  let world: LiveWorld;
  let directory: string;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'archaware-explain-'));
    world = await startWorld({
      nodes: [
        { name: 'amd64-1', architecture: 'amd64', labels: { disk: 'ssd', cores: '16' } },
        { name: 'amd64-2', architecture: 'amd64', labels: { cores: '8' } },
        { name: 'arm64-1', architecture: 'arm64', labels: { disk: 'hdd', cores: '4' } },
        { name: 'arm64-2', architecture: 'arm64', taints: [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }] },
        { name: 'arm64-3', architecture: 'arm64', labels: { disk: 'ssd' } },
      ],
    });
    await world.patch('Node', '', 'arm64-3', { spec: { unschedulable: true } });
    await world.run();
    await world.eventuallyTainted();
  });
  after(async () => {
    await world?.stop();
    if (directory !== undefined) await rm(directory, { recursive: true });
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
  const expression = (key: string, operator: string, ...values: readonly string[]) => ({
    matchExpressions: [{ key, operator, ...(values.length > 0 ? { values } : {}) }],
  });
  const everything = [{ operator: 'Exists' }];
  const UNSCHEDULABLE = { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' };

  const rows: [name: string, image: 'both' | 'torn' | 'arm64', more: Partial<PodOptions>][] = [
    ['held', 'torn', {}],
    ['held-on-cordoned', 'torn', { tolerations: [UNSCHEDULABLE] }],
    ['selector', 'both', { spec: { nodeSelector: { disk: 'nvme' } } }],
    ['selector-of-arm', 'arm64', { spec: { nodeSelector: { disk: 'ssd' } } }],
    ['in', 'both', { tolerations: everything, spec: required(expression('disk', 'In', 'nvme', 'tape')) }],
    [
      'not-in',
      'both',
      {
        tolerations: [],
        spec: required({
          matchExpressions: [
            { key: 'disk', operator: 'NotIn', values: ['ssd', 'hdd'] },
            { key: 'cores', operator: 'DoesNotExist' },
          ],
        }),
      },
    ],
    [
      'exists',
      'arm64',
      {
        spec: required({
          matchExpressions: [
            { key: 'disk', operator: 'Exists' },
            { key: 'disk', operator: 'In', values: ['ssd'] },
          ],
        }),
      },
    ],
    ['greater', 'both', { tolerations: everything, spec: required(expression('cores', 'Gt', '16')) }],
    ['less', 'both', { tolerations: everything, spec: required(expression('cores', 'Lt', '4'), {}) }],
    ['empty-term', 'both', { tolerations: everything, spec: required({}) }],
    [
      'not-these-names',
      'both',
      {
        spec: required({
          matchFields: [{ key: 'metadata.name', operator: 'NotIn', values: ['arm64-1'] }],
          ...expression('disk', 'In', 'hdd'),
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
    const file = join(directory, 'web.json');
    await writeFile(file, JSON.stringify(manifest));
    const explained = await explain('-f', file);
    const fit = listAt(explained, 'nodes').filter((group) => at(group, 'placed', 'fits') === true);
    const names = fit.flatMap((group) => listAt(group, 'names').map(String)).sort();
    expect(names).to.deep.equal(['arm64-1', 'arm64-2']);
    await world.namespace(namespace);
    await world.create(manifest);
    const pods = await world.eventually('its pods to run', async () => {
      const found = await world.pods(namespace, 'web');
      return found.length === 4 && found.every(runs) && found;
    });
    expect([...new Set(pods.map(scheduledOn))].sort()).to.deep.equal(names);
  });

  describe('and topology spread constraints', () => {
    const of = (index: number) => `spread-${index}`;
    /** Runs a command as an administrator: the account of the controller may not read Deployments. */
    const asked = async (...args: readonly string[]): Promise<unknown> => {
      const flags = ['--kubeconfig', world.cluster.kubeconfig, '-o', 'json'];
      return JSON.parse((await world.command([...args, ...flags])).stdout);
    };

    before(async () => {
      for (const [name, labels] of Object.entries(DOMAINS))
        await world.patch('Node', '', name, { metadata: { labels } });
      for (const [index, { image, replicas, constraints, spec, labels, others = [] }] of CONSTELLATIONS.entries()) {
        const namespace = await world.namespace(of(index));
        for (const [count, { on, labels: own }] of others.entries()) {
          const images = [world.image('multi')];
          await world.create(pod(namespace, `other-${count}`, { images, labels: own, spec: { nodeName: on } }));
        }
        const more = { ...spec, topologySpreadConstraints: constraints };
        const options = { images: [world.image(image)], replicas, spec: more, ...(labels && { labels }) };
        await world.create(deployment(namespace, 'web', options));
      }
    });

    /** The pods of a Deployment once each of them runs, or waits and the scheduler says why. */
    const settled = (namespace: string, replicas: number) =>
      world.eventually('the scheduler to have judged all pods', async () => {
        const found = (await world.pods(namespace, 'web')).filter((each) => !nameOf(each).startsWith('other-'));
        return found.length === replicas && found.every((each) => runs(each) || isRefused(each)) && found;
      });
    const isRefused = (found: unknown) =>
      String(at(listAt(found, 'status', 'conditions')[0], 'message')).includes('topology spread constraints');

    for (const [index, { title, replicas, runs: count }] of CONSTELLATIONS.entries()) {
      it(`the scheduler lets ${count} of ${replicas} pods run: ${title}`, async () => {
        const found = await settled(of(index), replicas);
        expect(found.filter(runs)).to.have.length(count);
      });
    }

    const BY_ZONE = CONSTELLATIONS.findIndex(({ title }) => title.startsWith('by zone'));
    const TEXT =
      'its topology spread over zone (DoNotSchedule) counts c, where the taint supported-arch=arm64:NoSchedule keeps it off';
    const CURES = 'set nodeTaintsPolicy: Honor in that constraint, or use placement.mode both (docs/workloads.md)';

    it('explain says it of a pod that waits and of its Deployment, and plan counts it', async () => {
      const namespace = of(BY_ZONE);
      const [waits] = (await settled(namespace, 4)).filter((each) => !runs(each));
      expect(listAt(await explain(`${namespace}/${nameOf(waits)}`), 'advice')).to.deep.equal([
        `${TEXT}: at most 2 such pods can run; ${CURES}`,
      ]);
      const all = `${TEXT}: at most 2 of its 4 pods can run; ${CURES}`;
      expect(listAt(await asked('explain', 'deployment/web', '-n', namespace), 'advice')).to.deep.equal([all]);
      const [workload] = listAt(await asked('plan', '-n', namespace), 'workloads');
      expect(workload).to.deep.include({ kind: 'Deployment', pendingAtRestart: true, pendingNow: true, why: all });
      const [row] = listAt(await asked('report', '-n', namespace, '--to', 'arm64'), 'workloads');
      expect(listAt(row, 'verdicts', 'arm64', 'reasons').map((reason) => at(reason, 'kind'))).to.deep.equal([
        'image',
        'spread',
      ]);
    });

    it('plan says of as many pods as can run that a rollout would wait for ever, and it does', async () => {
      const namespace = of(BY_ZONE);
      await world.patch('Deployment', namespace, 'web', { spec: { replicas: 2 } });
      await settled(namespace, 2);
      const [workload] = listAt(await asked('plan', '-n', namespace), 'workloads');
      expect(workload).to.deep.include({ pendingAtRestart: true, pendingNow: false });
      expect(String(at(workload, 'why'))).to.include('a rollout that first starts one more would wait for ever');
      const template = { metadata: { annotations: { restarted: 'now' } } };
      await world.patch('Deployment', namespace, 'web', { spec: { template } });
      const found = await settled(namespace, 3);
      expect(found.filter(runs)).to.have.length(2);
    });

    it('what it advises lets all pods run', async () => {
      const namespace = of(BY_ZONE);
      const topologySpreadConstraints = [spread('zone', { nodeTaintsPolicy: 'Honor' })];
      await world.patch('Deployment', namespace, 'web', {
        spec: { replicas: 4, template: { spec: { topologySpreadConstraints } } },
      });
      const found = await world.eventually('all to run', async () => {
        const pods = await world.pods(namespace, 'web');
        return pods.length === 4 && pods.every(runs) && pods;
      });
      expect([...new Set(found.map(scheduledOn))].sort()).to.deep.equal(['amd64-1', 'amd64-2']);
    });
  });
});

function sorted(counts: Readonly<Record<string, number>>): string {
  return JSON.stringify(Object.entries(counts).sort());
}
