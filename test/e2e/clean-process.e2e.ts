import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { carriedIn, outcome } from '../cli/both/carried.ts';
import { startCommand } from '../support/controller-process.ts';
import { manifestWithoutDeployment } from '../support/manifest.ts';
import { isGoing, nameOf, ours, tolerations } from '../support/objects.ts';
import { daemonSet, deployment, statefulSet } from '../support/workloads.ts';
import { type Kind, pathOf } from '../support/world.ts';
import { type ApiProxy, startApiProxy } from './support/api-proxy.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const BOTH = ours('amd64', 'arm64');
/** Kubernetes counts in these how often a template changed. */
const COUNTERS = ['deprecated.daemonset.template.generation', 'deployment.kubernetes.io/revision'];
const JSON_CLEAN = ['clean', '--yes', '--output', 'json'];
const OURS = { 'app.kubernetes.io/name': 'archaware-controller' };

describe('clean as a process, on the real control plane', () => {
  let world: LiveWorld;
  let manifest: string;
  let proxy: ApiProxy;
  let through: string;
  const ns = 'cleaned';

  beforeEach(async () => {
    world = await startWorld();
    manifest = await manifestWithoutDeployment();
    proxy = await startApiProxy(world.cluster);
    world.atEnd(proxy.close);
    through = await proxy.kubeconfig(world.kubeconfig);
    await world.namespace(ns);
  });
  afterEach(() => world?.stop());

  const { settle, nodesTainted, settledSets, running, carrying, nodeTaints, holder } = carriedIn(
    () => world,
    () => ns,
  );
  const clean = async (...flags: readonly string[]) =>
    outcome(
      await world.command([...JSON_CLEAN, '--kubeconfig', world.cluster.kubeconfig, '--pods', 'restart', ...flags]),
    );
  /** By the controller's account, through the proxy, which sees the order. */
  const watched = (...flags: readonly string[]) => [...JSON_CLEAN, '--kubeconfig', through, ...flags];

  it('ends on SIGINT at any point, gives the lease back, and finishes the next time', async () => {
    await world.create(
      daemonSet(ns, 'agent', { images: [world.image('multi')] }),
      deployment(ns, 'web', { images: [world.image('multi')], replicas: 2 }),
    );
    await settle();
    await running(4);
    for (const part of ['/nodes/arm64-1', '/daemonsets/agent']) {
      const hold = proxy.hold((method, path) => method !== 'GET' && path.includes(part));
      const command = startCommand(watched());
      await world.eventually(`it to write to ${part}`, async () => hold.held() > 0);
      command.kill('SIGINT');
      const { code, stderr } = await command.ended;
      hold.release();
      expect(code).to.equal(1);
      expect(stderr).to.match(/archaware: interrupted; clean can be run again/);
      expect(await holder()).to.equal('');
    }
    const { code, left } = await clean();
    expect(left).to.deep.equal([]);
    expect(code).to.equal(0);
    expect(await nodeTaints()).to.deep.equal([]);
    expect(await carrying()).to.deep.equal([]);
  });

  it('asks once on a terminal, before anything, and restarts the owners of pods there', async function () {
    if (!existsSync('/usr/bin/script')) this.skip();
    await world.create(deployment(ns, 'web', { images: [world.image('multi')] }));
    await settle();
    const answer = async (...answers: readonly string[]) => {
      const command = startCommand(['clean', '--kubeconfig', world.cluster.kubeconfig], { terminal: true });
      for (const [index, text] of answers.entries()) {
        await world.eventually('the question', async () => command.output().split('[y/N]').length > index + 1);
        command.type(`${text}\n`);
      }
      return command.ended;
    };
    expect((await answer('n')).code).to.equal(1);
    const interrupted = await answer('\u0003');
    expect(interrupted.code).to.equal(1);
    expect(interrupted.stdout).to.include('nothing was done');
    expect(await nodeTaints()).to.have.members(BOTH);

    const whole = await answer('y');
    expect(whole.code).to.equal(0);
    expect(whole.stdout).to.match(/pods with tolerations or affinity +1 +0/);
    expect(await nodeTaints()).to.deep.equal([]);
    expect(await carrying()).to.deep.equal([]);
  });

  it('apply, run, clean and delete leave no trace; clean also works when the manifest has gone first', async () => {
    const deleted = async () => {
      const { code, stderr } = await world.cluster.kubectl(['delete', '-f', '-', '--ignore-not-found'], {
        input: manifest,
      });
      expect(code, stderr).to.equal(0);
    };
    await deleted();
    await world.create(
      daemonSet(ns, 'agent', { images: [world.image('multi')] }),
      deployment(ns, 'web', { images: [world.image('multi')], replicas: 2 }),
      statefulSet(ns, 'store', { images: [world.image('arm64')], tolerations: [{ operator: 'Exists' }] }),
    );
    await running(5);
    const before = await dump();

    for (const order of ['clean, then delete', 'delete, then clean'] as const) {
      await world.cluster.apply(manifest);
      await world.eventually('the account', () => world.get('ServiceAccount', 'archaware', 'archaware-controller'));
      await world.cluster.serviceAccountKubeconfig('archaware', 'archaware-controller');
      await world.run();
      await world.eventually('the nodes to be tainted', () => nodesTainted('supported-arch'));
      await world.eventually('the DaemonSet to roll', settledSets);
      expect(await dump()).to.not.deep.equal(before);
      await world.stopControllers();
      const first = order === 'delete, then clean';
      if (first) await deleted();
      const { code, left } = await clean();
      expect(left, order).to.deep.equal([]);
      expect(code, order).to.equal(0);
      if (!first) await deleted();
      await running(5);
      expect(await dump(), order).to.deep.equal(before);
    }
  });

  /** By an administrator. */
  const asAdmin = (...flags: readonly string[]) =>
    startCommand(['clean', '--kubeconfig', world.cluster.kubeconfig, ...flags]).ended;
  it('refuses beside its Deployment while it wants replicas; --stop scales it', async () => {
    await world.create(deployment(ns, 'web', { images: [world.image('multi')] }));
    await settle();
    await world.create(
      deployment('archaware', 'archaware-controller', { images: [world.image('multi')], replicas: 2 }),
    );
    try {
      const wants = 'Deployment archaware/archaware-controller wants 2 replicas';
      const refused = await asAdmin('--yes');
      expect([refused.code, refused.stdout]).to.deep.equal([1, '']);
      expect(refused.stderr).to.include(wants);
      const dry = await asAdmin('--dry-run');
      expect(dry.code).to.equal(0);
      expect(dry.stderr).to.include(`without --dry-run, clean refuses: ${wants}`);
      const mayNot = await startCommand(watched('--stop')).ended;
      expect(mayNot.code).to.equal(1);
      expect(mayNot.stderr).to.match(
        /deployments\/scale.*kubectl -n archaware scale deployment archaware-controller --replicas=0/,
      );
      expect(await nodeTaints()).to.have.members(BOTH);
      const stopped = await asAdmin('--yes', '--stop');
      expect(stopped.code, stopped.stderr).to.equal(0);
      expect(at(await world.get('Deployment', 'archaware', 'archaware-controller'), 'spec', 'replicas')).to.equal(0);
      expect(await nodeTaints()).to.deep.equal([]);
    } finally {
      await world.remove('Deployment', 'archaware', 'archaware-controller');
    }
  });

  it("has the README's rescue work without us, in its two lines", async () => {
    const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
    const [, block = ''] = /recovered without archaware[^`]*```sh[^\n]*\n([^`]*)```/.exec(readme) ?? [];
    const lines = block.trim().split('\n');
    expect(lines.length).to.equal(2);
    await world.create(deployment(ns, 'web', { images: [world.image('multi')] }));
    await world.run();
    await world.eventually('the nodes to be tainted', () => nodesTainted('supported-arch'));
    await world.create(
      deployment('archaware', 'archaware-controller', { images: [world.image('multi')], labels: OURS }),
    );
    await world.patch('Deployment', 'archaware', 'archaware-controller', { metadata: { labels: OURS } });
    const kubectl = (command: string) => world.cluster.kubectl(command.trim().split(/\s+/).slice(1));
    const [stop = '', untaint = ''] = lines;
    try {
      await kubectl(untaint);
      await world.eventually('the taints to come back beside a controller', () => nodesTainted('supported-arch'));
      for (const command of stop.split('&&')) {
        const { code, stderr } = await kubectl(command);
        expect(code, command + stderr).to.equal(0);
      }
      // The kubelet's part, before it takes the pods away.
      await world.stopControllers('SIGTERM');
      // One node has no taint, as on a cluster that was half undone.
      await world.patch('Node', '', 'amd64-1', { spec: { taints: null } });
      await kubectl(untaint);
      expect(await nodeTaints()).to.deep.equal([]);
      expect((await world.list('Pod', 'archaware')).length).to.equal(0);
    } finally {
      await world.remove('Deployment', 'archaware', 'archaware-controller');
    }
  });

  /** A restart leaves what `kubectl rollout restart` leaves. */
  function withoutRestart(spec: unknown): unknown {
    const isOnlyThat = (value: unknown) => Object.keys(Object(value)).join() === 'kubectl.kubernetes.io/restartedAt';
    const text = JSON.stringify(spec, (name, value: unknown) =>
      name === 'annotations' && isOnlyThat(value) ? undefined : value,
    );
    return JSON.parse(text);
  }

  /** Everything that archaware may have left anywhere, in a comparable form. */
  async function dump() {
    const request = async (path: string) => listAt((await world.cluster.request('GET', path)).body, 'items');
    const metadata = (object: unknown) => ({
      name: nameOf(object),
      labels: at(object, 'metadata', 'labels'),
      annotations: Object.entries(at(object, 'metadata', 'annotations') ?? {})
        .filter(([name]) => !COUNTERS.includes(name))
        .sort(),
    });
    const namesAt = async (path: string) => (await request(path)).map(nameOf).sort();
    const admission = '/apis/admissionregistration.k8s.io/v1';
    const rights = '/apis/rbac.authorization.k8s.io/v1';
    const kinds: readonly Kind[] = ['DaemonSet', 'Deployment', 'StatefulSet'];
    const workloads = await Promise.all(kinds.map((kind) => request(pathOf(kind, ns))));
    return {
      nodes: (await request('/api/v1/nodes')).map((node) => ({ ...metadata(node), spec: at(node, 'spec') })),
      workloads: workloads.flat().map((object) => ({ ...metadata(object), spec: withoutRestart(at(object, 'spec')) })),
      tolerations: (await world.list('Pod', ns))
        .filter((entry) => !isGoing(entry))
        .map((entry) => `${at(entry, 'metadata', 'labels', 'app')}: ${tolerations(entry)}`)
        .sort(),
      admission: await Promise.all(
        [
          'mutatingadmissionpolicies',
          'mutatingadmissionpolicybindings',
          'validatingadmissionpolicies',
          'validatingadmissionpolicybindings',
          'mutatingwebhookconfigurations',
        ].map((kind) => namesAt(`${admission}/${kind}`)),
      ),
      rights: await Promise.all(['clusterroles', 'clusterrolebindings'].map((kind) => namesAt(`${rights}/${kind}`))),
      leases: (await request(pathOf('Lease', ''))).map(nameOf).sort(),
    };
  }
});
