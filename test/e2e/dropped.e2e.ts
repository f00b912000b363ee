import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { TESTIMG_REPOSITORY } from '../../testimg/fixtures.ts';
import type { JsonObject } from '../simulator/json.ts';
import { nameOf, runs, scheduledOn, uidOf } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { daemonSet, deployment } from '../support/workloads.ts';
import { type Kind, pathOf } from '../support/world.ts';
import { freshImage } from './support/placed.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const REASON = 'ArchitectureDropped';
const METRIC = 'archaware_dropped_architectures';
/** Pods of the new template stay Pending, so those of the old one go on running. */
const NOWHERE = { nodeSelector: { 'example.com/nowhere': '' } };
/** As many pods on each node. */
const SPREAD = (app: string) => ({
  topologySpreadConstraints: [
    {
      ...{ maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'DoNotSchedule' },
      labelSelector: { matchLabels: { app } },
    },
  ],
});

describe('an update that drops an architecture, on the real control plane', () => {
  let world: LiveWorld;
  let controller: RunningController;

  before(async () => {
    world = await startWorld();
    // With the rights of the manifest's service account, as `startWorld` arranges.
    controller = await world.run();
    await world.eventuallyTainted();
  });
  after(() => world?.stop());

  /** The Events of the object, asked for as `kubectl describe` does. */
  async function described(kind: Kind, namespace: string, name: string) {
    const fields = { name, namespace, kind, uid: uidOf(await world.get(kind, namespace, name)) };
    const selector = Object.entries(fields).map(([field, value]) => `involvedObject.${field}=${value}`);
    const path = `/api/v1/namespaces/${namespace}/events?fieldSelector=${encodeURIComponent(selector.join())}`;
    return (await world.list(path)).filter(({ reason }) => reason === REASON);
  }
  const told = (kind: Kind, namespace: string, name: string) =>
    world.eventually(`an Event on ${kind} ${name}`, async () => {
      const found = await described(kind, namespace, name);
      return found.length > 0 && found;
    });
  const eventuallyRuns = (namespace: string, app: string, count: number) =>
    world.eventually(`${count} pods of ${app} to run`, async () => {
      const found = (await world.pods(namespace, app)).filter(runs);
      return found.length === count && found;
    });
  /** Shows the digest of an image in the status of pods, as a kubelet does: kwok pulls nothing. */
  async function showPulled(namespace: string, image: string, pods: readonly JsonObject[]): Promise<void> {
    const [repository, tag] = [image.slice(0, image.lastIndexOf(':')), image.slice(image.lastIndexOf(':') + 1)];
    const url = `http://${world.registry.host}/v2/${TESTIMG_REPOSITORY}/manifests/${tag}`;
    const { headers } = await fetch(url, {
      method: 'HEAD',
      headers: { accept: 'application/vnd.oci.image.index.v1+json' },
    });
    const imageID = `${repository}@${headers.get('docker-content-digest')}`;
    for (const pod of pods) {
      const containerStatuses = listAt(pod, 'status', 'containerStatuses').map((each) =>
        Object.assign({}, each, { imageID }),
      );
      await world.patch(`${pathOf('Pod', namespace, nameOf(pod))}/status`, { status: { containerStatuses } });
    }
  }
  const counted = (count: number) =>
    world.eventually(`the metric to be ${count}`, async () => (await controller.metric(METRIC)) === count);
  /** How requests of the controller to read objects of a resource ended. */
  const reads = async (resource: string, namespace: string) =>
    (await world.cluster.auditedRequests())
      .filter(({ verb, path }) => verb === 'get' && path.includes(`/namespaces/${namespace}/${resource}/`))
      .map(({ status }) => status);
  const setImage = (kind: Kind, namespace: string, name: string, image: string, more: object = {}) =>
    world.patch(kind, namespace, name, {
      spec: { template: { spec: { containers: [{ name: 'main-0', image }], ...more } } },
    });

  it('a Deployment gets one Event with the images, both sets and the pods, until the rollout is over', async () => {
    const namespace = await world.namespace('dropped-deployment');
    const [old, now] = [await freshImage(world, 'multi'), await freshImage(world, 'amd64')];
    const workload = { strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } } };
    await world.create(deployment(namespace, 'web', { images: [old], replicas: 4, workload, spec: SPREAD('web') }));
    const pods = await eventuallyRuns(namespace, 'web', 4);
    expect(pods.filter((pod) => scheduledOn(pod) === 'arm64-1')).to.have.length(2);
    await setImage('Deployment', namespace, 'web', now, NOWHERE);
    const [event] = await told('Deployment', namespace, 'web');
    expect(event?.message).to.equal(
      `arm64 was dropped: ${now} of container main-0 runs on amd64, and what runs now, ${old}, runs on amd64, arm64; ` +
        '2 running pods are on nodes that the new template can no longer use; ' +
        'go back to the earlier image, or keep room on the nodes that are left',
    );
    expect(at(event, 'type')).to.equal('Warning');
    await counted(1);
    const statuses = await reads('replicasets', namespace);
    expect([...new Set(statuses)]).to.deep.equal([200]);
    await setImage('Deployment', namespace, 'web', now, { nodeSelector: null, topologySpreadConstraints: null });
    await counted(0);
    expect(await described('Deployment', namespace, 'web')).to.have.length(1);
    expect(await world.events(namespace, REASON)).to.have.length(1);
  });

  it('a DaemonSet gets one whose new template loses a node that it runs on', async () => {
    const namespace = await world.namespace('dropped-daemonset');
    const [old, now] = [await freshImage(world, 'multi'), await freshImage(world, 'amd64')];
    await world.create(
      daemonSet(namespace, 'agent', { images: [old], workload: { updateStrategy: { type: 'OnDelete' } } }),
    );
    await showPulled(namespace, old, await eventuallyRuns(namespace, 'agent', 2));
    await setImage('DaemonSet', namespace, 'agent', now);
    const [event] = await told('DaemonSet', namespace, 'agent');
    expect(event?.message)
      .to.match(/^arm64 was dropped: .* 1 running pod is on a node that the new template can no longer use/)
      .and.to.contain(now)
      .and.to.contain('runs on amd64, arm64');
    await counted(1);
    expect(await described('DaemonSet', namespace, 'agent')).to.have.length(1);
    await world.remove('DaemonSet', namespace, 'agent');
    await counted(0);
  });
});
