import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import type { Component } from '../../hack/cluster/spawn.ts';
import { admit, freshImage, gates, lookUps, patchesOf } from '../e2e/support/placed.ts';
import { worldForAll } from '../e2e/support/world.ts';
import { nameOf, ours, scheduledOn, tolerations } from '../support/objects.ts';
import { runWithWebhook } from '../support/webhook.ts';
import { deployment, pod } from '../support/workloads.ts';
import { startPolicyController } from './support/image-policies.ts';
import { signKeyless, type Trust } from './support/keyless.ts';
import { needsImagePolicies } from './support/released.ts';

/** Admits every image, after its digest has been written into the pod. */
const ANY = `
apiVersion: policy.sigstore.dev/v1beta1
kind: ClusterImagePolicy
metadata:
  name: any
spec:
  images: [{glob: "**"}]
  authorities: [{static: {action: pass}}]
`;
const DIGEST = /^[^@]+:fresh-\d+@sha256:[0-9a-f]{64}$/;

/** Its webhook is called after archaware's, so archaware reviews a tag and the stored pod has a digest. */
describe('archaware beside a webhook that writes digests into the pods of users', function () {
  this.timeout(240_000);
  const world = worldForAll({}, needsImagePolicies);
  let trust: Trust;
  let program: Component;
  let namespaces = 0;

  before(async () => {
    await runWithWebhook(world, '--placement.mode', 'both', '--bootstrap.timeout', '5s');
    trust = await signKeyless([]);
    program = await startPolicyController(world.cluster, trust);
    await world.cluster.apply(ANY);
    const ns = await namespace();
    const image = world.image('amd64');
    await world.eventually('digests to be written', async () => {
      const path = `/api/v1/namespaces/${ns}/pods?dryRun=All`;
      const { body, status } = await world.cluster.request('POST', path, pod(ns, 'probe', { images: [image] }));
      return status === 201 && imageOf(body) !== image;
    });
  });
  after(async () => {
    await program?.stop();
    await trust?.stop();
  });

  const namespace = () => world.namespace(`digests-${++namespaces}`, { 'policy.sigstore.dev/include': 'true' });
  const imageOf = (one: unknown) => String(at(listAt(one, 'spec', 'containers')[0], 'image'));

  for (const [like, architectures] of [
    ['multi', ['amd64', 'arm64']],
    ['arm64', ['arm64']],
  ] as const) {
    it(`places a pod whose image is for ${architectures.join(' and ')}`, async () => {
      const ns = await namespace();
      const image = await freshImage(world, like);
      const created = await admit(world, pod(ns, 'app', { images: [image] }));
      expect(imageOf(created)).to.match(DIGEST);
      const found = await world.eventuallyRuns(ns, 'app');
      expect(tolerations(found)).to.deep.equal(ours(...architectures));
      if (like === 'arm64') expect(scheduledOn(found)).to.equal('arm64-1');
      expect(await patchesOf(world, ns, 'app')).to.be.at.most(1);
    });
  }

  it('places the pods of a Deployment, and writes its template no more than once', async () => {
    const ns = await namespace();
    const image = await freshImage(world, 'arm64');
    await world.create(deployment(ns, 'app', { images: [image], replicas: 2 }));
    const found = await world.eventuallyAllRun(ns, 'app', 2);
    for (const one of found) {
      expect(imageOf(one)).to.match(DIGEST);
      expect([scheduledOn(one), tolerations(one)]).to.deep.equal(['arm64-1', ours('arm64')]);
      expect(await patchesOf(world, ns, nameOf(one))).to.be.at.most(1);
    }
    const path = new RegExp(`/namespaces/${ns}/deployments/app(?:\\?|$)`);
    const writes = (await world.cluster.auditedRequests()).filter((one) => one.verb === 'patch' && path.test(one.path));
    expect(writes.length).to.be.at.most(1);
  });

  it('knows the image the next time: the pod needs no gate and no lookup', async () => {
    const ns = await namespace();
    const image = await freshImage(world, 'arm64');
    await admit(world, pod(ns, 'app', { images: [image] }));
    await world.eventuallyRuns(ns, 'app');
    const asked = await lookUps(world, image);
    const again = await admit(world, pod(ns, 'again', { images: [image] }));
    expect([gates(again), tolerations(again)]).to.deep.equal([[], ours('arm64')]);
    expect((await lookUps(world, image)) - asked, 'lookups, of which policy-controller makes one').to.equal(1);
  });
});
