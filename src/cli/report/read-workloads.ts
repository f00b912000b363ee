import type { Candidate } from '../../analysis/readiness/candidate.ts';
import { createInventory, type Inventory } from '../../analysis/readiness/inventory.ts';
import type { Unread } from '../../analysis/readiness/report.ts';
import type { JsonObject } from '../../kit/json.ts';
import { objectAt, stringAt } from '../../kit/json.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { type ApiError, isForbidden } from '../../kube/errors.ts';
import { find, readAll } from '../../kube/read.ts';
import { type Node, readNode } from '../../placement/nodes/node.ts';
import { type Namespace, readNamespace } from '../../placement/objects/namespace.ts';
import { readPullSecrets } from '../../placement/objects/pod.ts';

/** What the decisions for workloads need of their surroundings. */
export type Neighbourhood = {
  /** By name. */
  readonly namespaces: ReadonlyMap<string, Namespace>;
  /** The pull secrets of service accounts that have some, by `namespace/name`. */
  readonly accountSecrets: ReadonlyMap<string, readonly string[]>;
};

/** What a report needs of a cluster. */
export type Gathered = Neighbourhood & {
  readonly inventory: Inventory;
  readonly nodes: readonly Node[];
  readonly unread: readonly Unread[];
};

/** Owners come before what they own, so that pods of known owners are dropped as they arrive. */
const WORKLOADS: readonly (readonly [path: string, resource: string, kind: string, group: string])[] = [
  ['/apis/apps/v1', 'deployments', 'Deployment', 'apps'],
  ['/apis/apps/v1', 'statefulsets', 'StatefulSet', 'apps'],
  ['/apis/apps/v1', 'daemonsets', 'DaemonSet', 'apps'],
  ['/apis/apps/v1', 'replicasets', 'ReplicaSet', 'apps'],
  ['/apis/batch/v1', 'cronjobs', 'CronJob', 'batch'],
  ['/apis/batch/v1', 'jobs', 'Job', 'batch'],
  ['/api/v1', 'pods', 'Pod', ''],
];

/**
 * Reads the workloads of one namespace, or of all, and the nodes. What these credentials may not list is left out, and named in
 * `unread`.
 *
 * @throws the API server's refusal if no workload may be listed at all
 */
export async function gather(
  client: ApiClient,
  namespace: string | undefined,
  on: {
    /** Called with each candidate that is kept, when everything that its decision needs is known. */
    readonly candidate: (candidate: Candidate, neighbourhood: Neighbourhood) => void;
    readonly read: (resource: string, count: number) => void;
  },
  signal: AbortSignal,
): Promise<Gathered> {
  const inventory = createInventory();
  const unread: Unread[] = [];
  const refusals: ApiError[] = [];
  const inside = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  const where = namespace === undefined ? 'in the cluster' : `in namespace ${namespace}`;

  async function list(
    path: string,
    resource: string,
    right: string,
    without: string,
    take: (object: JsonObject) => void,
  ) {
    let count = 0;
    const read = (object: JsonObject) => {
      take(object);
      count += 1;
      on.read(resource, count);
      return undefined;
    };
    await permitted(resource, `list ${right}`, without, () => readAll(client, path, read, signal));
  }

  async function permitted(resource: string, right: string, without: string, read: () => Promise<unknown>) {
    try {
      await read();
    } catch (error) {
      if (!isForbidden(error)) throw error;
      refusals.push(error);
      unread.push({ resource, text: `the right to ${right} is missing: ${without}` });
    }
  }

  const nodes = new Map<string, Node>();
  await list('/api/v1/nodes', 'nodes', 'nodes', 'only what pods ask about the architecture pins them', (object) => {
    const read = readNode(object);
    nodes.set(read.name, read);
  });
  const namespaces = new Map<string, Namespace>();
  const unlabelled = 'the labels of namespaces are not known to policies';
  const known = (object: JsonObject) => {
    const read = readNamespace(object);
    namespaces.set(read.name, read);
  };
  if (namespace === undefined) await list('/api/v1/namespaces', 'namespaces', 'namespaces', unlabelled, known);
  else
    await permitted('namespaces', `get namespace ${namespace}`, unlabelled, async () => {
      const object = await find(client, `/api/v1/namespaces/${encodeURIComponent(namespace)}`, signal);
      if (object !== undefined) known(object);
    });
  const accountSecrets = new Map<string, readonly string[]>();
  const unasked = 'pull secrets that service accounts name are not used';
  await list(`/api/v1${inside}/serviceaccounts`, 'serviceaccounts', `serviceaccounts ${where}`, unasked, (object) => {
    const secrets = readPullSecrets(object);
    const metadata = objectAt(object, 'metadata');
    const name = `${stringAt(metadata, 'namespace') ?? ''}/${stringAt(metadata, 'name') ?? ''}`;
    if (secrets.length > 0) accountSecrets.set(name, secrets);
  });
  const before = refusals.length;
  for (const [path, resource, kind, group] of WORKLOADS) {
    const right = `${group === '' ? resource : `${resource}.${group}`} ${where}`;
    const without = `${kind}s are left out`;
    await list(`${path}${inside}/${resource}`, resource, right, without, (object) =>
      inventory.add({ ...object, kind }),
    );
  }
  const refusal = refusals.at(-1);
  if (refusal !== undefined && refusals.length - before === WORKLOADS.length) throw refusal;
  return { inventory, nodes: [...nodes.values()], namespaces, accountSecrets, unread };
}

/** What a report on files has: their objects, and nothing of a cluster. */
export function gatherFiles(objects: readonly JsonObject[], namespace: string | undefined): Gathered {
  const inventory = createInventory();
  for (const object of objects) inventory.add(inNamespace(object, namespace));
  return { inventory, nodes: [], namespaces: new Map(), accountSecrets: new Map(), unread: [] };
}

/** As with kubectl, an object that names no namespace gets the one of `--namespace`. */
function inNamespace(object: JsonObject, namespace: string | undefined): JsonObject {
  const metadata = objectAt(object, 'metadata');
  if (namespace === undefined || stringAt(metadata, 'namespace')) return object;
  return { ...object, metadata: { ...metadata, namespace } };
}
