import { expect } from 'chai';
import { findControllers, RefusedError } from '../../src/clean/controllers.ts';
import { findCluster } from '../../src/kube/access.ts';
import { createClient } from '../../src/kube/api-client.ts';
import { type EmbeddedCluster, startEmbeddedCluster } from '../simulator/embedded-cluster.ts';

const LABELS = { 'app.kubernetes.io/name': 'archaware-controller' };
const SIGNAL = new AbortController().signal;

const lease = (namespace: string, name: string, labels: object = {}) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { namespace, name, labels },
  spec: { holderIdentity: 'somebody', leaseDurationSeconds: 15 },
});
const binding = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  metadata: { name: 'tools', labels: LABELS },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'x' },
  subjects: [{ kind: 'ServiceAccount', namespace: 'tools', name: 'arch' }],
};

describe('the Leases that hold clean back', () => {
  let cluster: EmbeddedCluster;
  let client: ReturnType<typeof createClient>;
  before(async () => {
    cluster = await startEmbeddedCluster();
    const access = findCluster({ kubeconfig: cluster.kubeconfig, context: undefined });
    client = createClient({ access, userAgent: 'test', now: () => 0, addresses: new Set(), connections: 2 });
    const namespaces = ['archaware', 'tools', 'tenant', 'other'].map((name) => ({
      ...{ apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
    }));
    const leases = [
      lease('archaware', 'lease'),
      lease('tools', 'lease'),
      lease('tools', 'another', LABELS),
      lease('tools', 'foreign'),
      lease('tenant', 'lease', LABELS),
      lease('other', 'lease', LABELS),
      lease('other', 'another', LABELS),
    ];
    for (const object of [...namespaces, ...leases, binding]) await cluster.apply(JSON.stringify(object));
  });
  after(async () => {
    await client.close();
    await cluster.stop();
  });

  const find = async (namespace: string, stated: boolean, installation?: string) => {
    const found = await findControllers({
      ...{ client, installation, signal: SIGNAL },
      lease: { namespace, name: 'lease', stated },
    });
    return {
      leases: found.leases.map((each) => `${each.namespace}/${each.name}`).sort(),
      namespaces: found.namespaces,
      strangers: [...found.strangers].sort(),
    };
  };

  const rows: [
    what: string,
    stated: [namespace: string, stated: boolean],
    named: string | undefined,
    leases: string[],
  ][] = [
    [
      'are those in the namespace of the installation, not one in the default namespace, which may be a tenant of that name',
      ['archaware', false],
      undefined,
      ['tools/another', 'tools/lease'],
    ],
    [
      'are the one of the configuration as well',
      ['other', true],
      undefined,
      ['other/lease', 'tools/another', 'tools/lease'],
    ],
    [
      'are those of the namespace of --installation as well',
      ['archaware', false],
      'other',
      ['other/another', 'other/lease', 'tools/another', 'tools/lease'],
    ],
  ];
  for (const [what, [namespace, stated], named, leases] of rows) {
    it(what, async () => {
      const found = await find(namespace, stated, named);
      expect(found.leases).to.deep.equal(leases);
      expect(found.namespaces.toSorted()).to.deep.equal([...new Set(leases.map((each) => each.split('/')[0]))].sort());
      expect(found.strangers).to.include('Lease tenant/lease');
      for (const each of leases) expect(found.strangers).not.to.include(`Lease ${each}`);
    });
  }

  it("begin with archaware's own namespace, in which alone its account may look for the Secret of the webhook", async () => {
    const more = { ...binding, metadata: { name: 'more', labels: LABELS } };
    const subjects = ['archaware', 'other'].map((namespace) => ({ kind: 'ServiceAccount', namespace, name: 'arch' }));
    await cluster.apply(JSON.stringify({ ...more, subjects }));
    expect((await find('tools', false)).namespaces).to.deep.equal(['tools', 'archaware', 'other']);
    expect((await find('tools', false, 'other')).namespaces).to.deep.equal(['tools', 'archaware', 'other']);
    expect((await find('tools', true)).namespaces).to.deep.equal(['tools', 'archaware', 'other']);
    await cluster.request('DELETE', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/more');
  });

  it('are that of the default namespace where there is no installation', async () => {
    await cluster.request('DELETE', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/tools');
    expect((await find('archaware', false)).leases).to.deep.equal(['archaware/lease']);
    await cluster.apply(JSON.stringify(binding));
  });

  it('are not looked for without the right to find the installation, except with --installation', async () => {
    const heal = cluster.faults.inject({ path: /clusterrolebindings/, status: 403 });
    const refused = await find('archaware', false).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(RefusedError);
    expect(String(refused)).to.match(/clusterrolebindings: 403 .*--installation/);
    expect((await find('archaware', false, 'tools')).leases).to.deep.equal(['tools/another', 'tools/lease']);
    heal();
  });
});
