import { join } from 'node:path';
import { binaries, type Component, type ComponentOptions, startComponent } from './spawn.ts';

/** The annotation of the nodes that kwok simulates if there is a real node, too. */
export const playedByKwok = { 'kwok.x-k8s.io/node': 'fake' } as const;

/** The stages of kwok for nodes and pods, as `build.sh` combines them. */
export const stagesFile = (): string => join(binaries(), 'kwok-stages.yaml');

/** Starts kwok in the role of the kubelets: it renews the nodes' leases and turns bound pods into Running ones. */
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
      // A range outside the addresses of real pods.
      '--cidr=10.99.0.1/16',
      `--config=${stages}`,
    ],
  });
}
