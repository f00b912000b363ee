import { expect } from 'chai';
import { expectSuccess } from '../../hack/cluster/client.ts';
import { at, listAt } from '../../hack/cluster/json.ts';
import { daemonSet, deployment } from '../support/workloads.ts';
import { borrowCluster } from './support/shared-cluster.ts';
import { startWorld } from './support/world.ts';

describe('a control plane that two suites use, one after the other', () => {
  it('shows the second nothing of the first: objects, changed objects, requests, and no policy holds any longer', async () => {
    const world = await startWorld();
    const { server } = world.cluster;
    await world.run();
    await world.namespace('first');
    await world.create(
      deployment('first', 'web', { images: [world.image('multi')], replicas: 5 }),
      daemonSet('default', 'agent', { images: [world.image('multi')] }),
    );
    await world.eventuallyTainted();
    await world.eventually('the pods', async () => (await world.pods('first', 'web')).length === 5);
    await world.patch('Namespace', '', 'kube-public', { metadata: { labels: { changed: 'yes' } } });
    await world.stop();

    const { cluster, done } = await borrowCluster();
    try {
      expect(cluster.server).to.equal(server);
      const get = async (path: string) => expectSuccess(path, await cluster.request('GET', path));
      const names = async (path: string) =>
        listAt(await get(path), 'items').map((each) => String(at(each, 'metadata', 'name')));
      for (const path of ['/api/v1/nodes', '/api/v1/pods', '/apis/apps/v1/daemonsets', '/apis/apps/v1/replicasets']) {
        expect(await names(path), path).to.deep.equal([]);
      }
      const namespaces = ['default', 'kube-node-lease', 'kube-public', 'kube-system'];
      expect(await names('/api/v1/namespaces')).to.deep.equal(namespaces);
      expect(at(await get('/api/v1/namespaces/kube-public'), 'metadata', 'labels', 'changed')).to.equal(undefined);
      expect(await cluster.auditedRequests()).to.deep.equal([]);
      const policies = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
      expect(await names(policies)).to.deep.equal([]);
    } finally {
      await done();
    }
  });

  it('is not handed over once a suite has stopped a component', async () => {
    const first = await borrowCluster();
    await first.cluster.stopApiServer();
    await first.done();
    const second = await borrowCluster();
    expect(second.cluster.server).to.not.equal(first.cluster.server);
    await second.done();
  });
});
