import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { ours, runs, tolerations } from '../support/objects.ts';
import { arrangeWebhook, eventuallyTrusted } from '../support/webhook.ts';
import { patching, startWebhookServer, type WebhookServer } from '../support/webhook-server.ts';
import { daemonSet, pod } from '../support/workloads.ts';
import {
  admit,
  affinity,
  freshImage,
  GATE,
  gates,
  inSilence,
  now,
  onArch,
  patchesOf,
  required,
  versions,
} from './support/placed.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

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
