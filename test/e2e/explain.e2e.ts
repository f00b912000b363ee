import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { expectSuccess } from '../../hack/cluster/client.ts';
import { at, listAt } from '../../hack/cluster/json.ts';
import { FIXTURES } from '../../testimg/fixtures.ts';
import { CONSTELLATIONS, DOMAINS, spread } from '../placement/spread/constellations.ts';
import { runBundle } from '../support/controller-process.ts';
import { nameOf, runs, scheduledOn, tolerations } from '../support/objects.ts';
import { deployment, type PodOptions, pod } from '../support/workloads.ts';
import { pathOf } from '../support/world.ts';
import { startCommand } from './support/bundle.ts';
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
    await world.eventually('all nodes to be tainted', async () => {
      const nodes = await world.list('Node', '');
      return nodes.every((node) =>
        listAt(node, 'spec', 'taints').some((taint) => at(taint, 'key') === 'supported-arch'),
      );
    });
  });
  after(async () => {
    await world?.stop();
    if (directory !== undefined) await rm(directory, { recursive: true });
  });

  const explain = async (...args: readonly string[]): Promise<unknown> => {
    const insecure = ['--registries.insecure', world.registry.host];
    const { code, stdout, stderr } = await world.command(['explain', ...args, ...insecure, '--output', 'json']);
    expect([code, stderr.replace(/^configuration: .*\n/, '')]).to.deep.equal([0, '']);
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
      const flags = ['--kubeconfig', world.cluster.kubeconfig, '--registries.insecure', world.registry.host];
      return JSON.parse((await runBundle([...args, ...flags, '-o', 'json'])).stdout);
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

describe('explain, beside what run says', () => {
  const namespace = 'bound';
  const ANYWHERE = [{ key: 'supported-arch', operator: 'Exists' }];
  let world: LiveWorld;
  let directory: string;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'archaware-explain-'));
    world = await startWorld();
    await world.run();
    await world.namespace(namespace);
  });
  after(async () => {
    await world?.stop();
    if (directory !== undefined) await rm(directory, { recursive: true });
  });

  const explain = async (...args: readonly string[]) => {
    const insecure = ['--registries.insecure', world.registry.host];
    const { code, stdout, stderr } = await world.command(['explain', ...args, ...insecure, '--output', 'json']);
    expect([code, stderr.replace(/^configuration: .*\n/, '')]).to.deep.equal([0, '']);
    const explained: unknown = JSON.parse(stdout);
    return { explained, advice: listAt(explained, 'advice').map(String) };
  };
  /** A pod that the scheduler puts on a node, whatever its image runs on. */
  const onNode = async (app: string, image: string, node: string, more: Partial<PodOptions> = {}) => {
    const spec = { nodeSelector: { 'kubernetes.io/hostname': node } };
    await world.create(pod(namespace, app, { images: [world.image(image)], tolerations: ANYWHERE, spec, ...more }));
    return world.eventually(`${app} to run on ${node}`, async () => {
      const found = await world.get('Pod', namespace, app);
      return runs(found) && scheduledOn(found) === node && found;
    });
  };
  /** Lets its container die; `pulled`: the fixture whose digest its status names. */
  const die = async (found: unknown, pulled: string, message: string) => {
    const digest = FIXTURES.find(({ tag }) => tag === pulled)?.build().root.digest;
    const repository = world.image(pulled).replace(/:[^:/]*$/, '');
    const containerStatuses = listAt(found, 'status', 'containerStatuses').map((status) => ({
      ...(typeof status === 'object' ? status : {}),
      ...{ ready: false, started: false, restartCount: 1, imageID: `${repository}@${digest}` },
      state: { waiting: { reason: 'CrashLoopBackOff' } },
      lastState: { terminated: { exitCode: 1, reason: 'Error', message } },
    }));
    const path = `${pathOf('Pod', namespace, nameOf(found))}/status`;
    expectSuccess('its status', await world.cluster.request('PATCH', path, { status: { containerStatuses } }));
  };
  /** What the Event of run says before and after what run did about it. */
  const parts = (note: string) => note.split('; not evicted: pods.onWrongNode is warn');

  it('of a pod on a wrong node: the same but for what to do, which is the selector that brings it back', async () => {
    const found = await onNode('wrong', 'amd64', 'arm64-1');
    await die(found, 'amd64', '');
    const [seen = '', sets = '?'] = parts(await world.eventuallyEvent(namespace, 'WrongNode', /node arm64-1/));
    const { advice } = await explain(`${namespace}/wrong`);
    expect(advice).to.have.lengthOf(1);
    expect(advice[0]?.startsWith(seen), `${advice[0]} / ${seen}`).to.equal(true);
    expect(advice[0]?.endsWith(sets), `${advice[0]} / ${sets}`).to.equal(true);
    expect(advice[0]).to.contain('change what the pod requires (kubernetes.io/hostname=arm64-1');
    expect(advice[0]).to.contain(`push a linux/arm64 build of ${world.image('amd64')}`);
    expect(sets).to.contain('(linux/amd64)');
  });

  it('of an image that states the architecture of its node and does not run there: it lies', async () => {
    const found = await onNode('lies', 'amd64', 'amd64-1');
    await die(found, 'amd64', 'exec /app: exec format error');
    const [seen = '', sets = '?'] = parts(await world.eventuallyEvent(namespace, 'WrongNode', /exec format error/));
    const { advice } = await explain(`${namespace}/lies`);
    expect(advice[0]?.startsWith(seen), `${advice[0]} / ${seen}`).to.equal(true);
    expect(advice[0]?.endsWith(sets), `${advice[0]} / ${sets}`).to.equal(true);
    expect(advice[0]).to.match(
      /its image claims to run on amd64, but it does not .*: rebuild it, or .*images\.overrides/,
    );
    expect(advice[0]).to.not.contain('(none)').and.not.contain('delete the pod');
  });

  it('of a pod that contradicts its image: the Event of run has both sides', async () => {
    const spec = { nodeSelector: { 'kubernetes.io/arch': 'arm64' } };
    await world.create(pod(namespace, 'legacy', { images: [world.image('amd64')], spec }));
    const note = /^requires kubernetes\.io\/arch=arm64 by its nodeSelector, but its images run on amd64 only$/;
    await world.eventuallyEvent(namespace, 'NoCommonArchitecture', note);
    const { explained } = await explain(`${namespace}/legacy`);
    expect(at(explained, 'verdict', 'state')).to.equal('fits-nowhere');
  });

  it("of a pod that waits for an image: the time of the controller's Event, for a user who may list Events", async () => {
    const image = `${world.registry.host}/nothing/here:1`;
    await world.create(pod(namespace, 'lost', { images: [image] }));
    const note = await world.eventuallyEvent(
      namespace,
      'ImageUnresolvable',
      /the pod starts by itself at .* at the latest$/,
    );
    const [time = '?'] = /\d\d:\d\d:\d\d UTC/.exec(note) ?? [];
    const flags = ['--kubeconfig', world.cluster.kubeconfig, '--registries.insecure', world.registry.host];
    const { stdout, stderr } = await startCommand(['explain', `${namespace}/lost`, ...flags]).ended;
    expect(stdout, stderr).to.contain(`; it starts by itself at ${time} at the latest, on amd64, arm64`);
    const asController = await explain(`${namespace}/lost`);
    expect(at(asController.explained, 'verdict', 'text')).to.contain(`it starts by itself at ${time} at the latest`);
  });

  it('of a healthy pod: where it could move, and nothing to do, also where architectures.schedulable leaves its node out', async () => {
    await world.create(
      deployment(namespace, 'healthy', {
        images: [world.image('multi')],
        spec: { affinity: prefers('kubernetes.io/hostname', 'arm64-1') },
      }),
    );
    const healthy = await world.eventually('it to run with what it lacked', async () => {
      const [found] = await world.pods(namespace, 'healthy');
      return found !== undefined && runs(found) && tolerations(found).length === 2 && found;
    });
    const name = `${namespace}/${nameOf(healthy)}`;
    const { explained, advice } = await explain(name);
    expect(advice).to.deep.equal([]);
    expect(listAt(explained, 'nodes').map((group) => [at(group, 'architecture'), at(group, 'fits')])).to.deep.equal([
      ['amd64', true],
      ['arm64', true],
    ]);
    const excluded = scheduledOn(healthy) === 'arm64-1' ? 'amd64' : 'arm64';
    const other = await explain(name, '--architectures.schedulable', excluded);
    // What is left is a toleration, which nobody can take from a pod.
    expect(other.advice.join()).to.match(/^(|.*: a toleration cannot be removed from a pod)$/);
    await world.stopControllers();
    const controller = await world.run(['--architectures.schedulable', excluded]);
    await world.eventually('it to lead', async () => (await controller.metric('archaware_leader')) === 1);
    await world.eventually(
      'both pods to be found',
      async () => (await controller.metric('archaware_wrong_node_pods')) === 2,
    );
    const told = (await world.list('Event', namespace)).filter((event) => at(event, 'reason') === 'WrongNode');
    expect(told.map((event) => at(event, 'regarding', 'name'))).to.not.include(nameOf(healthy));
  });

  it('of an image and a nodeSelector that contradict each other: which build is missing, and no label to set', async () => {
    const spec = { nodeSelector: { 'kubernetes.io/arch': 'arm64' } };
    const file = join(directory, 'legacy.json');
    await writeFile(file, JSON.stringify(deployment('shop', 'legacy', { images: [world.image('amd64')], spec })));
    const { explained, advice } = await explain('-f', file);
    expect(at(explained, 'decision', 'blocked')).to.equal('the pod asks for arm64: no node fits');
    expect(advice).to.deep.equal([
      `the pod asks for arm64, its image is amd64 only: push a linux/arm64 build of ${world.image('amd64')}`,
      'or remove the architecture from its nodeSelector',
    ]);
  });
});

function prefers(key: string, value: string) {
  const preference = { matchExpressions: [{ key, operator: 'In', values: [value] }] };
  return { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference }] } };
}

function sorted(counts: Readonly<Record<string, number>>): string {
  return JSON.stringify(Object.entries(counts).sort());
}
