import { expect } from 'chai';
import { expectSuccess } from '../../hack/cluster/client.ts';
import { at, listAt } from '../../hack/cluster/json.ts';
import { annotation, nameOf, ours, runs, scheduledOn, tolerations, uidOf } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { arrangeWebhook, eventuallyTrusted } from '../support/webhook.ts';
import { patching, startWebhookServer, type WebhookServer } from '../support/webhook-server.ts';
import { daemonSet, deployment, job, type KubernetesObject, pod, statefulSet } from '../support/workloads.ts';
import { pathOf } from '../support/world.ts';
import {
  admit,
  affinity,
  freshImage,
  GATE,
  gates,
  inSilence,
  lookUps,
  now,
  onArch,
  patchesOf,
  required,
  versions,
} from './support/placed.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const POLICY = 'mutatingadmissionpolicy,mutatingadmissionpolicybinding';
const ON_ARM = { nodeAffinity: required([onArch('arm64')]) };

/** A CronJob whose last time has passed a moment ago, so that nobody waits for the next full minute. */
async function cronJob(world: LiveWorld, namespace: string, name: string, image: string): Promise<void> {
  const { spec } = job(namespace, name, { images: [image] });
  await world.create({
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name, namespace },
    spec: { schedule: '* * * * *', jobTemplate: { spec }, concurrencyPolicy: 'Forbid' },
  });
  const path = `${pathOf('CronJob', namespace, name)}/status`;
  const status = { lastScheduleTime: new Date(Date.now() - 120_000).toISOString().replace(/\.\d+/, '') };
  expectSuccess('its status', await world.cluster.request('PATCH', path, { status }));
}

type Arrange = (world: LiveWorld, namespace: string, image: string) => Promise<void>;
const WORKLOADS: readonly [name: string, pods: number, arrange: Arrange][] = [
  ['a bare pod', 1, (world, ns, image) => world.create(pod(ns, 'app', { images: [image] }))],
  ['a Deployment', 3, (world, ns, image) => world.create(deployment(ns, 'app', { images: [image], replicas: 3 }))],
  ['a StatefulSet', 2, (world, ns, image) => world.create(statefulSet(ns, 'app', { images: [image], replicas: 2 }))],
  ['a Job', 2, (world, ns, image) => world.create(job(ns, 'app', { images: [image], replicas: 2 }))],
  ['a CronJob', 1, (world, ns, image) => cronJob(world, ns, 'app', image)],
];

describe('admission of workloads, on the real control plane, with taints and affinity', () => {
  let world: LiveWorld;
  let controller: RunningController;
  let warm: string;
  let namespaces = 0;

  before(async () => {
    world = await startWorld();
    const { flags } = await arrangeWebhook(world);
    controller = await world.run([...flags, '--placement.mode', 'both', '--bootstrap.timeout', '5s']);
    await eventuallyTrusted(world);
    warm = world.image('arm64');
    const ns = await world.namespace('warming');
    await world.create(pod(ns, 'first', { images: [warm] }));
    await world.eventually('an image to be known', async () => runs(await world.get('Pod', ns, 'first')));
  });
  after(() => world?.stop());

  const namespace = () => world.namespace(`workloads-${++namespaces}`);
  const placed = (ns: string, count: number) =>
    world.eventually(`${count} pods to run`, async () => {
      const pods = await world.pods(ns, 'app');
      return pods.length === count && pods.every(runs) && pods;
    });
  const reviews = (outcome: string) => controller.metric('archaware_admission_reviews_total', { outcome });

  for (const [name, count, arrange] of WORKLOADS) {
    it(`gates the pods of ${name} while its image is not known, and releases each with one write`, async () => {
      const ns = await namespace();
      const since = await now(world, ns);
      const image = await freshImage(world, 'arm64');
      let gated: readonly string[] = [];
      await inSilence(world, async () => {
        await arrange(world, ns, image);
        await world.eventually('every pod to be gated', async () => {
          const pods = await world.pods(ns, 'app');
          gated = pods.map(nameOf);
          return pods.length === count && pods.every((found) => gates(found).includes(GATE));
        });
      });
      for (const found of await placed(ns, count)) {
        expect(scheduledOn(found)).to.equal('arm64-1');
        expect(affinity(found)).to.deep.equal(ON_ARM);
        expect(tolerations(found)).to.deep.equal(ours('arm64'));
        expect(await patchesOf(world, ns, nameOf(found))).to.equal(1);
      }
      const seen = await versions(world, ns, since);
      // The next pod of a CronJob may follow, and its image is known then.
      for (const name of gated) {
        const [first, ...later] = seen.get(name) ?? [];
        expect(gates(first)).to.deep.equal([GATE]);
        expect(gates(later.at(-1))).to.deep.equal([]);
        // Never bound before it was released.
        expect([first, ...later].filter((version) => gates(version).length > 0 && scheduledOn(version))).to.be.empty;
      }
      expect(await lookUps(world, image)).to.equal(1);
    });

    it(`places the pods of ${name} at once where its image is known: no gate ever, no write`, async () => {
      const ns = await namespace();
      const since = await now(world, ns);
      await arrange(world, ns, warm);
      for (const found of await placed(ns, count)) {
        expect(scheduledOn(found)).to.equal('arm64-1');
        expect(affinity(found)).to.deep.equal(ON_ARM);
        expect(tolerations(found)).to.deep.equal(ours('arm64'));
        expect(at(found, 'metadata', 'generation')).to.equal(1);
        expect(await patchesOf(world, ns, nameOf(found))).to.equal(0);
      }
      const history = [...(await versions(world, ns, since)).values()].flat();
      expect(history.length).to.be.at.least(count);
      expect(history.flatMap(gates)).to.deep.equal([]);
    });
  }

  it('asks once for the image of many replicas', async () => {
    const ns = await namespace();
    const image = await freshImage(world, 'multi');
    const before = await reviews('gated');
    await world.create(deployment(ns, 'app', { images: [image], replicas: 30 }));
    await placed(ns, 30);
    expect(await lookUps(world, image)).to.equal(1);
    expect(await reviews('gated')).to.be.above(before);
  });

  it('shows in a dry run what would become of a pod, and asks no registry for it', async () => {
    const ns = await namespace();
    const image = await freshImage(world, 'arm64');
    const cold = await admit(world, pod(ns, 'cold', { images: [image] }), true);
    expect(gates(cold)).to.deep.equal([GATE]);
    const known = await admit(world, pod(ns, 'known', { images: [warm] }), true);
    expect(gates(known)).to.deep.equal([]);
    expect(affinity(known)).to.deep.equal(ON_ARM);
    const { code, stdout } = await world.cluster.kubectl(['apply', '--dry-run=server', '-o', 'json', '-f', '-'], {
      input: JSON.stringify(pod(ns, 'applied', { images: [image] })),
    });
    expect(code).to.equal(0);
    expect(gates(JSON.parse(stdout))).to.deep.equal([GATE]);
    expect(await world.list('Pod', ns)).to.deep.equal([]);
    // Whatever is asked for is asked for at once; a pod that came later was served meanwhile.
    const later = await freshImage(world, 'arm64');
    await world.create(pod(ns, 'app', { images: [later] }));
    await placed(ns, 1);
    expect(await lookUps(world, image)).to.equal(0);
  });

  describe('beside a webhook that injects a sidecar after ours', () => {
    let injector: WebhookServer;
    let sidecar: string;
    const rows: readonly [title: string, main: 'known' | 'fresh', sidecar: 'known' | 'fresh', gated: boolean][] = [
      ['both known', 'known', 'known', false],
      ['the pod itself not known', 'fresh', 'known', true],
      ['the sidecar not known', 'known', 'fresh', true],
    ];

    before(async () => {
      injector = await startWebhookServer();
      injector.answer('/inject', ({ object: reviewed }) => {
        if (JSON.stringify(reviewed).includes('"sidecar"')) return { allowed: true };
        return patching([{ op: 'add', path: '/spec/containers/-', value: { name: 'sidecar', image: sidecar } }]);
      });
      const webhooks = [injector.webhook('inject', { objectSelector: { matchLabels: { inject: 'yes' } } })];
      const metadata = { name: 'zz-injector' };
      const kind = { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'MutatingWebhookConfiguration' };
      await world.cluster.apply(JSON.stringify({ ...kind, metadata, webhooks }));
      const ns = await namespace();
      sidecar = world.image('arm64');
      await world.eventually('it to inject', async () => {
        const found = await admit(world, pod(ns, 'probe', { images: [warm], labels: { inject: 'yes' } }), true);
        return listAt(found, 'spec', 'containers').length === 2;
      });
      await world.create(pod(ns, 'app', { images: [world.image('multi')] }));
      await placed(ns, 1);
    });
    after(async () => {
      await world.cluster.kubectl(['delete', 'mutatingwebhookconfiguration', 'zz-injector']);
      await injector?.stop();
    });

    for (const [title, main, other, gated] of rows) {
      it(`narrows what the pod was given for the sidecar: ${title}`, async () => {
        const ns = await namespace();
        const image = main === 'known' ? world.image('multi') : await freshImage(world, 'multi');
        sidecar = other === 'known' ? world.image('arm64') : await freshImage(world, 'arm64');
        await inSilence(world, async () => {
          const created = await admit(world, pod(ns, 'app', { images: [image], labels: { inject: 'yes' } }));
          const containers = listAt(created, 'spec', 'containers');
          expect(containers.map((container) => at(container, 'image'))).to.deep.equal([image, sidecar]);
          expect(gates(created)).to.deep.equal(gated ? [GATE] : []);
        });
        const [found] = await placed(ns, 1);
        expect([affinity(found), tolerations(found)]).to.deep.equal([ON_ARM, ours('arm64')]);
        expect(await patchesOf(world, ns, 'app')).to.equal(gated ? 1 : 0);
      });
    }
  });

  describe('of a DaemonSet', () => {
    const ready = (ns: string, count: number) =>
      world.eventually('its pods to run', async () => {
        const [set, pods] = [await world.get('DaemonSet', ns, 'app'), await world.pods(ns, 'app')];
        return (
          at(set, 'status', 'desiredNumberScheduled') === count && pods.length === count && pods.every(runs) && set
        );
      });
    const template = (set: unknown) => tolerations(at(set, 'spec', 'template'));

    it('gives the template its set at creation where its images are known, and gates no pod', async () => {
      const ns = await namespace();
      const since = await now(world, ns);
      await world.create(daemonSet(ns, 'app', { images: [warm] }));
      const created = await ready(ns, 1);
      expect(template(created)).to.deep.equal(ours('arm64'));
      expect(at(created, 'metadata', 'generation')).to.equal(1);
      expect([...(await versions(world, ns, since)).values()].flat().flatMap(gates)).to.deep.equal([]);
    });

    it('leaves one whose images are not known to its loop, and gates no pod of it', async () => {
      const ns = await namespace();
      const since = await now(world, ns);
      await world.create(daemonSet(ns, 'app', { images: [await freshImage(world, 'multi')] }));
      expect(template(await ready(ns, 2))).to.deep.equal(ours('amd64', 'arm64'));
      expect([...(await versions(world, ns, since)).values()].flat().flatMap(gates)).to.deep.equal([]);
    });

    it("repairs an update that drops archaware's tolerations, and no pod is removed", async () => {
      await world.cluster.kubectl(['delete', POLICY, 'archaware-keep']);
      const ns = await namespace();
      const wished: KubernetesObject = daemonSet(ns, 'app', { images: [world.image('multi')] });
      await world.create(wished);
      await ready(ns, 2);
      const settled = await world.eventually('its record', async () => {
        const set = await world.get('DaemonSet', ns, 'app');
        return annotation(set, 'archaware.dev/tolerations') !== undefined && set;
      });
      const pods = (await world.pods(ns, 'app')).map(uidOf);
      // A GitOps tool that does not know archaware writes its own object as a whole.
      const path = pathOf('DaemonSet', ns, 'app');
      const after = expectSuccess('the replacement', await world.cluster.request('PUT', path, wished));
      expect(template(after)).to.deep.equal(ours('amd64', 'arm64'));
      expect(at(after, 'metadata', 'generation')).to.equal(at(settled, 'metadata', 'generation'));
      expect(annotation(after, 'archaware.dev/tolerations')).to.equal(annotation(settled, 'archaware.dev/tolerations'));
      // Another change of the author rolls the DaemonSet, and archaware's tolerations stay in it.
      await world.patch('DaemonSet', ns, 'app', { metadata: { labels: { touched: 'yes' } } });
      await ready(ns, 2);
      expect((await world.pods(ns, 'app')).map(uidOf)).to.have.members(pods);
    });
  });
});
