import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { nameOf, ours, runs, scheduledOn, tolerations } from '../support/objects.ts';
import { arrangeWebhook, eventuallyTrusted } from '../support/webhook.ts';
import { patching, startWebhookServer, type WebhookServer } from '../support/webhook-server.ts';
import { daemonSet, deployment, pod } from '../support/workloads.ts';
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

const ON_ARM = { nodeAffinity: required([onArch('arm64')]) };
/** What was required first stays, and what is required now is added: both together are arm64. */
const NARROWED = { nodeAffinity: required([onArch('amd64', 'arm64'), onArch('arm64')]) };

describe('admission of workloads, on the real control plane, with taints and affinity', () => {
  let world: LiveWorld;
  let warm: string;
  let namespaces = 0;

  before(async () => {
    world = await startWorld();
    const { flags } = await arrangeWebhook(world);
    await world.run([...flags, '--placement.mode', 'both', '--bootstrap.timeout', '5s']);
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

  it('gates the pods of a Deployment while their image is not known, and releases each with one write', async () => {
    const ns = await namespace();
    const since = await now(world, ns);
    const image = await freshImage(world, 'arm64');
    await inSilence(world, async () => {
      await world.create(deployment(ns, 'app', { images: [image], replicas: 3 }));
      await world.eventually('every pod to be gated', async () => {
        const pods = await world.pods(ns, 'app');
        return pods.length === 3 && pods.every((found) => gates(found).includes(GATE));
      });
    });
    for (const found of await placed(ns, 3)) {
      expect(scheduledOn(found)).to.equal('arm64-1');
      expect(affinity(found)).to.deep.equal(ON_ARM);
      expect(tolerations(found)).to.deep.equal(ours('arm64'));
      expect(await patchesOf(world, ns, nameOf(found))).to.equal(1);
    }
    for (const [first, ...later] of (await versions(world, ns, since)).values()) {
      expect(gates(first)).to.deep.equal([GATE]);
      expect(gates(later.at(-1))).to.deep.equal([]);
      // Never bound before it was released.
      expect([first, ...later].filter((version) => gates(version).length > 0 && scheduledOn(version))).to.be.empty;
    }
    expect(await lookUps(world, image)).to.equal(1);
  });

  it('places the pods of a Deployment at once where their image is known: no gate ever, no write', async () => {
    const ns = await namespace();
    const since = await now(world, ns);
    await world.create(deployment(ns, 'app', { images: [warm], replicas: 3 }));
    for (const found of await placed(ns, 3)) {
      expect(scheduledOn(found)).to.equal('arm64-1');
      expect(affinity(found)).to.deep.equal(ON_ARM);
      expect(tolerations(found)).to.deep.equal(ours('arm64'));
      expect(at(found, 'metadata', 'generation')).to.equal(1);
      expect(await patchesOf(world, ns, nameOf(found))).to.equal(0);
    }
    const history = [...(await versions(world, ns, since)).values()].flat();
    expect(history.length).to.be.at.least(3);
    expect(history.flatMap(gates)).to.deep.equal([]);
  });

  describe('beside a webhook that injects a sidecar after ours', () => {
    let injector: WebhookServer;
    let sidecar: string;

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

    for (const gated of [false, true]) {
      it(`narrows what the pod was given for the sidecar, ${gated ? 'which is not known' : 'both known'}`, async () => {
        const ns = await namespace();
        const image = world.image('multi');
        sidecar = gated ? await freshImage(world, 'arm64') : world.image('arm64');
        await inSilence(world, async () => {
          const created = await admit(world, pod(ns, 'app', { images: [image], labels: { inject: 'yes' } }));
          const containers = listAt(created, 'spec', 'containers');
          expect(containers.map((container) => at(container, 'image'))).to.deep.equal([image, sidecar]);
          expect(gates(created)).to.deep.equal(gated ? [GATE] : []);
        });
        const [found] = await placed(ns, 1);
        expect([affinity(found), tolerations(found)]).to.deep.equal([NARROWED, ours('arm64')]);
        expect(await patchesOf(world, ns, 'app')).to.equal(gated ? 1 : 0);
      });
    }
  });

  it('gives the template of a DaemonSet its set at creation where its images are known, and gates no pod', async () => {
    const ns = await namespace();
    const since = await now(world, ns);
    await world.create(daemonSet(ns, 'app', { images: [warm] }));
    await placed(ns, 1);
    const created = await world.get('DaemonSet', ns, 'app');
    expect(tolerations(at(created, 'spec', 'template'))).to.deep.equal(ours('arm64'));
    expect(at(created, 'metadata', 'generation')).to.equal(1);
    expect([...(await versions(world, ns, since)).values()].flat().flatMap(gates)).to.deep.equal([]);
  });
});
