import { join } from 'node:path';
import { binaries, type Component, type ComponentOptions, startComponent } from './spawn.ts';

/** The annotation of the nodes that kwok plays where there is a real one, too. */
export const playedByKwok = { 'kwok.x-k8s.io/node': 'fake' } as const;

/** What kwok does with nodes and pods, as `build.sh` puts it together. */
export const stagesFile = (): string => join(binaries(), 'kwok-stages.yaml');

/** kwok plays the kubelets: it renews the nodes' leases and turns bound pods into Running ones. */
export function startKwok(
  kubeconfig: string,
  common: Omit<ComponentOptions, 'name' | 'args'>,
  whichNodes: 'all' | 'annotated',
  stages = stagesFile(),
): Promise<Component> {
  const annotation = Object.entries(playedByKwok).map(([name, value]) => `${name}=${value}`);
  const annotated = ['--manage-all-nodes=false', `--manage-nodes-with-annotation-selector=${annotation.join()}`];
  return startComponent({
    ...common,
    name: 'kwok',
    args: [
      `--kubeconfig=${kubeconfig}`,
      ...(whichNodes === 'all' ? ['--manage-all-nodes=true'] : annotated),
      '--node-lease-duration-seconds=40',
      // Not the addresses of real pods.
      '--cidr=10.99.0.1/16',
      `--config=${stages}`,
    ],
  });
}
