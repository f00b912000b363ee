import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { createAuthority } from '../../../hack/cluster/certificates.ts';
import type { Cluster } from '../../../hack/cluster/cluster.ts';
import { at, listAt } from '../../../hack/cluster/json.ts';
import { freePorts } from '../../../hack/cluster/ports.ts';
import { binaries, type Component, startComponent } from '../../../hack/cluster/spawn.ts';
import { applyKinds } from './pod-writers.ts';

/** The API groups whose objects Kueue's webhooks are asked about here: Jobs, and Kueue's own kinds. */
const GROUPS = ['batch', 'kueue.x-k8s.io'];

/**
 * Without a Secret for its certificates, Kueue reads those of its metrics from this path, which is in its code. It is in an `/etc` that
 * only Kueue sees. The exit keeps the shell, whose child Kueue is.
 */
const WITH_CERTIFICATES =
  'mount -t tmpfs none /etc && mkdir -p /etc/kueue/metrics && cp -r "$0" /etc/kueue/metrics/certs && "$@"; exit';

/**
 * Starts Kueue (`build-kueue.sh`) beside the cluster, with all rights, for Jobs alone. Needs root. Its webhook configurations have the names of its
 * manifests, which decide the order in which the API server calls webhooks.
 */
export async function startKueue(cluster: Cluster): Promise<Component> {
  await applyKinds(cluster, 'kueue');
  const [port = 0] = await freePorts(1);
  const authority = createAuthority('kueue');
  const { certificate, key } = authority.issue('kueue', ['127.0.0.1']);
  const certDir = join(cluster.directory, 'kueue-certificates');
  // The suites of a run share a cluster.
  await mkdir(certDir, { recursive: true });
  await writeFile(join(certDir, 'tls.crt'), certificate);
  await writeFile(join(certDir, 'tls.key'), key);
  const file = join(cluster.directory, 'kueue.yaml');
  await writeFile(
    file,
    stringify({
      apiVersion: 'config.kueue.x-k8s.io/v1beta1',
      kind: 'Configuration',
      namespace: 'kueue-system',
      health: { healthProbeBindAddress: '0' },
      metrics: { bindAddress: '0' },
      webhook: { host: '127.0.0.1', port, certDir },
      leaderElection: { leaderElect: false },
      internalCertManagement: { enable: false },
      integrations: { frameworks: ['batch/job'] },
    }),
  );
  const component = await startComponent({
    name: 'kueue',
    directory: cluster.directory,
    enter: ['unshare', '--mount', 'sh', '-c', WITH_CERTIFICATES, certDir],
    args: [
      ...['--kubeconfig', cluster.kubeconfig, '--config', file],
      // Its aggregated API server and other clusters are not part of these tests.
      '--feature-gates=VisibilityOnDemand=false,MultiKueue=false',
    ],
  });
  await applyWebhooks(cluster, `https://127.0.0.1:${port}`, Buffer.from(authority.certificate).toString('base64'));
  return component;
}

async function applyWebhooks(cluster: Cluster, url: string, caBundle: string): Promise<void> {
  const text = await readFile(join(binaries(), 'kueue-crds.yaml'), 'utf8');
  for (const document of parseAllDocuments(text)) {
    const object: unknown = document.toJS();
    if (!String(at(object, 'kind')).endsWith('WebhookConfiguration')) continue;
    const webhooks = listAt(object, 'webhooks').flatMap((hook) => {
      const isWanted = listAt(hook, 'rules').some((rule) => GROUPS.includes(String(listAt(rule, 'apiGroups')[0])));
      const path = String(at(hook, 'clientConfig', 'service', 'path'));
      return isWanted ? [Object.assign({}, hook, { clientConfig: { url: `${url}${path}`, caBundle } })] : [];
    });
    const metadata = { name: `kueue-${String(at(object, 'metadata', 'name'))}` };
    await cluster.apply(stringify(Object.assign({}, object, { metadata, webhooks })));
  }
}
