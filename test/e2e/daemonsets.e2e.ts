import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { parseAllDocuments, stringify } from 'yaml';
import { at, listAt } from '../../hack/cluster/json.ts';
import { readRecord } from '../../src/placement/objects/template-record.ts';
import { runBundle } from '../support/controller-process.ts';
import { manifestWithoutDeployment } from '../support/manifest.ts';
import { annotation, ours, runs, scheduledOn, taints, tolerations, uidOf } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { daemonSet, pod } from '../support/workloads.ts';
import { pathOf } from '../support/world.ts';
import { refusing } from './support/refusing.ts';
import { nodesNamed, worldForAll } from './support/world.ts';

const RECORDED = 'archaware.dev/tolerations';
const POLICY = ['validatingadmissionpolicy,validatingadmissionpolicybinding', 'refuse-in-kube-system'];
const RUNBOOK = new URL('../../docs/alerts.md', import.meta.url);
const NODES = ['amd64-1', 'amd64-2', 'arm64-1', 's390x-1'];
/** The tolerations that the annotation says are archaware's. */
const recorded = (found: unknown) => readRecord(String(annotation(found, RECORDED))).tolerations;

describe('DaemonSets on the real control plane', () => {
  const world = worldForAll({ nodes: nodesNamed(...NODES) });
  let controller: RunningController;

  /** The DaemonSet once every daemon pod is ready, of the newest template, and on exactly these nodes. */
  const eventuallyRunsOn = (namespace: string, name: string, nodes: readonly string[]) =>
    world.eventually(`${name} to run on ${nodes.join(' ') || 'no node'}`, async () => {
      const found = await world.get('DaemonSet', namespace, name);
      const pods = await world.pods(namespace, name);
      const names = pods.filter(runs).map((one) => scheduledOn(one) ?? '');
      const done = isRolledOut(found) && at(found, 'status', 'desiredNumberScheduled') === nodes.length;
      return done && names.sort().join() === [...nodes].sort().join() && found;
    });

  const template = async (namespace: string, name: string) =>
    at(await world.get('DaemonSet', namespace, name), 'spec', 'template');

  const eventuallyTemplate = (namespace: string, name: string, wanted: readonly string[]) =>
    world.eventually(`the template of ${name} to tolerate ${wanted.join(' ')}`, async () => {
      const found = tolerations(await template(namespace, name)).join(' ');
      if (found === wanted.join(' ')) return true;
      throw new Error(`it tolerates ${found}`);
    });

  async function uids(namespace: string, name: string): Promise<string[]> {
    return (await world.pods(namespace, name)).map(uidOf).sort();
  }

  it('patches templates and places pods before it taints a node, and no daemon is lost', async () => {
    const namespace = await world.namespace('bootstrap');
    const images = [world.image('nested')];
    await world.create(
      daemonSet(namespace, 'one', { images }),
      daemonSet(namespace, 'two', { images, workload: { updateStrategy: { type: 'OnDelete' } } }),
      pod(namespace, 'nowhere', { images, spec: { nodeSelector: { 'example.com/nowhere': '' } } }),
    );
    await eventuallyRunsOn(namespace, 'one', NODES);
    await eventuallyRunsOn(namespace, 'two', NODES);
    const before = await uids(namespace, 'two');
    const watch = watchLeast(namespace, 'one');
    controller = await world.run();
    await world.eventuallyTainted();
    await eventuallyRunsOn(namespace, 'one', NODES);
    expect(await watch.stop()).to.be.at.least(NODES.length - 1);
    const written = await world.writesSince(0);
    const firstTaint = written.findIndex((line) => line.includes('/nodes/'));
    const earlier = written.slice(0, firstTaint).join('\n');
    expect(earlier).to.include('/daemonsets/one').and.to.include('/daemonsets/two').and.to.include('/pods/nowhere');
    // Nothing rolls a DaemonSet that its owner rolls by hand: its pods stay, under taints that they do not tolerate.
    expect(await uids(namespace, 'two')).to.deep.equal(before);
    const found = await world.get('DaemonSet', namespace, 'one');
    expect(tolerations(at(found, 'spec', 'template'))).to.deep.equal(ours('amd64', 'arm64', 's390x'));
    expect(recorded(found)).to.have.length(3);
  });

  it("gives a template exactly its set, keeps its author's tolerations, and narrows with its image", async () => {
    const namespace = await world.namespace('narrowing');
    const own = { key: 'example.com/own', operator: 'Exists' };
    await world.create(daemonSet(namespace, 'agent', { images: [world.image('nested')], tolerations: [own] }));
    await eventuallyRunsOn(namespace, 'agent', NODES);
    await eventuallyTemplate(namespace, 'agent', ['example.com/own:', ...ours('amd64', 'arm64', 's390x')]);
    await setImage(namespace, 'agent', 'multi');
    await eventuallyTemplate(namespace, 'agent', ['example.com/own:', ...ours('amd64', 'arm64')]);
    await eventuallyRunsOn(namespace, 'agent', ['amd64-1', 'amd64-2', 'arm64-1']);
    await setImage(namespace, 'agent', 'arm64');
    await eventuallyTemplate(namespace, 'agent', ['example.com/own:', ...ours('arm64')]);
    const found = await eventuallyRunsOn(namespace, 'agent', ['arm64-1']);
    expect(recorded(found)).to.have.length(1);
    await setImage(namespace, 'agent', 'nested');
    await eventuallyRunsOn(namespace, 'agent', NODES);
  });

  it('waits for no DaemonSet that cannot roll out, neither with the taints nor with other DaemonSets', async () => {
    await world.stopControllers();
    await untaintAll();
    const [tenant, other] = [await world.namespace('cannot-roll'), await world.namespace('held-up')];
    const images = [world.image('nested')];
    // Without its service account no pod of it can be created. Each of them took the turn for five minutes.
    const never = Array.from({ length: 6 }, (_, index) => `never-${index}`);
    const spec = { serviceAccountName: 'nobody' };
    for (const name of never) await world.create(daemonSet(tenant, name, { images, spec }));
    for (const name of never) {
      await world.eventually(`${name} to want pods`, async () => {
        const found = await world.get('DaemonSet', tenant, name);
        return at(found, 'status', 'desiredNumberScheduled') === NODES.length;
      });
    }
    await world.create(daemonSet(other, 'agent', { images }));
    await eventuallyRunsOn(other, 'agent', NODES);
    controller = await world.run();
    const all = ours('amd64', 'arm64', 's390x');
    for (const name of never) await eventuallyTemplate(tenant, name, all);
    await eventuallyTemplate(other, 'agent', all);
    await world.eventuallyTainted();
    await eventuallyRunsOn(other, 'agent', NODES);
    for (const name of never) await world.remove('DaemonSet', tenant, name);
  });

  for (const running of [true, false]) {
    const when = running ? 'runs' : 'is down';
    it(`loses no daemon when an update drops our tolerations, while the controller ${when}`, async () => {
      const namespace = await world.namespace(running ? 'dropped' : 'dropped-alone');
      const author = daemonSet(namespace, 'agent', { images: [world.image('nested')] });
      await world.create(author);
      await eventuallyRunsOn(namespace, 'agent', NODES);
      const before = await uids(namespace, 'agent');
      if (!running) await world.stopControllers();

      // A GitOps tool puts the template back as it is written down: nothing else changes, so nothing may roll.
      const found = await world.get('DaemonSet', namespace, 'agent');
      const template = { op: 'replace', path: '/spec/template/spec/tolerations', value: [] };
      await world.patch('DaemonSet', namespace, 'agent', [template]);
      await eventuallyTemplate(namespace, 'agent', ours('amd64', 'arm64', 's390x'));
      const after = await eventuallyRunsOn(namespace, 'agent', NODES);
      expect(await uids(namespace, 'agent')).to.deep.equal(before);
      expect(at(after, 'metadata', 'generation')).to.equal(at(found, 'metadata', 'generation'));

      // A new version of it rolls, one node at a time.
      const watch = watchLeast(namespace, 'agent');
      const labels = { metadata: { labels: { app: 'agent', version: '2' } } };
      const body = { spec: { template: { ...labels, spec: { tolerations: null } } } };
      await world.patch('DaemonSet', namespace, 'agent', body);
      await eventuallyRunsOn(namespace, 'agent', NODES);
      expect(await watch.stop()).to.be.at.least(NODES.length - 1);
      expect(await uids(namespace, 'agent')).to.not.include.members(before);
      if (!running) controller = await world.run();
    });
  }

  // A policy that a failed test leaves behind would let every later one fail, too.
  afterEach(async function () {
    if (this.currentTest?.state !== 'failed') return;
    await world.cluster.kubectl(['delete', ...POLICY, '--ignore-not-found']);
    await world.cluster.kubectl(['delete', 'node', 'amd64-9', '--ignore-not-found']);
    await world.cluster.kubectl(['-n', 'kube-system', 'delete', 'daemonset', 'cni', '--ignore-not-found']);
    // A DaemonSet whose write is always refused delays the first pass of later ones.
    await world.cluster.kubectl(['-n', 'too-large', 'delete', 'daemonset', 'huge', '--ignore-not-found']);
  });

  it('taints no node, now or when it joins, that a DaemonSet wants whose write a policy refuses', async function () {
    await world.stopControllers();
    await untaintAll();
    const spec = { nodeSelector: { 'kubernetes.io/arch': 'amd64' } };
    await world.create(daemonSet('kube-system', 'cni', { images: [world.image('nested')], spec }));
    await eventuallyRunsOn('kube-system', 'cni', ['amd64-1', 'amd64-2']);
    await world.cluster.apply(HANDS_OFF);
    await eventuallyRefused('kube-system', 'cni');
    controller = await world.run(['--bootstrap.timeout', '5s']);
    // A write that was refused again and again is tried again after up to five minutes.
    this.timeout(600_000);
    const eventuallyTainted = (...names: readonly string[]) =>
      world.cluster.waitFor(
        `${names.join()} to be tainted`,
        async () => (await Promise.all(names.map((name) => world.node(name)))).every((node) => taints(node).length > 0),
        330_000,
      );
    await eventuallyTainted('arm64-1', 's390x-1');
    await world.eventuallyEvent(
      'kube-system',
      'TaintHeldBack',
      /2 nodes \(amd64-1, amd64-2\).*to the source.*hands off/,
    );
    await world.eventuallyEvent('default', 'TaintHeldBack', /DaemonSet kube-system\/cni would lose its pod/);
    const heldBack = () => controller.metric('archaware_taints_held_back');
    await world.eventually('two nodes to be held back', async () => (await heldBack()) === 2);
    await world.cluster.createNode({ name: 'amd64-9', architecture: 'amd64' });
    await eventuallyRunsOn('kube-system', 'cni', ['amd64-1', 'amd64-2', 'amd64-9']);
    await world.eventually('the node that joined to be held back', async () => (await heldBack()) === 3);
    // The add-on gets a new version. This update removed all of its pods, for ever.
    const watch = watchLeast('kube-system', 'cni');
    const annotations = { 'example.com/version': '2' };
    await world.patch('DaemonSet', 'kube-system', 'cni', { spec: { template: { metadata: { annotations } } } });
    await eventuallyRunsOn('kube-system', 'cni', ['amd64-1', 'amd64-2', 'amd64-9']);
    expect(await watch.stop()).to.be.at.least(2);
    expect(taints(await world.node('amd64-9'))).to.deep.equal([]);

    await world.cluster.kubectl(['delete', 'validatingadmissionpolicybinding', 'refuse-in-kube-system']);
    await eventuallyTainted('amd64-1', 'amd64-2', 'amd64-9');
    await eventuallyRunsOn('kube-system', 'cni', ['amd64-1', 'amd64-2', 'amd64-9']);
    await world.eventually('no node to be held back', async () => (await heldBack()) === 0);

    // The policy is back, and somebody removes the taint and the tolerations.
    await world.cluster.apply(HANDS_OFF);
    await eventuallyRefused('kube-system', 'cni');
    const dropped = { spec: { template: { spec: { tolerations: null } } } };
    const path = `${pathOf('DaemonSet', 'kube-system', 'cni')}?fieldManager=archaware-controller`;
    await world.cluster.kubectl(['taint', 'nodes', '--all', 'supported-arch:NoSchedule-']);
    await world.cluster.request('PATCH', path, dropped);
    await world.remove('DaemonSet', 'kube-system', 'cni');
    await world.cluster.kubectl(['delete', ...POLICY]);
    await world.remove('Node', '', 'amd64-9');
    await eventuallyTainted(...NODES);
  });

  it('is not held up by a tenant whose forged record makes the own policies refuse the write', async () => {
    await world.stopControllers();
    await untaintAll();
    const namespace = await world.namespace('forged');
    await world.create(daemonSet(namespace, 'forger', { images: [world.image('nested')] }));
    await eventuallyRunsOn(namespace, 'forger', NODES);
    // The fields have another order than archaware's, so the policy does not know this entry as one that was there before.
    const forged = {
      tolerations: [{ value: 'amd64', effect: 'NoSchedule', operator: 'Equal', key: 'kubernetes.io/arch' }],
    };
    const annotations = { 'archaware.dev/tolerations': JSON.stringify(forged) };
    await world.patch('DaemonSet', namespace, 'forger', { metadata: { annotations } });
    controller = await world.run(['--bootstrap.timeout', '5s']);
    await world.eventuallyTainted();
    expect(tolerations(await template(namespace, 'forger'))).to.deep.equal([]);
    await world.eventuallyEvent(namespace, 'WriteRefused', /archaware-guard-daemonsets/);
    await world.remove('DaemonSet', namespace, 'forger');
  });

  /** The policy is enforced a moment after it was applied. */
  const eventuallyRefused = (namespace: string, name: string) =>
    world.eventually('the policy to be enforced', async () => {
      const path = `${pathOf('DaemonSet', namespace, name)}?dryRun=All`;
      const body = { metadata: { annotations: { 'example.com/probe': 'archaware' } } };
      return (await world.cluster.request('PATCH', path, body)).status === 422;
    });

  describe('tries whether updates that drop its tolerations are corrected', () => {
    const guard = async () => {
      const flags = ['--kubeconfig', world.cluster.kubeconfig, '-o', 'json'];
      const { code, stdout, stderr } = await runBundle(['status', ...flags]);
      const found = listAt(JSON.parse(stdout), 'problems').map((problem) => String(at(problem, 'problem')));
      return { code, stderr, problems: found.filter((text) => text.includes('is not corrected')) };
    };
    const eventuallyHolds = (value: number) =>
      world.eventually(`archaware_safety_net_holds to be ${value}`, async () => {
        return (await controller.metric('archaware_safety_net_holds', { net: 'daemonsets' })) === value;
      });
    const warnings = () => controller.logs().filter((line) => line.includes('would be stored'));

    before(async () => {
      await world.stopControllers();
      const namespace = await world.namespace('tried-late');
      await world.create(daemonSet(namespace, 'late', { images: [world.image('nested')] }));
      controller = await world.run();
      await eventuallyHolds(1);
      expect(warnings()).to.deep.equal([]);
    });

    it('after the first pass, and names what is wrong where the policy fails, which its failure policy hides', async () => {
      await world.stopControllers();
      await world.cluster.apply(await failingKeep());
      await world.eventually('the policy to correct nothing', async () => {
        const path = `${pathOf('DaemonSet', 'tried-late', 'late')}?dryRun=All`;
        const drop = [{ op: 'remove', path: '/spec/template/spec/tolerations' }];
        const { body } = await world.cluster.request('PATCH', path, drop);
        return tolerations(at(body, 'spec', 'template')).length === 0;
      });
      const before = await template('tried-late', 'late');
      controller = await world.run();
      await eventuallyHolds(0);
      await world.eventually('the warning', async () => warnings().length === 1);
      const { code, problems } = await guard();
      expect([code, problems.length]).to.deep.equal([2, 1]);
      expect(await template('tried-late', 'late')).to.deep.equal(before);
    });

    it('and with the failure policy of the runbook, such an update is refused, and others are not', async () => {
      const [, command = ''] =
        /^(kubectl patch mutatingadmissionpolicy .*)$/m.exec(await readFile(RUNBOOK, 'utf8')) ?? [];
      const [, patch = ''] = /-p '(.*)'$/.exec(command) ?? [];
      const policy = '/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/archaware-keep';
      expect((await world.cluster.request('PATCH', policy, Object(JSON.parse(patch)))).status).to.equal(200);
      const answer = (patch: object) =>
        world.cluster.request('PATCH', `${pathOf('DaemonSet', 'tried-late', 'late')}?dryRun=All`, patch);
      const drop = [{ op: 'remove', path: '/spec/template/spec/tolerations' }];
      const refusal = await world.eventually('the update to be refused', async () => {
        const { status, body } = await answer(drop);
        return status >= 400 && String(at(body, 'message'));
      });
      expect(refusal).to.include('archaware-keep');
      expect((await answer({ metadata: { labels: { changed: 'yes' } } })).status).to.equal(200);
      // The leader does not take the refusal for a verdict.
      expect(await controller.metric('archaware_safety_net_holds', { net: 'daemonsets' })).to.equal(0);
    });
  });

  const setImage = (namespace: string, name: string, tag: string) =>
    world.patch('DaemonSet', namespace, name, [
      { op: 'replace', path: '/spec/template/spec/containers/0/image', value: world.image(tag) },
    ]);

  async function untaintAll(): Promise<void> {
    await world.cluster.kubectl(['taint', 'nodes', '--all', 'supported-arch:NoSchedule-']);
    await world.cluster.kubectl(['annotate', 'nodes', '--all', 'archaware.dev/managed-']);
  }

  /** Counts daemon pods until it is stopped; returns the lowest count. */
  function watchLeast(namespace: string, name: string): { stop(): Promise<number> } {
    let [watching, least] = [true, Number.POSITIVE_INFINITY];
    const watch = async () => {
      while (watching) least = Math.min(least, (await world.pods(namespace, name)).length);
    };
    const watched = watch();
    return {
      async stop() {
        watching = false;
        await watched;
        return least;
      },
    };
  }
});

/** A policy "hands off kube-system", as managed clusters have one. Its second part lets a test see whether it is enforced. */
const HANDS_OFF = refusing('kube-system', {
  expression:
    "!request.userInfo.username.contains('archaware') && dyn(object.metadata).?annotations['example.com/probe'].orValue('') == ''",
  message: 'hands off kube-system',
});
/** The policy as it was before 1.37: since then no part of the object may stand in a patch. */
async function failingKeep(): Promise<string> {
  const [policy] = parseAllDocuments(await manifestWithoutDeployment())
    .map((document): unknown => document.toJS())
    .filter((object) => at(object, 'kind') === 'MutatingAdmissionPolicy');
  const patch =
    'JSONPatch{op: "add", path: "/spec/template/spec/tolerations", value: dyn(object.spec.template.spec).?tolerations.orValue([]) + variables.lost}';
  const expression = `variables.lost.size() == 0 ? [] : [${patch}]`;
  const mutations = [{ patchType: 'JSONPatch', jsonPatch: { expression } }];
  return stringify({ ...Object(policy), spec: { ...Object(at(policy, 'spec')), mutations } });
}

function isRolledOut(found: unknown): boolean {
  const status = (field: string) => Number(at(found, 'status', field) ?? 0);
  const desired = status('desiredNumberScheduled');
  return (
    status('observedGeneration') >= Number(at(found, 'metadata', 'generation')) &&
    status('updatedNumberScheduled') === desired &&
    status('numberAvailable') === desired &&
    listAt(found, 'spec', 'template', 'spec', 'containers').length > 0
  );
}
