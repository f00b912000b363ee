import { expect } from 'chai';
import { expectSuccess } from '../../hack/cluster/client.ts';
import { at, listAt } from '../../hack/cluster/json.ts';
import type { Component } from '../../hack/cluster/spawn.ts';
import { freshImage, inSilence } from '../e2e/support/placed.ts';
import { worldForAll } from '../e2e/support/world.ts';
import { ours, scheduledOn, tolerations } from '../support/objects.ts';
import { runWithWebhook } from '../support/webhook.ts';
import { job, pod } from '../support/workloads.ts';
import { startKueue } from './support/kueue.ts';

const API = 'kueue.x-k8s.io/v1beta1';

/** A flavor of the nodes of an architecture. `taint`: whether it declares the taint that archaware gives to them. */
function flavor(architecture: string, taint: boolean) {
  const nodeTaints = [{ key: 'supported-arch', value: architecture, effect: 'NoSchedule' }];
  const spec = taint ? { nodeTaints } : {};
  return {
    apiVersion: API,
    kind: 'ResourceFlavor',
    metadata: { name: taint ? `tainted-${architecture}` : architecture },
    spec: { nodeLabels: { 'kubernetes.io/arch': architecture }, ...spec },
  };
}

/** A queue whose first flavor, which Kueue tries first, is amd64. */
function queue(name: string, flavors: readonly string[]) {
  const resources = [
    { name: 'cpu', nominalQuota: '10' },
    { name: 'memory', nominalQuota: '10Gi' },
  ];
  return {
    apiVersion: API,
    kind: 'ClusterQueue',
    metadata: { name },
    spec: {
      namespaceSelector: {},
      resourceGroups: [
        { coveredResources: ['cpu', 'memory'], flavors: flavors.map((each) => ({ name: each, resources })) },
      ],
    },
  };
}

for (const mode of ['affinity', 'both', 'taints'] as const) {
  describe(`archaware beside Kueue with a flavor for each architecture, in the mode ${mode}`, function () {
    this.timeout(240_000);
    const world = worldForAll();
    let kueue: Component | undefined;
    let namespaces = 0;
    const hasTaints = mode === 'taints';
    const cluster = hasTaints ? 'tainted' : 'plain';

    before(async () => {
      await runWithWebhook(world, '--placement.mode', mode, '--bootstrap.timeout', '5s');
      kueue = await startKueue(world.cluster);
      const flavors = ['amd64', 'arm64'].map((architecture) => flavor(architecture, hasTaints));
      const objects = [
        ...flavors,
        queue(
          cluster,
          flavors.map(({ metadata }) => String(at(metadata, 'name'))),
        ),
      ];
      for (const object of objects) {
        await world.eventually(`Kueue to take ${object.kind}`, async () => {
          const path = `/apis/${API}/${object.kind.toLowerCase()}s`;
          const { status } = await world.cluster.request('POST', path, object);
          return status === 201 || status === 409;
        });
      }
    });
    after(() => kueue?.stop());

    /** Creates a namespace with a queue in it. */
    const namespace = async () => {
      const ns = await world.namespace(`kueue-${mode}-${++namespaces}`);
      const local = { apiVersion: API, kind: 'LocalQueue', metadata: { name: 'main', namespace: ns } };
      const path = `/apis/${API}/namespaces/${ns}/localqueues`;
      const body = { ...local, spec: { clusterQueue: cluster } };
      expectSuccess(path, await world.cluster.request('POST', path, body));
      return ns;
    };
    /** A Job as its author writes it: Kueue's webhook suspends it. */
    const queued = (ns: string, image: string) => {
      const containers = [{ name: 'c', image, resources: { requests: { cpu: '100m', memory: '16Mi' } } }];
      const created = job(ns, 'app', { images: [], spec: { containers } });
      return { ...created, metadata: { ...created.metadata, labels: { 'kueue.x-k8s.io/queue-name': 'main' } } };
    };
    const known = async (ns: string, like: 'amd64' | 'arm64' | 'multi') => {
      const image = await freshImage(world, like);
      await world.create(pod(ns, 'first', { images: [image] }));
      await world.eventuallyRuns(ns, 'first');
      return image;
    };
    /** Returns the flavor of the Workload that Kueue made of the Job. */
    const admittedTo = (ns: string) =>
      world.eventually('the Workload to be admitted', async () => {
        const [workload] = listAt(await world.get(`/apis/${API}/namespaces/${ns}/workloads`), 'items');
        const [assigned] = listAt(workload, 'status', 'admission', 'podSetAssignments');
        const found = at(assigned, 'flavors', 'cpu');
        return typeof found === 'string' ? found : undefined;
      });

    for (const architecture of ['arm64', 'amd64'] as const) {
      it(`a Job whose image is for ${architecture} alone is admitted to that flavor, and runs`, async () => {
        const ns = await namespace();
        await world.create(queued(ns, await known(ns, architecture)));
        expect(await admittedTo(ns)).to.equal(`${hasTaints ? 'tainted-' : ''}${architecture}`);
        const [found] = await world.eventuallyAllRun(ns, 'app', 1);
        expect(scheduledOn(found)).to.equal(`${architecture}-1`);
        if (mode !== 'affinity') expect(tolerations(found)).to.include.members(ours(architecture));
      });
    }

    it(`a Job whose image is not known when it is created gets ${hasTaints ? 'no' : 'the first'} flavor`, async () => {
      const ns = await namespace();
      const image = await freshImage(world, 'arm64');
      await inSilence(world, async () => {
        await world.create(queued(ns, image));
        if (!hasTaints) expect(await admittedTo(ns)).to.equal('amd64');
        else {
          await world.eventually('Kueue to find no flavor whose taint is tolerated', async () => {
            const [workload] = listAt(await world.get(`/apis/${API}/namespaces/${ns}/workloads`), 'items');
            return /untolerated taint/.test(JSON.stringify(at(workload, 'status', 'conditions') ?? ''));
          });
        }
      });
    });

    it('a Job whose image is for both gets the first flavor, and its pods can use no other', async () => {
      const ns = await namespace();
      await world.create(queued(ns, await known(ns, 'multi')));
      expect(await admittedTo(ns)).to.match(/amd64$/);
      const [found] = await world.eventuallyAllRun(ns, 'app', 1);
      expect(scheduledOn(found)).to.equal('amd64-1');
    });
  });
}
