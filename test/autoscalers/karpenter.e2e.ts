import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { binaries } from '../../hack/cluster/spawn.ts';
import { run as runProgram } from '../../hack/programs.ts';
import { runBundle } from '../support/controller-process.ts';
import { isGoing, nameOf, ours, taints, uidOf } from '../support/objects.ts';
import { leads } from '../support/running.ts';
import { arrangeWebhook, eventuallyTrusted, type Webhook } from '../support/webhook.ts';
import { daemonSet, deployment, type WorkloadOptions } from '../support/workloads.ts';
import { type Lab, NAMESPACE, type Started, startedText, startLab } from './support/lab.ts';
import { ONE, two } from './support/pools.ts';
import { type Row, tableOf, writeTable } from './support/table.ts';

/** Longer than Karpenter waits for a pod on the node that it started for it: 20 s, and as long to start another. */
const LONGER_THAN_A_NOMINATION_S = 40;
const IGNORED = { labels: { 'archaware.dev/ignore': 'true' } };
const [AMD, ARM, BOTH] = [['amd64'], ['arm64'], ['amd64', 'arm64']];
const NO_TOLERATION = /did not tolerate taint.*supported-arch/;

describe('archaware beside Karpenter', function () {
  this.timeout(400_000);
  let lab: Lab;
  let webhook: Webhook;
  const rows: Row[] = [];

  before(async () => {
    lab = await startLab();
  });
  after(async () => {
    console.log(tableOf(rows));
    if (process.env.WRITE_TABLE) await writeTable(rows);
    await lab?.stop();
  });
  afterEach(async function () {
    if (this.currentTest?.state === 'failed') console.log(await lab.state());
    await lab.wipe();
  });

  const app = (name: string, tag: string, replicas: number, more: Partial<WorkloadOptions> = {}) => {
    const resources = { requests: { cpu: '1' } };
    const containers = [{ name: 'main', image: lab.world.image(tag), resources }];
    return deployment(NAMESPACE, name, { images: [], replicas, ...more, spec: { containers, ...more.spec } });
  };
  const create = async (...objects: ReturnType<typeof app>[]) => {
    lab.begin();
    await lab.world.create(...objects);
  };
  const scale = (name: string, replicas: number) =>
    lab.world.patch('Deployment', NAMESPACE, name, { spec: { replicas } });
  /** Where the pods of each workload may run. */
  async function eventuallyRun(workloads: Readonly<Record<string, readonly string[]>>): Promise<void> {
    for (const [name, on] of Object.entries(workloads)) {
      await lab.eventually(`${name} to run on ${on.join()}`, async () => {
        const placed = await lab.placed(name);
        const isRight = placed.on.every((architecture) => on.includes(architecture));
        if (placed.running > 0 && placed.running === placed.all && isRight) return true;
        throw new Error(JSON.stringify(placed));
      });
    }
  }
  const eventuallyRefused = (name: string) =>
    lab.eventually(`Karpenter to find no NodePool for ${name}`, async () =>
      (await lab.messages(name, 'karpenter')).some(
        (text) => text.startsWith('FailedScheduling') && NO_TOLERATION.test(text),
      ),
    );
  const architectures = (started: readonly Started[] = lab.started()) =>
    started.map(({ type }) => type.replace(/^c-\d+x-/, ''));
  const row = (mode: string, pools: string, pods: string, placed: string, more = '') =>
    rows.push({ mode: `\`${mode}\``, pools, pods, started: startedText(lab.started()) + more, placed });
  /** What `plan` says of NodePools, as an administrator. */
  const problems = async (...flags: readonly string[]) => {
    const common = ['--kubeconfig', lab.world.cluster.kubeconfig, '--registries.insecure', lab.world.registry.host];
    const { stdout, stderr } = await runBundle(['plan', '--output', 'json', ...common, ...flags]);
    if (stdout === '') throw new Error(stderr);
    return listAt(JSON.parse(stdout), 'pools').map((pool) => `${at(pool, 'name')} ${at(pool, 'problem')}`);
  };
  /** A loop of wrong nodes: the third one of arm64 for pods of amd64, which wait. */
  const eventuallyLoops = async (name: string) => {
    await lab.eventually('a third node', async () => lab.started().length >= 3);
    expect(architectures().slice(0, 3)).to.deep.equal(['arm64', 'arm64', 'arm64']);
    expect(await lab.placed(name)).to.have.property('running', 0);
  };

  describe('in the mode taints', () => {
    it('starts the right nodes from zero where each NodePool has its taint', async () => {
      await lab.applyPools(two('taints'));
      const controller = await lab.world.run();
      await create(app('amd', 'amd64', 3), app('arm', 'arm64', 2), app('multi', 'multi', 2));
      await eventuallyRun({ amd: AMD, arm: ARM, multi: BOTH });
      expect([...new Set(architectures())].sort()).to.deep.equal(['amd64', 'arm64']);
      expect(lab.started()).to.have.lengthOf(2);
      expect(await controller.metric('archaware_nodes_joined_untainted_total')).to.equal(0);
      expect(await problems()).to.deep.equal([]);
      row('taints', 'one each, with its taint', 'amd64, arm64 and both, from zero nodes', 'all run');
    });

    it('starts the nodes that plan --pools promises, once its steps are applied', async () => {
      await lab.applyPools(ONE);
      await lab.world.run();
      const spec = { schedulingGates: [{ name: 'example.com/later' }] };
      await create(
        app('amd', 'amd64', 2, { spec }),
        app('arm', 'arm64', 1, { spec }),
        app('multi', 'multi', 2, { spec }),
      );
      const all = async () => Promise.all(['amd', 'arm', 'multi'].map((name) => lab.placed(name)));
      await lab.eventually('five pods', async () => (await all()).reduce((sum, each) => sum + each.all, 0) === 5);
      const flags = ['--kubeconfig', lab.world.cluster.kubeconfig, '--registries.insecure', lab.world.registry.host];
      const before = await runBundle(['plan', '--pools', ...flags]);
      const shares = ({ stdout }: typeof before) => stdout.split('\n').filter((line) => line.startsWith('NodePool '));
      expect([before.code, shares(before)]).to.deep.equal([
        2,
        ['NodePool default (amd64, arm64): 5 of 5 pods could run there (100 %).'],
      ]);
      const steps = before.stdout.replace(/^(?:NodePool| {2}(?:warning|error)).*$/gm, '');
      await runProgram('sh', ['-e', '-c', steps], {
        env: {
          PATH: `${binaries()}:${process.env.PATH}`,
          HOME: lab.world.cluster.directory,
          KUBECONFIG: lab.world.cluster.kubeconfig,
        },
      });
      const after = await runBundle(['plan', '--pools', ...flags]);
      expect([after.code, shares(after)]).to.deep.equal([
        0,
        [
          'NodePool default (amd64): 4 of 5 pods could run there (80 %).',
          'NodePool default-arm64 (arm64): 3 of 5 pods could run there (60 %).',
        ],
      ]);
      const released = { spec: { template: { spec: { schedulingGates: null } } } };
      for (const name of ['amd', 'arm', 'multi']) await lab.world.patch('Deployment', NAMESPACE, name, released);
      await eventuallyRun({ amd: AMD, arm: ARM, multi: BOTH });
      expect(await problems()).to.deep.equal([]);
      row('taints', 'one for both, split by the steps of `plan --pools`', 'amd64, arm64 and both', 'all run');
    });

    it('starts no node for a pod that archaware leaves alone', async () => {
      await lab.applyPools(two('taints'));
      await lab.world.run();
      await create(app('ignored', 'multi', 1, IGNORED));
      await eventuallyRefused('ignored');
      expect(lab.started()).to.deep.equal([]);
      row('taints', 'one each, with its taint', 'ignored (label)', 'Pending; Karpenter says why');
    });

    it('starts no node for pods while archaware is down', async () => {
      await lab.applyPools(two('taints'));
      await create(app('amd', 'amd64', 1));
      await eventuallyRefused('amd');
      expect(lab.started()).to.deep.equal([]);
      await lab.world.run();
      await eventuallyRun({ amd: AMD });
      row('taints', 'one each, with its taint', 'amd64, archaware down at first', 'Pending until archaware is back');
    });

    it('goes on with smaller nodes of the right architecture when there is less to do', async () => {
      await lab.applyPools(two('taints'));
      await lab.world.run();
      await create(app('amd', 'amd64', 5));
      await eventuallyRun({ amd: AMD });
      const before = lab.started().length;
      await scale('amd', 1);
      await lab.eventually('one smaller node', async () => {
        const claims = (await lab.nodeClaims()).filter((claim) => !isGoing(claim));
        return lab.started().length > before && claims.length === 1;
      });
      await eventuallyRun({ amd: AMD });
      expect(new Set(architectures())).to.deep.equal(new Set(['amd64']));
      row('taints', 'one each, with its taint', 'amd64, scaled from 5 to 1', 'run; consolidated');
    });

    for (const [pools, what] of [
      [ONE, 'one for both, no taint'],
      [two(), 'one each, no taint'],
    ] as const) {
      it(`starts wrong nodes without end, and says so: ${what}`, async () => {
        await lab.applyPools(pools);
        const controller = await lab.world.run();
        await create(app('amd', 'amd64', 2));
        await eventuallyLoops('amd');
        const pool = pools === ONE ? 'default' : 'arm64';
        await lab.world.eventuallyEvent('default', 'JoinedUntainted', new RegExp(`NodePool ${pool} without the taint`));
        expect(await controller.metric('archaware_nodes_joined_untainted_total', { pool })).to.be.greaterThan(1);
        expect(await problems()).to.deep.equal(
          pools === ONE ? ['default several-architectures'] : ['amd64 taint-missing', 'arm64 taint-missing'],
        );
        row('taints', what, 'amd64', '**never run**', ', …');
      });
    }

    it('waits for ever where the taint stands in startupTaints', async () => {
      await lab.applyPools(two('startupTaints'));
      await lab.world.run();
      await create(app('amd', 'amd64', 2));
      const waits = (claim: unknown) =>
        listAt(claim, 'status', 'conditions').some(
          (condition) => at(condition, 'type') === 'Initialized' && at(condition, 'reason') === 'StartupTaintsExist',
        );
      await lab.eventually('Karpenter to wait for the taint to go', async () => (await lab.nodeClaims()).some(waits));
      await lab.past(LONGER_THAN_A_NOMINATION_S);
      expect(architectures()).to.deep.equal(['arm64']);
      expect(await lab.placed('amd')).to.have.property('running', 0);
      expect((await lab.nodeClaims()).filter(waits)).to.have.lengthOf(1);
      expect(await problems()).to.include.members(['amd64 startup-taint', 'arm64 startup-taint']);
      row('taints', 'one each, taint in `startupTaints`', 'amd64', '**never run**, and no other node is started');
    });

    it('loses nothing in the order: tolerations, then the taints of the NodePools, then the taints of archaware', async () => {
      await lab.applyPools(two());
      const onAmd = { spec: { nodeSelector: { 'kubernetes.io/arch': 'amd64' } } };
      await create(app('amd', 'amd64', 2, onAmd), app('multi', 'multi', 2));
      await eventuallyRun({ amd: AMD, multi: BOTH });
      const old = new Set((await lab.nodes()).map(uidOf));
      await lab.world.run(['--taints.manage=false']);
      for (const [name, wanted] of [
        ['amd', ours('amd64')],
        ['multi', ours('amd64', 'arm64')],
      ] as const) {
        for (const pod of await lab.world.pods(NAMESPACE, name)) {
          await lab.world.eventuallyTolerates(NAMESPACE, nameOf(pod), wanted);
        }
      }
      lab.begin();
      await lab.applyPools(two('taints'));
      await lab.eventually('every node to be replaced by one with the taint', async () => {
        const nodes = (await lab.nodes()).filter((node) => !isGoing(node));
        return nodes.length > 0 && nodes.every((node) => !old.has(uidOf(node)) && taints(node).length === 1);
      });
      await eventuallyRun({ amd: AMD, multi: BOTH });
      const replaced = lab.started().length;
      await lab.world.stopControllers();
      const controller = await lab.world.run();
      await lab.eventually('archaware to have adopted the taints', async () =>
        (await lab.nodes()).every((node) => at(node, 'metadata', 'annotations', 'archaware.dev/managed') !== undefined),
      );
      await scale('amd', 3);
      await eventuallyRun({ amd: AMD });
      expect(await controller.metric('archaware_nodes_joined_untainted_total')).to.equal(0);
      expect(replaced).to.be.lessThan(4);
      row('taints', 'one each; the taint is added', 'amd64 and both, running', 'run; their nodes are replaced (drift)');
    });
  });

  describe('with the webhook', () => {
    before(async () => {
      webhook = await arrangeWebhook(lab.world);
    });

    async function run(mode: 'affinity' | 'both', ...flags: readonly string[]) {
      const controller = await lab.world.run([...webhook.flags, '--placement.mode', mode, ...flags]);
      await eventuallyTrusted(lab.world);
      // Without a leader no pod is gated.
      await lab.eventually('it to lead', () => leads(controller));
      return controller;
    }

    it('starts the right nodes with one NodePool in the mode affinity, and any for what it leaves alone', async () => {
      await lab.applyPools(ONE);
      await run('affinity');
      await create(app('amd', 'amd64', 2), app('arm', 'arm64', 2), app('ignored', 'multi', 1, IGNORED));
      await eventuallyRun({ amd: AMD, arm: ARM, ignored: BOTH });
      expect([...new Set(architectures())].sort()).to.deep.equal(['amd64', 'arm64']);
      expect(lab.started().length).to.be.lessThan(4);
      expect(await problems('--placement.mode', 'affinity', '--webhook.enabled')).to.deep.equal([]);
      row('affinity', 'one for both, no taint', 'amd64, arm64 and ignored, from zero nodes', 'all run');
    });

    it('starts no room on arm64 for an add-on that has no build for it, in the mode affinity', async () => {
      await lab.applyPools(ONE);
      await run('affinity');
      const resources = { requests: { cpu: '2' } };
      const containers = [{ name: 'main', image: lab.world.image('amd64'), resources }];
      await lab.world.create(daemonSet(NAMESPACE, 'addon', { images: [], spec: { containers } }));
      await lab.eventually('the add-on to ask for amd64', async () => {
        const [addon] = await lab.world.list('DaemonSet', NAMESPACE);
        return JSON.stringify(at(addon, 'spec', 'template', 'spec', 'affinity'))?.includes('["amd64"]');
      });
      await create(app('amd', 'amd64', 1), app('arm', 'arm64', 1));
      await eventuallyRun({ amd: AMD, arm: ARM, addon: AMD });
      const cpus = (architecture: string) =>
        lab.started().flatMap(({ type }) => (type.endsWith(architecture) ? [Number(/\d+/.exec(type)?.[0])] : []));
      expect(cpus('amd64'), startedText(lab.started())).to.have.lengthOf(1);
      expect(cpus('arm64'), startedText(lab.started())).to.have.lengthOf(1);
      expect(cpus('amd64')[0]).to.be.greaterThan(Number(cpus('arm64')[0]));
      const [addon] = await lab.world.list('DaemonSet', NAMESPACE);
      expect(at(addon, 'status', 'desiredNumberScheduled')).to.equal(1);
      row(
        'affinity',
        'one for both, no taint',
        'amd64, arm64, and a DaemonSet for amd64 (2 CPUs)',
        'all run; the arm64 node is smaller',
      );
    });

    it('starts the preferred architecture though it costs more', async () => {
      await lab.applyPools(ONE);
      await run('affinity', '--architectures.preferred', '{amd64: 10}');
      await create(app('multi', 'multi', 2));
      await eventuallyRun({ multi: AMD });
      expect(architectures()).to.deep.equal(['amd64']);
      row('affinity', 'one for both, no taint', 'both, `architectures.preferred: {amd64: 10}`', 'run on amd64');
    });

    it('starts the right nodes in the mode both, but wrong ones without end for what it leaves alone', async () => {
      await lab.applyPools(ONE);
      await run('both');
      await create(app('amd', 'amd64', 2), app('arm', 'arm64', 2));
      await eventuallyRun({ amd: AMD, arm: ARM });
      expect(architectures().sort()).to.deep.equal(['amd64', 'arm64']);
      row('both', 'one for both, no taint', 'amd64 and arm64, from zero nodes', 'all run');
      await create(app('ignored', 'amd64', 1, IGNORED));
      await eventuallyLoops('ignored');
      expect(await problems('--placement.mode', 'both', '--webhook.enabled')).to.deep.equal([
        'default several-architectures',
      ]);
      row('both', 'one for both, no taint', 'ignored (label)', '**never run**', ', …');
    });

    it('starts the right nodes in the mode both where each NodePool has its taint, and none for what it leaves alone', async () => {
      await lab.applyPools(two('taints'));
      await run('both');
      await create(app('amd', 'amd64', 2), app('arm', 'arm64', 2), app('ignored', 'multi', 1, IGNORED));
      await eventuallyRun({ amd: AMD, arm: ARM });
      await eventuallyRefused('ignored');
      expect(architectures().sort()).to.deep.equal(['amd64', 'arm64']);
      row(
        'both',
        'one each, with its taint',
        'amd64, arm64 and ignored',
        'all run but the ignored one: Pending, Karpenter says why',
      );
    });
  });

  // At the end: clean takes the policies of the manifest away.
  describe('at the end', () => {
    it('is undone by clean, which names the NodePools that go on tainting', async () => {
      await lab.applyPools(two('taints'));
      await lab.world.run();
      await create(app('amd', 'amd64', 1));
      await eventuallyRun({ amd: AMD });
      await lab.world.stopControllers();
      const flags = ['--yes', '--kubeconfig', lab.world.cluster.kubeconfig];
      const { code, stdout, stderr } = await runBundle(['clean', '--output', 'json', ...flags]);
      expect(code, stderr).to.equal(0);
      const named = listAt(JSON.parse(stdout), 'pools').map((pool) => `${at(pool, 'name')} ${at(pool, 'certain')}`);
      expect(named.sort()).to.deep.equal(['amd64 true', 'arm64 true']);
      lab.begin();
      await scale('amd', 20);
      await lab.eventually('Karpenter to find no NodePool', async () =>
        (await lab.messages('amd', 'karpenter')).some((text) => NO_TOLERATION.test(text)),
      );
      expect(lab.started()).to.deep.equal([]);
      row(
        'taints',
        'one each, with its taint',
        'amd64, scaled from 1 to 20 after `clean`',
        'those without room are Pending',
      );
    });
  });
});
