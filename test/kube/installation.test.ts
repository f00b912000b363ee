import { expect } from 'chai';
import type { JsonObject } from '../../src/kit/json.ts';
import { findCluster } from '../../src/kube/access.ts';
import { createClient } from '../../src/kube/api-client.ts';
import { deploymentsOf, readDeployment, strangers } from '../../src/kube/installation/deployments.ts';
import { findInstallations, type Installation } from '../../src/kube/installation/installations.ts';
import { startEmbeddedCluster } from '../simulator/embedded-cluster.ts';

const LABELS = { 'app.kubernetes.io/name': 'archaware-controller' };
const SIGNAL = new AbortController().signal;

const account = (namespace: string, name: string): JsonObject => ({ kind: 'ServiceAccount', namespace, name });
const binding = (name: string, labels: JsonObject, subjects?: readonly JsonObject[]): JsonObject => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  metadata: { name, labels },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'x' },
  ...(subjects === undefined ? {} : { subjects }),
});
const deployment = (namespace: string, name: string, labels: JsonObject, serviceAccountName?: string): JsonObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { namespace, name, labels },
  spec: {
    replicas: 0,
    selector: { matchLabels: { a: 'b' } },
    template: {
      metadata: { labels: { a: 'b' } },
      spec: { ...(serviceAccountName ? { serviceAccountName } : {}), containers: [{ name: 'c', image: 'x' }] },
    },
  },
});

/** Applies objects to an empty cluster and asks it. */
async function having<T>(
  objects: readonly JsonObject[],
  ask: (client: ReturnType<typeof createClient>) => Promise<T>,
): Promise<T> {
  const cluster = await startEmbeddedCluster();
  const access = findCluster({ kubeconfig: cluster.kubeconfig, context: undefined });
  const client = createClient({ access, userAgent: 'test', now: () => 0, addresses: new Set(), connections: 2 });
  try {
    for (const name of ['archaware', 'tools', 'tenant']) {
      await cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }));
    }
    for (const object of objects) await cluster.apply(JSON.stringify(object));
    return await ask(client);
  } finally {
    await client.close();
    await cluster.stop();
  }
}

const textOf = ({ namespace, accounts }: Installation) =>
  `${namespace}: ${accounts === undefined ? 'by label' : [...accounts].sort().join(' ')}`;

describe('the installations of a cluster', () => {
  const rows: [what: string, bindings: readonly JsonObject[], named: string | undefined, expected: string[]][] = [
    ['none without a binding', [], undefined, []],
    ['none of bindings without the label', [binding('a', {}, [account('archaware', 'a')])], undefined, []],
    [
      'none of users, groups and bindings without subjects',
      [
        binding('a', LABELS, [
          { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'jane', namespace: 'tenant' },
          { apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'all' },
        ]),
        binding('b', LABELS),
      ],
      undefined,
      [],
    ],
    [
      'one for a namespace, with all of its service accounts',
      [
        binding('a', LABELS, [account('archaware', 'archaware-controller')]),
        binding('b', LABELS, [account('archaware', 'clean')]),
      ],
      undefined,
      ['archaware: archaware-controller clean'],
    ],
    [
      'one for each namespace',
      [binding('a', LABELS, [account('tools', 'a'), account('archaware', 'b')])],
      undefined,
      ['archaware: b', 'tools: a'],
    ],
    [
      'the named one',
      [binding('a', LABELS, [account('tools', 'a'), account('archaware', 'b')])],
      'tools',
      ['tools: a'],
    ],
    ['the named one, by label where no binding names it', [], 'tools', ['tools: by label']],
  ];
  for (const [what, bindings, named, expected] of rows) {
    it(`are ${what}`, async () => {
      const found = await having(bindings, (client) => findInstallations(client, named, SIGNAL));
      expect(found.kind === 'found' ? found.installations.map(textOf) : found.kind).to.deep.equal(expected);
    });
  }

  const objects = [
    deployment('archaware', 'ours', {}, 'ours'),
    deployment('archaware', 'labelled', LABELS, 'theirs'),
    deployment('archaware', 'plain', {}),
    deployment('tenant', 'ours', LABELS, 'ours'),
  ];
  const deployments: [what: string, accounts: readonly string[] | undefined, own: string[], others: string[]][] = [
    ['run as its service accounts', ['ours'], ['ours'], ['archaware/labelled', 'tenant/ours']],
    ['run as the default one, if a binding names that', ['default'], ['plain'], ['archaware/labelled', 'tenant/ours']],
    ['have the label, where the user named the namespace', undefined, ['labelled'], ['tenant/ours']],
  ];
  for (const [what, accounts, own, others] of deployments) {
    it(`have the Deployments that ${what}, and no others`, async () => {
      const installation = { namespace: 'archaware', accounts: accounts && new Set(accounts) };
      await having(objects, async (client) => {
        const found = await deploymentsOf(client, installation, readDeployment, SIGNAL);
        expect(found.map(({ name }) => name)).to.deep.equal(own);
        expect((await strangers(client, [installation], SIGNAL)).toSorted()).to.deep.equal(others);
      });
    });
  }
});
