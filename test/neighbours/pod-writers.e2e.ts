import { expect } from 'chai';
import { expectSuccess } from '../../hack/cluster/client.ts';
import { at, listAt } from '../../hack/cluster/json.ts';
import type { Component } from '../../hack/cluster/spawn.ts';
import {
  admit,
  affinity,
  freshImage,
  GATE,
  gates,
  inSilence,
  lookUps,
  ON_ARM,
  patchesOf,
} from '../e2e/support/placed.ts';
import { resizable } from '../e2e/support/resizable.ts';
import { worldForAll } from '../e2e/support/world.ts';
import { runBundle } from '../support/controller-process.ts';
import { nameOf, ours, scheduledOn, tolerations, uidOf } from '../support/objects.ts';
import { runWithWebhook } from '../support/webhook.ts';
import { deployment, pod } from '../support/workloads.ts';
import { startIstioInjector, startRollouts, startVpaUpdater } from './support/pod-writers.ts';

/** In the mode `both`, on the control plane. The last step removes archaware. */
describe('archaware beside other software that writes pods', function () {
  this.timeout(240_000);
  const world = worldForAll();
  const others: Component[] = [];
  let namespaces = 0;

  before(() => runWithWebhook(world, '--placement.mode', 'both', '--bootstrap.timeout', '5s'));
  after(() => Promise.all(others.map((component) => component.stop())));

  const namespace = (labels = {}) => world.namespace(`neighbours-${++namespaces}`, labels);
  const request = async (method: 'PATCH' | 'POST', path: string, body: unknown) =>
    expectSuccess(path, await world.cluster.request(method, path, body));

  describe("Istio's injector, with a native sidecar", () => {
    const PROXY = 'istio-proxy';
    let proxy: string;

    before(async () => {
      proxy = await freshImage(world, 'multi');
      others.push(await startIstioInjector(world.cluster, proxy));
    });

    for (const [what, like] of [
      ['on all architectures', 'multi'],
      ['on one architecture', 'arm64'],
    ] as const) {
      it(`has its proxy's image counted, for a pod ${what}`, async () => {
        const ns = await namespace({ 'istio-injection': 'enabled' });
        const image = await freshImage(world, like);
        await inSilence(world, async () => {
          const created = await admit(world, pod(ns, 'app', { images: [image] }));
          expect(gates(created)).to.deep.equal([GATE]);
          const sidecar = listAt(created, 'spec', 'initContainers').find((one) => at(one, 'name') === PROXY);
          expect([at(sidecar, 'image'), at(sidecar, 'restartPolicy')]).to.deep.equal([proxy, 'Always']);
        });
        const found = await world.eventuallyRuns(ns, 'app');
        expect(tolerations(found)).to.deep.equal(like === 'multi' ? ours('amd64', 'arm64') : ours('arm64'));
        if (like === 'arm64') expect([affinity(found), scheduledOn(found)]).to.deep.equal([ON_ARM, 'arm64-1']);
        expect(await patchesOf(world, ns, 'app')).to.equal(1);
        const known = await admit(world, pod(ns, 'known', { images: [image] }));
        expect([gates(known), tolerations(known)]).to.deep.equal([[], tolerations(found)]);
      });
    }
  });

  describe('the updater of the Vertical Pod Autoscaler', () => {
    it('resizes pods in place: they keep what archaware gave them, which writes nothing and asks no registry', async () => {
      others.push(await startVpaUpdater(world.cluster));
      const ns = await namespace();
      const image = await freshImage(world, 'arm64');
      const containers = [{ name: 'c', image, resources: { requests: { cpu: '100m', memory: '64Mi' } } }];
      await world.create(deployment(ns, 'app', { images: [], replicas: 2, spec: { containers } }));
      const before = await world.eventuallyAllRun(ns, 'app', 2);
      await Promise.all(before.map((one) => resizable(world, ns, nameOf(one))));
      const writes = () => Promise.all(before.map((one) => patchesOf(world, ns, nameOf(one))));
      const [written, asked] = [await writes(), await lookUps(world, image)];
      const path = `/apis/autoscaling.k8s.io/v1/namespaces/${ns}/verticalpodautoscalers`;
      await request('POST', path, {
        ...{
          apiVersion: 'autoscaling.k8s.io/v1',
          kind: 'VerticalPodAutoscaler',
          metadata: { name: 'app', namespace: ns },
        },
        spec: {
          targetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'app' },
          updatePolicy: { updateMode: 'InPlaceOrRecreate' },
        },
      });
      const amounts = { cpu: '250m', memory: '96Mi' };
      await request('PATCH', `${path}/app/status`, {
        status: {
          conditions: [
            { type: 'RecommendationProvided', status: 'True', lastTransitionTime: new Date().toISOString() },
          ],
          recommendation: {
            containerRecommendations: [
              {
                containerName: 'c',
                target: amounts,
                lowerBound: amounts,
                upperBound: amounts,
                uncappedTarget: amounts,
              },
            ],
          },
        },
      });
      const isResized = (found: unknown) =>
        at(listAt(found, 'spec', 'containers')[0], 'resources', 'requests', 'cpu') === amounts.cpu;
      const after = await world.eventuallyAllRun(ns, 'app', 2, isResized);
      expect(after.map(uidOf)).to.have.members(before.map(uidOf));
      for (const found of after) expect([affinity(found), tolerations(found)]).to.deep.equal([ON_ARM, ours('arm64')]);
      expect([await writes(), await lookUps(world, image)]).to.deep.equal([written, asked]);
    });
  });

  describe('Argo Rollouts', () => {
    let ns: string;
    const rollout = (image: string) => ({
      ...{ apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout', metadata: { name: 'app', namespace: ns } },
      spec: {
        replicas: 3,
        selector: { matchLabels: { app: 'app' } },
        strategy: { canary: { steps: [{ setWeight: 34 }, { pause: { duration: 1 } }] } },
        template: { metadata: { labels: { app: 'app' } }, spec: { containers: [{ name: 'c', image }] } },
      },
    });

    it('has the pods of its ReplicaSets placed, in a canary as well', async () => {
      others.push(await startRollouts(world.cluster));
      ns = await namespace();
      await world.cluster.apply(JSON.stringify(rollout(await freshImage(world, 'multi'))));
      for (const found of await world.eventuallyAllRun(ns, 'app', 3))
        expect(tolerations(found)).to.deep.equal(ours('amd64', 'arm64'));
      const image = await freshImage(world, 'arm64');
      await world.cluster.apply(JSON.stringify(rollout(image)));
      const isNew = (found: unknown) => at(listAt(found, 'spec', 'containers')[0], 'image') === image;
      for (const found of await world.eventuallyAllRun(ns, 'app', 3, isNew)) {
        expect([affinity(found), tolerations(found), scheduledOn(found)]).to.deep.equal([
          ON_ARM,
          ours('arm64'),
          'arm64-1',
        ]);
      }
      expect(await lookUps(world, image)).to.equal(1);
    });

    it('is named by report, and plan has nothing to change', async () => {
      // As an administrator: the account of the controller may not list ReplicaSets, which name the Rollout.
      const flags = ['-n', ns, '--kubeconfig', world.cluster.kubeconfig, '--registries.insecure', world.registry.host];
      const report = await runBundle(['report', ...flags, '-o', 'json']);
      expect(report.code, report.stderr).to.equal(0);
      const named = listAt(JSON.parse(report.stdout), 'workloads').map(
        (one) => `${at(one, 'kind')} ${at(one, 'name')}`,
      );
      expect(named).to.deep.equal(['Rollout app']);
      const plan = await runBundle(['plan', ...flags, '--placement.mode', 'both']);
      expect(plan.code, plan.stdout + plan.stderr).to.equal(0);
    });
  });
});
