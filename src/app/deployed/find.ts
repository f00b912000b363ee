import { objectAt, stringAt } from '../../kit/json.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { isForbidden } from '../../kube/errors.ts';
import { getDeployment, type Installation } from '../../kube/installation/deployment.ts';
import { find } from '../../kube/read.ts';
import { type ConfigMapMount, type DeployedController, readDeployed } from './deployment.ts';

/** The controller that runs in the cluster, with its configuration file. */
type Deployed = {
  readonly controller: DeployedController;
  /** The text of a file in the container, and its ConfigMap as `namespace/name`; undefined if no ConfigMap has it. */
  readFile(path: string): Promise<{ readonly text: string; readonly source: string } | undefined>;
};

/** The result of the search. `unreadable`: what these credentials may not read, in one line. */
type FoundDeployed =
  | { readonly kind: 'found'; readonly deployed: Deployed }
  | { readonly kind: 'none' }
  | { readonly kind: 'unreadable'; readonly why: string };

/** Reads the Deployment of the installation. Throws what the client throws, except for a 403. */
export async function findDeployed(
  client: ApiClient,
  installation: Installation,
  signal: AbortSignal,
): Promise<FoundDeployed> {
  try {
    const object = await getDeployment(client, installation, signal);
    const controller = object && readDeployed(object);
    return controller ? { kind: 'found', deployed: deployedIn(client, controller, signal) } : { kind: 'none' };
  } catch (error) {
    if (!isForbidden(error)) throw error;
    return { kind: 'unreadable', why: error.message };
  }
}

function deployedIn(client: ApiClient, controller: DeployedController, signal: AbortSignal): Deployed {
  return {
    controller,
    async readFile(path) {
      for (const mount of controller.mounts) {
        const key = keyAt(mount, path);
        if (key === undefined) continue;
        const { namespace } = controller;
        const configMaps = `/api/v1/namespaces/${encodeURIComponent(namespace)}/configmaps`;
        const object = await find(client, `${configMaps}/${encodeURIComponent(mount.configMap)}`, signal);
        const text = stringAt(objectAt(object ?? {}, 'data'), key);
        if (text !== undefined) return { text, source: `${namespace}/${mount.configMap}` };
      }
      return undefined;
    },
  };
}

/** Returns the key of a ConfigMap that is mounted at a path; undefined if the path is not in the mount. */
function keyAt({ path: directory, items, subPath }: ConfigMapMount, path: string): string | undefined {
  const isInside = path.startsWith(`${directory}/`);
  const name = subPath === undefined ? (isInside ? path.slice(directory.length + 1) : undefined) : subPath;
  if (name === undefined || (subPath !== undefined && path !== directory)) return undefined;
  if (items === undefined) return name;
  return [...items].find(([, file]) => file === name)?.[0];
}
