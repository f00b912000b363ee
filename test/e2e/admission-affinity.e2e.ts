import { expect } from 'chai';
import { expectSuccess } from '../../hack/cluster/client.ts';
import { at } from '../../hack/cluster/json.ts';
import { annotation, runs, scheduledOn, taints, tolerations } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { arrangeWebhook, eventuallyTrusted } from '../support/webhook.ts';
import { daemonSet, type PodOptions, pod } from '../support/workloads.ts';
import { pathOf } from '../support/world.ts';
import { ARM, PREFERENCES, SHAPES } from './support/affinity-rows.ts';
import { admit, affinity, freshImage, GATE, gates, isIn, MANAGED, onArch, required } from './support/placed.ts';
import { arrange, type Places } from './support/places.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

describe('admission in mode affinity, on the real control plane', () => {
  let world: LiveWorld;
  let places: Places;
  let controller: RunningController;
  let count = 0;

  const create = async (name: string, annotations: object = {}, labels: object = {}) => {
    const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, annotations, labels } };
    expectSuccess(name, await world.cluster.request('POST', pathOf('Namespace', ''), object));
    await world.eventually('its account', () => world.get('ServiceAccount', name, 'default'));
  };

  before(async () => {
    const nodes = ['amd64', 'arm64'].map((architecture) => ({
      name: `${architecture}-1`,
      architecture,
      labels: { 'example.com/zone': 'a', 'example.com/pool': architecture },
    }));
    world = await startWorld({ nodes, guard: { nodeLabels: ['example.com/pool'] } });
    places = await arrange(world);
    await create('plain');
    await create('tiered', {}, { tier: 'gold' });
    await create('annotated', { 'archaware.dev/preferred': 'arm64=75,amd64=25' }, { tier: 'gold' });
    await create('misread-warm', { 'archaware.dev/preferred': 'arm64=none' });
    await create('misread', { 'archaware.dev/preferred': 'arm64=lots' });
    const { flags } = await arrangeWebhook(world);
    const file = await places.file('config.yaml', {
      placement: { mode: 'affinity' },
      architectures: { preferred: { arm64: 10 } },
      pods: { matchNodeLabels: ['example.com/pool'], excludeNamespaces: ['left-*'] },
      policies: [
        { name: 'gold', namespaceSelector: 'tier=gold', preferred: { amd64: 20 } },
        { name: 'narrow', podSelector: 'narrow=yes', schedulable: ['amd64'] },
        { name: 'reject', podSelector: 'torn=reject', noCommonArchitecture: 'reject' },
        { name: 'release', podSelector: 'torn=release', noCommonArchitecture: 'release' },
        // What a row of SHAPES says should not be mixed with preferences.
        { name: 'shapes', podSelector: 'shape=yes', preferred: {} },
      ],
    });
    controller = await world.run([...flags, '--config', file]);
    await eventuallyTrusted(world);
    for (const tag of ['arm64', 'amd64', 'multi', 'windows-mixed']) {
      await world.create(pod('plain', `warm-${tag}`, { images: [world.image(tag)] }));
      await world.eventually('an image to be known', async () => runs(await world.get('Pod', 'plain', `warm-${tag}`)));
    }
  });
  after(async () => {
    await world?.stop();
    await places?.remove();
  });

  /** Creates the pod with a known image, and with one that is not known; returns both, the second one after its release. */
  async function bothWays(ns: string, tag: string, options: Omit<PodOptions, 'images'>) {
    const [known, unknown] = [`known-${++count}`, `unknown-${count}`];
    const atOnce = await admit(world, pod(ns, known, { ...options, images: [world.image(tag)] }));
    expect(gates(atOnce), 'of the one that is known').to.deep.equal([]);
    const gated = await admit(world, pod(ns, unknown, { ...options, images: [await freshImage(world, tag)] }));
    expect(gates(gated), 'of the one that is not').to.deep.equal([GATE]);
    const released = await world.eventually('the gate to go', async () => {
      const found = await world.get('Pod', ns, unknown);
      return gates(found).length === 0 && found;
    });
    return [atOnce, released];
  }

  for (const [title, own, wanted, fits] of SHAPES) {
    it(`narrows what a pod asks for: ${title}`, async () => {
      const found = await bothWays('plain', 'arm64', { spec: own, labels: { shape: 'yes' } });
      for (const result of found) {
        expect(affinity(result)).to.deep.equal(wanted);
        expect(tolerations(result)).to.deep.equal([]);
        const name = String(at(result, 'metadata', 'name'));
        if (fits) await world.eventually(`${name} to run`, async () => runs(await world.get('Pod', 'plain', name)));
        else expect(scheduledOn(await world.get('Pod', 'plain', name))).to.equal(undefined);
      }
    });
  }

  for (const [title, ns, labels, wanted] of PREFERENCES) {
    it(`prefers by ${title}`, async () => {
      for (const found of await bothWays(ns, 'multi', labels ? { labels } : {})) {
        expect(affinity(found)).to.deep.equal({
          nodeAffinity: { ...required([onArch('amd64', 'arm64')]), ...Object(wanted) },
        });
      }
    });
  }

  it("reports a namespace's annotation that cannot be read", async () => {
    const note = await world.eventuallyEvent('misread', 'ConfigurationRejected', /archaware.dev\/preferred/);
    expect(note).to.include('misread').and.to.include('arm64=lots').and.to.include('from 1 to 100');
    // Also where no pod had to wait for anything.
    await admit(world, pod('misread-warm', 'known', { images: [world.image('multi')] }));
    await world.eventuallyEvent('misread-warm', 'ConfigurationRejected', /arm64=none/);
  });

  it("reports a pod's label that names what no node can have, and of what is meant", async () => {
    const labels = { 'archaware.dev/preferred': 'x64' };
    await admit(world, pod('plain', 'misread-label', { images: [world.image('multi')], labels }));
    const note = await world.eventuallyEvent('plain', 'ConfigurationRejected', /label archaware\.dev\/preferred/);
    expect(note).to.include('got "x64"').and.to.include('did you mean amd64?');
  });

  it('requires only what a policy calls schedulable, the labels of pods.matchNodeLabels, and the OS where an image exists for several', async () => {
    const rows: [string, PodOptions['labels'], unknown[]][] = [
      ['multi', { narrow: 'yes' }, [onArch('amd64')]],
      ['arm64', { shape: 'yes', 'example.com/pool': 'arm64' }, [ARM, isIn('example.com/pool', 'arm64')]],
      ['windows-mixed', { shape: 'yes' }, [onArch('amd64', 'arm64'), isIn('kubernetes.io/os', 'linux')]],
    ];
    for (const [tag, labels, wanted] of rows) {
      for (const found of await bothWays('plain', tag, { ...(labels ? { labels } : {}) })) {
        const nodeAffinity = at(found, 'spec', 'affinity', 'nodeAffinity');
        expect(at(nodeAffinity, 'requiredDuringSchedulingIgnoredDuringExecution')).to.deep.equal(
          at(required(wanted), 'requiredDuringSchedulingIgnoredDuringExecution'),
        );
      }
    }
  });

  it("records what admission gave in the pod's annotation", async () => {
    const [atOnce, released] = await bothWays('plain', 'arm64', { labels: { shape: 'yes' } });
    const { signature, ...record } = JSON.parse(String(annotation(atOnce, MANAGED)));
    expect(record).to.deep.equal({ tolerations: [], required: [ARM], preferred: [] });
    expect(signature).to.match(/^[\w+/=-]{40,90}$/);
    expect(annotation(released, MANAGED)).to.equal(undefined);
  });

  it('leaves alone what names its node, what is labelled so, and excluded namespaces', async () => {
    const images = [await freshImage(world, 'arm64')];
    const ignored = { 'archaware.dev/ignore': 'true' };
    await create('ignored', {}, ignored);
    await create('left-alone');
    const before = await controller.metric('archaware_admission_reviews_total');
    const bound = pod('plain', 'bound', { images, spec: { nodeName: 'amd64-1' } });
    for (const object of [
      bound,
      pod('plain', 'labelled', { images, labels: ignored }),
      pod('ignored', 'of-it', { images }),
    ]) {
      const found = await admit(world, object);
      expect([gates(found), affinity(found), annotation(found, MANAGED)]).to.deep.equal([[], undefined, undefined]);
    }
    // The API server does not even ask.
    expect(await controller.metric('archaware_admission_reviews_total')).to.equal(before);
    const excluded = await admit(world, pod('left-alone', 'excluded', { images }));
    expect([gates(excluded), affinity(excluded)]).to.deep.equal([[], undefined]);
    expect(await controller.metric('archaware_admission_reviews_total', { outcome: 'unchanged' })).to.be.above(0);
  });

  it('releases gated pods unchanged when their namespace gets the label, and places new ones when the label is removed', async () => {
    await create('changing');
    world.registry.kill('SIGSTOP');
    try {
      const images = [world.image('wide')];
      expect(gates(await admit(world, pod('changing', 'gated', { images })))).to.deep.equal([GATE]);
      await world.patch('Namespace', '', 'changing', { metadata: { labels: { 'archaware.dev/ignore': 'true' } } });
      const released = await world.eventually('the gate to go', async () => {
        const found = await world.get('Pod', 'changing', 'gated');
        return gates(found).length === 0 && found;
      });
      expect(affinity(released)).to.equal(undefined);
      await world.patch('Namespace', '', 'changing', { metadata: { labels: { 'archaware.dev/ignore': null } } });
      let tries = 0;
      await world.eventually('a new pod to be gated', async () =>
        gates(await admit(world, pod('changing', `next-${++tries}`, { images }))).includes(GATE),
      );
      await world.patch('Pod', 'changing', `next-${tries}`, {
        metadata: { labels: { 'archaware.dev/ignore': 'true' } },
      });
      await world.eventually(
        'the gate to go by its own label',
        async () => gates(await world.get('Pod', 'changing', `next-${tries}`)).length === 0,
      );
    } finally {
      world.registry.kill('SIGCONT');
    }
  });

  it('gates nothing in our own namespace, in system namespaces, and no control plane pod', async () => {
    world.registry.kill('SIGSTOP');
    try {
      const images = [world.image('riscv64')];
      await world.eventually('its account', () => world.get('ServiceAccount', 'kube-system', 'default'));
      const restricted = {
        securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
        containers: [
          {
            name: 'main',
            image: images[0],
            securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          },
        ],
      };
      const nodeSelector = { 'node-role.kubernetes.io/control-plane': '' };
      for (const object of [
        pod('archaware', 'own', { images, spec: restricted }),
        pod('kube-system', 'system', { images }),
        pod('plain', 'control-plane', { images, spec: { nodeSelector } }),
      ]) {
        expect(gates(await admit(world, object)), object.metadata.name).to.deep.equal([]);
      }
    } finally {
      world.registry.kill('SIGCONT');
    }
  });

  it('does not taint nodes, nor touch DaemonSets', async () => {
    await world.create(daemonSet('plain', 'daemon', { images: [world.image('multi')] }));
    await world.eventually('its pods to run', async () => {
      const pods = await world.pods('plain', 'daemon');
      return pods.length === 2 && pods.every(runs);
    });
    const set = await world.get('DaemonSet', 'plain', 'daemon');
    expect([tolerations(at(set, 'spec', 'template')), at(set, 'metadata', 'generation')]).to.deep.equal([[], 1]);
    // Its own pods name their node: the requirement would be nothing but an obstacle.
    for (const found of await world.pods('plain', 'daemon')) {
      expect(JSON.stringify(affinity(found))).to.not.include('kubernetes.io/arch');
    }
    expect((await world.list('Node', '')).flatMap(taints)).to.deep.equal([]);
  });

  describe('where images have nothing in common', () => {
    const torn = (labels: Record<string, string>, images = [world.image('amd64'), world.image('arm64')]) =>
      pod('plain', `torn-${++count}`, { images, labels });

    it('holds the pod, with an Event that names each image and what it runs on', async () => {
      const object = torn({});
      expect(gates(await admit(world, object))).to.deep.equal([GATE]);
      const note = await world.eventuallyEvent('plain', 'NoCommonArchitecture', /^no architecture/);
      expect(note).to.include(`${world.image('amd64')} (linux/amd64)`);
      expect(note).to.include(`${world.image('arm64')} (linux/arm64)`);
      expect(gates(await world.get('Pod', 'plain', object.metadata.name))).to.deep.equal([GATE]);
    });

    it('refuses it at admission with reject, where all is known there, else holds it', async () => {
      const object = torn({ torn: 'reject' });
      const { status, body } = await world.cluster.request('POST', pathOf('Pod', 'plain'), object);
      expect(status).to.equal(403);
      expect(String(at(body, 'message'))).to.include(`${world.image('amd64')} (linux/amd64)`);
      expect(String(at(body, 'message'))).to.include(`${world.image('arm64')} (linux/arm64)`);
      expect(await controller.metric('archaware_admission_reviews_total', { outcome: 'rejected' })).to.equal(1);
      const cold = torn({ torn: 'reject' }, [world.image('amd64'), await freshImage(world, 'arm64')]);
      expect(gates(await admit(world, cold))).to.deep.equal([GATE]);
      await world.eventuallyEvent('plain', 'NoCommonArchitecture', /^policy reject: no architecture.*fresh/);
      expect(gates(await world.get('Pod', 'plain', cold.metadata.name))).to.deep.equal([GATE]);
    });

    it('lets it go anywhere with release, with an Event', async () => {
      const object = torn({ torn: 'release' });
      const found = await admit(world, object);
      expect([
        gates(found),
        at(affinity(found), 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution'),
      ]).to.deep.equal([[], undefined]);
      await world.eventually('it to run', async () => runs(await world.get('Pod', 'plain', object.metadata.name)));
    });
  });
});
