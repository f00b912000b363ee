import { join } from 'node:path';
import { binaries, type Component, startComponent } from './spawn.ts';

/** What kwok does with nodes and pods, as `build.sh` puts it together. */
export const stagesFile = (): string => join(binaries(), 'kwok-stages.yaml');

/** kwok plays the kubelets: it renews the nodes' leases and turns bound pods into Running ones. */
export const startKwok = (
  kubeconfig: string,
  directory: string,
  signal?: AbortSignal,
  stages = stagesFile(),
): Promise<Component> =>
  startComponent({
    name: 'kwok',
    directory,
    args: [
      `--kubeconfig=${kubeconfig}`,
      '--manage-all-nodes=true',
      '--node-lease-duration-seconds=40',
      `--config=${stages}`,
    ],
    ...(signal ? { signal } : {}),
  });
