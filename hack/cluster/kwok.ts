import { join } from 'node:path';
import { binaries, type Component, startComponent } from './spawn.ts';

/** kwok plays the kubelets: it renews the nodes' leases and turns bound pods into Running ones. */
export const startKwok = (kubeconfig: string, directory: string, signal?: AbortSignal): Promise<Component> =>
  startComponent({
    name: 'kwok',
    directory,
    args: [
      `--kubeconfig=${kubeconfig}`,
      '--manage-all-nodes=true',
      '--node-lease-duration-seconds=40',
      `--config=${join(binaries(), 'kwok-stages.yaml')}`,
    ],
    ...(signal ? { signal } : {}),
  });
