import { isObject, type JsonObject, objectAt, stringAt } from '../../kit/json.ts';
import type { ApiClient } from '../../kube/client.ts';
import { ApiError } from '../../kube/errors.ts';
import { readAll } from '../../kube/list.ts';
import { find } from '../../kube/read.ts';
import { APP_LABEL, DEFAULT_NAMESPACE, DEPLOYMENT } from '../../names.ts';
import { type ConfigMapMount, type DeployedController, readDeployed } from './deployment.ts';

/** The controller that runs in the cluster, with the files that it reads from ConfigMaps. */
export type Deployed = {
  readonly controller: DeployedController;
  /** The texts of the files, by their paths in the container. */
  readonly files: ReadonlyMap<string, string>;
  /** The ConfigMap of each file, as `namespace/name`. */
  readonly sources: ReadonlyMap<string, string>;
};

/** The result of the search. `unreadable`: what these credentials may not read, in one line. */
export type FoundDeployed =
  | { readonly kind: 'found'; readonly deployed: Deployed }
  | { readonly kind: 'none' }
  | { readonly kind: 'several'; readonly names: readonly string[] }
  | { readonly kind: 'unreadable'; readonly why: string };

/**
 * Finds the Deployment of archaware by its label and reads the ConfigMaps that it mounts. `namespace` chooses if there are several:
 * a command's `--namespace` may also name the namespace of an application.
 */
export async function findDeployed(
  client: ApiClient,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<FoundDeployed> {
  try {
    const controllers = await listDeployments(client, namespace, signal);
    const chosen = controllers.filter((each) => each.namespace === namespace);
    const [controller, ...others] = chosen.length > 0 ? chosen : controllers;
    if (controller === undefined) return { kind: 'none' };
    if (others.length > 0)
      return { kind: 'several', names: controllers.map((each) => `${each.namespace}/${each.name}`) };
    return { kind: 'found', deployed: await readFiles(client, controller, signal) };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403) throw error;
    return { kind: 'unreadable', why: error.message };
  }
}

/** Lists the Deployments. Without the right to look in every namespace, the usual one is searched, and the given one. */
async function listDeployments(
  client: ApiClient,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<DeployedController[]> {
  const label = `labelSelector=${encodeURIComponent(`${APP_LABEL}=${DEPLOYMENT}`)}`;
  const list = async (where: string) =>
    (await readAll(client, `/apis/apps/v1${where}/deployments?${label}`, readDeployed, signal)).flatMap(
      (found) => found ?? [],
    );
  const inside = (name: string) => `/namespaces/${encodeURIComponent(name)}`;
  try {
    return await list('');
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403) throw error;
  }
  const own = namespace === undefined ? [] : await list(inside(namespace)).catch(noneIfForbidden);
  return own.length > 0 ? own : list(inside(DEFAULT_NAMESPACE));
}

function noneIfForbidden(error: unknown): [] {
  if (error instanceof ApiError && error.status === 403) return [];
  throw error;
}

async function readFiles(client: ApiClient, controller: DeployedController, signal: AbortSignal): Promise<Deployed> {
  const files = new Map<string, string>();
  const sources = new Map<string, string>();
  for (const mount of controller.mounts) {
    const path = `/api/v1/namespaces/${controller.namespace}/configmaps/${encodeURIComponent(mount.configMap)}`;
    const object = await find(client, path, signal);
    for (const [file, text] of filesOf(mount, objectAt(object ?? {}, 'data'))) {
      files.set(file, text);
      sources.set(file, `${controller.namespace}/${mount.configMap}`);
    }
  }
  return { controller, files, sources };
}

/** Returns the files that a ConfigMap becomes where it is mounted, with their paths. */
function filesOf({ path, items, subPath }: ConfigMapMount, data: JsonObject): [path: string, text: string][] {
  if (!isObject(data)) return [];
  const named = Object.keys(data).flatMap((key): [string, string][] => {
    const name = items === undefined ? key : items.get(key);
    return name === undefined ? [] : [[name, stringAt(data, key) ?? '']];
  });
  if (subPath === undefined) return named.map(([name, text]) => [`${path}/${name}`, text]);
  return named.flatMap(([name, text]) => (name === subPath ? [[path, text]] : []));
}
