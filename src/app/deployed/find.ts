import { objectAt, stringAt } from '../../kit/json.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { isForbidden } from '../../kube/errors.ts';
import { deploymentsOf, strangers } from '../../kube/installation/deployments.ts';
import { findInstallations, type Installation } from '../../kube/installation/installations.ts';
import { find } from '../../kube/read.ts';
import { DEPLOYMENT } from '../../names.ts';
import { type ConfigMapMount, type DeployedController, readDeployed } from './deployment.ts';

/** The controller that runs in the cluster, with its configuration file. */
type Deployed = {
  readonly controller: DeployedController;
  /** The text of a file in the container, and its ConfigMap as `namespace/name`; undefined if no ConfigMap has it. */
  readFile(path: string): Promise<{ readonly text: string; readonly source: string } | undefined>;
};

/** The result of the search. */
export type FoundDeployed = {
  /** Deployments that carry archaware's label and belong to no installation, as `namespace/name`. */
  readonly strangers: readonly string[];
} & (
  | { readonly kind: 'found'; readonly deployed: Deployed }
  /** No ClusterRoleBinding names a service account, or no Deployment runs as one that it names. */
  | { readonly kind: 'none'; readonly installation: Installation | undefined }
  | { readonly kind: 'several'; readonly namespaces: readonly string[] }
  /** Several Deployments in one namespace run as the service account. */
  | { readonly kind: 'several-deployments'; readonly namespace: string; readonly names: readonly string[] }
  /** What these credentials may not read, in one line. */
  | { readonly kind: 'unreadable'; readonly why: string }
);

/**
 * Finds the Deployment of the installation; see {@link findInstallations}. `installation`: the value of `--installation`. Throws
 * what the client throws, except for a 403.
 */
export async function findDeployed(
  client: ApiClient,
  installation: string | undefined,
  signal: AbortSignal,
): Promise<FoundDeployed> {
  let others: string[] = [];
  try {
    const found = await findInstallations(client, installation, signal);
    if (found.kind === 'unreadable') return { kind: 'unreadable', why: found.error.message, strangers: others };
    const { installations } = found;
    others = await strangers(client, installations, signal);
    const [only, ...more] = installations;
    if (only === undefined) return { kind: 'none', installation: undefined, strangers: others };
    if (more.length > 0) {
      return { kind: 'several', namespaces: installations.map(({ namespace }) => namespace), strangers: others };
    }
    const all = await deploymentsOf(client, only, readDeployed, signal);
    const named = all.filter(({ name }) => name === DEPLOYMENT);
    const [controller, second] = named.length === 1 ? named : all;
    if (controller === undefined) return { kind: 'none', installation: only, strangers: others };
    if (second !== undefined) {
      const names = all.map(({ name }) => name);
      return { kind: 'several-deployments', namespace: only.namespace, names, strangers: others };
    }
    return { kind: 'found', deployed: deployedIn(client, controller, signal), strangers: others };
  } catch (error) {
    if (!isForbidden(error)) throw error;
    return { kind: 'unreadable', why: error.message, strangers: others };
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
