import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cluster } from '../../../hack/cluster/cluster.ts';
import { binaries, type Component, startComponent } from '../../../hack/cluster/spawn.ts';

/** `build-cert-manager.sh` puts it beside the binaries. */
const CRDS = 'cert-manager-crds.yaml';

/**
 * Starts cert-manager beside the cluster, with all rights, without its own webhook. Its log is `cert-manager.log` in the
 * cluster's directory.
 */
export async function startCertManager(cluster: Cluster): Promise<Component> {
  await cluster.apply(await readFile(join(binaries(), CRDS), 'utf8'));
  await cluster.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s']);
  return startComponent({
    name: 'cert-manager',
    directory: cluster.directory,
    args: [],
    env: { KUBECONFIG: cluster.kubeconfig },
  });
}
