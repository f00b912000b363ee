import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { nameOf, ours, runs, taints, tolerations } from '../support/objects.ts';
import { leads, type RunningController } from '../support/running.ts';
import { eventuallyTrusted, WEBHOOKS } from '../support/webhook.ts';
import { daemonSet, deployment, pod, spread } from '../support/workloads.ts';
import { mayAccount } from './support/account.ts';
import { buildOverlay, type Overlay } from './support/overlay.ts';
import { admit, freshImage, GATE, gates, inSilence, isOnArm } from './support/placed.ts';
import { arrange, type Places } from './support/places.ts';
import { worldForAll } from './support/world.ts';

const BOTH = ours('amd64', 'arm64');

/** The rows of docs/changing-modes.md: each title names its row. */
describe('changing the mode, with kustomize, on the real control plane, in this order', () => {
  const world = worldForAll(async () => ({ manifest: (await buildOverlay('taints')).manifest }));
  let places: Places;
  let ns: string;
  let replica: RunningController | undefined;
  let flags: string[] = [];
  let environment: Record<string, string> = {};
  let count = 0;

  before(async () => {
    places = await arrange(world);
    ns = await world.namespace('served');
    await world.create(daemonSet(ns, 'agent', { images: [world.image('multi')] }));
  });

  /** Applies an overlay, starts a replica with its configuration, and ends the one before when that is ready. */
  async function change(name: string, component?: string, ...more: readonly string[]): Promise<RunningController> {
    const overlay = await buildOverlay(name, component);
    await world.cluster.apply(overlay.manifest);
    flags = ['--config', await places.file(`config-${++count}.yaml`, overlay.config), ...overlay.flags, ...more];
    environment = variablesOf(overlay);
    const next = await world.run(flags, { environment });
    await replica?.stop();
    replica = next;
    await world.eventually('the new one to lead', () => leads(next));
    return next;
  }

  const nodeTaints = async () => (await world.list('Node', '')).flatMap(taints).sort();
  const template = async () => tolerations(at(await world.get('DaemonSet', ns, 'agent'), 'spec', 'template')).sort();
  const eventuallyTainted = (key = 'supported-arch') =>
    world.eventually('nodes and the template to have what the taints need', async () => {
      const wanted = BOTH.map((text) => text.replace('supported-arch', key)).join();
      return (await nodeTaints()).join() === wanted && (await template()).join() === wanted;
    });
  const eventuallyNothingLeft = () =>
    world.eventually(
      'nothing of taints to be left',
      async () => [...(await nodeTaints()), ...(await template())].length === 0,
    );
  const create = async (image = world.image('arm64')) => admit(world, pod(ns, `web-${++count}`, { images: [image] }));
  const plan = async (...more: readonly string[]) => world.command(['plan', ...flags, ...more], { environment });
  const eventuallyRuns = (created: unknown) => world.eventuallyRuns(ns, nameOf(created));

  it('taints → both: taints stay, and new pods get affinity beside their tolerations', async () => {
    await change('taints');
    await eventuallyTainted();
    const own = await world.namespace('spread');
    const topologySpreadConstraints = [spread('kubernetes.io/hostname')];
    const replicated = { images: [world.image('arm64')], replicas: 2, spec: { topologySpreadConstraints } };
    await world.create(deployment(own, 'web', replicated));
    const pods = async (count: number) => (await world.pods(own, 'web')).filter(runs).length === count;
    await world.eventually('one of its pods to run, and the other one to wait', async () => {
      const told = (await world.list('Event', own)).map((event) => String(at(event, 'note')));
      return (await pods(1)) && told.some((note) => note.includes('topology spread constraints'));
    });
    await change('both');
    await eventuallyTrusted(world);
    const placed = await world.eventually('a pod that is placed at admission', async () => {
      const created = await create();
      return isOnArm(created) && created;
    });
    expect(tolerations(placed)).to.deep.equal(ours('arm64'));
    await eventuallyTainted();
    // The taints still count as an empty domain for old pods, but not for new ones, which exclude these nodes themselves.
    for (const each of await world.pods(own, 'web')) await world.remove('Pod', own, nameOf(each));
    await world.eventually('both of its pods to run', () => pods(2));
    await world.remove('Namespace', '', own);
  });

  it('taints.key: pods and templates have the new toleration before the old taint goes', async () => {
    await change('taints', undefined, '--taints.key', 'arch.example.com/name');
    await eventuallyTainted('arch.example.com/name');
    const created = await create();
    await world.eventuallyTolerates(ns, nameOf(created), ['arch.example.com/name=arm64:NoSchedule']);
    await eventuallyRuns(created);
    await change('taints');
    await eventuallyTainted();
  });

  it('taints → affinity, at once: taints and tolerations of templates go by themselves, and new pods run', async () => {
    const before = await plan('--placement.mode', 'affinity', '--webhook.enabled');
    expect(before.stderr).to.match(
      /2 node\(s\) \(amd64-1, arm64-1\) and 1 DaemonSet\(s\) .*do not use .*without-taints.* yet/,
    );
    await change('affinity');
    await eventuallyNothingLeft();
    expect(JSON.stringify(await world.list('Node', ''))).not.to.include('archaware.dev');
    await eventuallyTrusted(world);
    await eventuallyRuns(await create());
    const { code, stderr } = await plan();
    const unasked =
      /^\d+ namespace\(s\) could not be asked whether such pods may be created: needs the right to create pods there.*\n/;
    expect([code, stderr.replace(unasked, '')]).to.deep.equal([
      0,
      'no node and no DaemonSet carries taints or tolerations of archaware any more: the component without-taints (withoutTaints in the chart) may be used\n',
    ]);
  });

  it('affinity, without-taints: the loops and the rights go, and pods are placed as before', async () => {
    const running = await change('affinity', 'without-taints');
    expect(environment).to.include({ ARCHAWARE_LOOPS: 'pods' });
    for (const right of ['patch nodes', 'patch daemonsets.apps'])
      expect(await mayAccount(world, right), right).to.equal(false);
    await eventuallyTrusted(world);
    await eventuallyRuns(await create());
    expect(running.logs().filter((line) => /forbidden|"level":"(warn|error)"/.test(line))).to.deep.equal([]);
  });

  it('affinity → taints: nodes are tainted again, and pods wait for nothing but their toleration', async () => {
    await change('taints');
    await eventuallyTainted();
    await eventuallyRuns(await create());
  });

  it('without-taints too early: status and plan say so, and taking it back converges', async () => {
    await change('affinity', 'without-taints');
    const { stdout } = await world.command(['status', ...flags], { environment });
    expect(stdout).to.include('2 nodes with a taint of archaware that this configuration does not manage');
    const { stderr } = await plan();
    expect(stderr).to.match(/2 node\(s\) .*this configuration does not remove them: do not use/);
    await change('affinity');
    await eventuallyNothingLeft();
  });

  it("taints.manage: false: our taints go, the provider's stay, and templates tolerate those", async () => {
    await change('taints');
    await eventuallyTainted();
    for (const architecture of ['amd64', 'arm64']) {
      const provided = { key: 'kubernetes.io/arch', value: architecture, effect: 'NoSchedule' };
      await world.patch('Node', '', `${architecture}-1`, [{ op: 'add', path: '/spec/taints/-', value: provided }]);
    }
    await change('provider-taints');
    const wanted = ['amd64', 'arm64'].map((value) => `kubernetes.io/arch=${value}:NoSchedule`);
    await world.eventually(
      'the taints of the provider alone',
      async () => (await allTaints()).join() === wanted.join(),
    );
    await world.eventually('the template to tolerate them', async () => (await template()).join() === wanted.join());
    await eventuallyRuns(await create());
    const { stderr } = await plan();
    expect(stderr).to.match(/the component without-node-taints .* may be used/);
    await change('provider-taints', 'without-node-taints');
    expect(environment).to.include({ ARCHAWARE_LOOPS: 'pods,daemonsets' });
    expect(await mayAccount(world, 'patch nodes')).to.equal(false);
    await eventuallyRuns(await create());
    for (const architecture of ['amd64', 'arm64']) {
      await world.patch('Node', '', `${architecture}-1`, { spec: { taints: null } });
    }
  });

  it('webhook off: pods that hold the gate are released, but for held ones, and no pod waits for the webhook', async () => {
    await change('both');
    await eventuallyTainted();
    await eventuallyTrusted(world);
    const image = await freshImage(world, 'arm64');
    let gated: unknown;
    const held = await admit(world, pod(ns, 'held', { images: [world.image('amd64'), world.image('arm64')] }));
    await inSilence(world, async () => {
      gated = await world.eventually('a pod with the gate', async () => {
        const created = await create(image);
        return gates(created).includes(GATE) && created;
      });
      expect((await world.cluster.request('DELETE', WEBHOOKS)).status).to.equal(200);
      await change('taints');
    });
    await eventuallyRuns(gated);
    await eventuallyRuns(await create());
    expect(gates(await world.get('Pod', ns, nameOf(held)))).to.deep.equal([GATE]);
  });

  const allTaints = async () =>
    (await world.list('Node', ''))
      .flatMap((node) => listAt(node, 'spec', 'taints'))
      .map((taint) => `${at(taint, 'key')}=${at(taint, 'value')}:${at(taint, 'effect')}`)
      .sort();
});

/** The variables of the program that the Deployment of an overlay sets. */
function variablesOf({ deployment }: Overlay): Record<string, string> {
  const [container] = listAt(deployment, 'spec', 'template', 'spec', 'containers');
  const variables = listAt(container, 'env').map(
    (each) => [String(at(each, 'name')), String(at(each, 'value'))] as const,
  );
  return Object.fromEntries(variables.filter(([name]) => name.startsWith('ARCHAWARE_')));
}
