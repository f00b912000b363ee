import { expect } from 'chai';
import { at } from '../../hack/cluster/json.ts';
import { annotation, nameOf, tolerations } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { runWithWebhook } from '../support/webhook.ts';
import { pod } from '../support/workloads.ts';
import { pathOf } from '../support/world.ts';
import {
  admit,
  affinity,
  eventuallyReleased,
  freshImage,
  GATE,
  gates,
  inSilence,
  isIn,
  MANAGED,
  onArch,
  required,
} from './support/placed.ts';
import { arrange, type Places } from './support/places.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const ZONE = isIn('example.com/zone', 'a');

describe('admission in mode affinity, on the real control plane', () => {
  let world: LiveWorld;
  let places: Places;
  let controller: RunningController;

  before(async () => {
    const labels = { 'example.com/zone': 'a' };
    const nodes = ['amd64', 'arm64'].map((architecture) => ({ name: `${architecture}-1`, architecture, labels }));
    world = await startWorld({ nodes });
    places = await arrange(world);
    await world.namespace('plain');
    const file = await places.file('config.yaml', {
      placement: { mode: 'affinity' },
      pods: { excludeNamespaces: ['left-*'] },
      policies: [{ name: 'reject', podSelector: 'torn=reject', noCommonArchitecture: 'reject' }],
    });
    controller = await runWithWebhook(world, '--config', file);
    for (const tag of ['arm64', 'amd64']) {
      await world.create(pod('plain', `warm-${tag}`, { images: [world.image(tag)] }));
      await world.eventuallyRuns('plain', `warm-${tag}`);
    }
  });
  after(() => world?.stop());

  it('narrows what a pod asks for, at its creation if its image is known, else as it is released', async () => {
    const spec = { affinity: { nodeAffinity: required([onArch('s390x'), ZONE], [ZONE]) } };
    const wanted = { nodeAffinity: required([onArch('s390x'), ZONE], [ZONE, onArch('arm64')]) };
    const atOnce = await admit(world, pod('plain', 'known', { images: [world.image('arm64')], spec }));
    expect(gates(atOnce)).to.deep.equal([]);
    const gated = await admit(world, pod('plain', 'unknown', { images: [await freshImage(world, 'arm64')], spec }));
    expect(gates(gated)).to.deep.equal([GATE]);
    const released = await eventuallyReleased(world, 'plain', 'unknown');
    for (const found of [atOnce, released]) {
      expect([affinity(found), tolerations(found)]).to.deep.equal([wanted, []]);
      await world.eventuallyRuns('plain', nameOf(found));
    }
  });

  it('leaves alone what names its node, what is labelled so, and excluded namespaces', async () => {
    const images = [await freshImage(world, 'arm64')];
    const ignored = { 'archaware.dev/ignore': 'true' };
    await world.namespace('ignored', ignored);
    await world.namespace('left-alone');
    const before = await controller.metric('archaware_admission_reviews_total');
    for (const object of [
      pod('plain', 'bound', { images, spec: { nodeName: 'amd64-1' } }),
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

  it('gates nothing in our own namespace, in system namespaces, and no control plane pod', () =>
    inSilence(world, async () => {
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
    }));

  it('has the API server refuse a pod whose images have nothing in common, with reject', async () => {
    const images = [world.image('amd64'), world.image('arm64')];
    const object = pod('plain', 'torn', { images, labels: { torn: 'reject' } });
    const { status, body } = await world.cluster.request('POST', pathOf('Pod', 'plain'), object);
    expect(status).to.equal(403);
    expect(String(at(body, 'message')))
      .to.include(`${images[0]} (linux/amd64)`)
      .and.include(`${images[1]} (linux/arm64)`);
  });
});
