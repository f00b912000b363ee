import type { Candidate, Circumstances } from '../../analysis/readiness/assess.ts';
import { createInventory, type Inventory } from '../../analysis/readiness/inventory.ts';
import type { Unread } from '../../analysis/readiness/report.ts';
import { countNotLookedUp, notLookedUpText } from '../../analysis/readiness/report-images.ts';
import type { Context } from '../../app/surroundings.ts';
import { toSettings } from '../../config/settings.ts';
import { type JsonObject, objectAt, stringAt } from '../../kit/json.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import type { ApiError } from '../../kube/errors.ts';
import { readAll } from '../../kube/read.ts';
import { type Node, readNode } from '../../placement/nodes/node.ts';
import type { PodImage } from '../../placement/objects/containers.ts';
import { type Namespace, readNamespace } from '../../placement/objects/namespace.ts';
import { readPullSecrets } from '../../placement/objects/pod.ts';
import type { LookupQuestion } from '../lookups/lookups.ts';
import { pathOf } from './kind-paths.ts';
import { namespaceOf, permitted, UNLABELLED } from './survey.ts';

/** What a report needs of a cluster. */
export type Gathered = {
  /** By name. */
  readonly namespaces: ReadonlyMap<string, Namespace>;
  /** The pull secrets of service accounts that have some, by `namespace/name`. */
  readonly accountSecrets: ReadonlyMap<string, readonly string[]>;
  readonly inventory: Inventory;
  readonly nodes: readonly Node[];
  readonly unread: readonly Unread[];
};

/** Owners come before what they own, so that pods of known owners are dropped as they arrive. */
const WORKLOADS = ['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'CronJob', 'Job', 'Pod'];

/**
 * Reads the workloads of one namespace, or of all, and the nodes. What these credentials may not list is left out, and named in
 * `unread`.
 *
 * @throws the API server's refusal if no workload may be listed at all
 */
export async function gather(
  client: ApiClient,
  namespace: string | undefined,
  onRead: (resource: string, count: number) => void,
  signal: AbortSignal,
): Promise<Gathered> {
  const inventory = createInventory();
  const unread: Unread[] = [];
  const refusals: ApiError[] = [];
  const where = namespace === undefined ? 'in the cluster' : `in namespace ${namespace}`;
  const missing = (resource: string) => (text: string, refusal: ApiError) => {
    refusals.push(refusal);
    unread.push({ resource, text });
  };

  async function list(path: string, right: string, without: string, take: (object: JsonObject) => void) {
    const resource = path.slice(path.lastIndexOf('/') + 1);
    let count = 0;
    const read = (object: JsonObject) => {
      take(object);
      count += 1;
      onRead(resource, count);
      return undefined;
    };
    await permitted(`list ${right}`, without, missing(resource), () => readAll(client, path, read, signal));
  }

  const nodes = new Map<string, Node>();
  await list('/api/v1/nodes', 'nodes', 'only what pods ask about the architecture pins them', (object) => {
    const read = readNode(object);
    nodes.set(read.name, read);
  });
  const namespaces = new Map<string, Namespace>();
  if (namespace === undefined)
    await list('/api/v1/namespaces', 'namespaces', UNLABELLED, (object) => {
      const read = readNamespace(object);
      namespaces.set(read.name, read);
    });
  else namespaces.set(namespace, await namespaceOf(client, namespace, missing('namespaces'), signal));
  const accountSecrets = new Map<string, readonly string[]>();
  const unasked = 'pull secrets that service accounts name are not used';
  const inside = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  await list(`/api/v1${inside}/serviceaccounts`, `serviceaccounts ${where}`, unasked, (object) => {
    const secrets = readPullSecrets(object);
    const metadata = objectAt(object, 'metadata');
    const name = `${stringAt(metadata, 'namespace') ?? ''}/${stringAt(metadata, 'name') ?? ''}`;
    if (secrets.length > 0) accountSecrets.set(name, secrets);
  });
  const before = refusals.length;
  for (const kind of WORKLOADS) {
    const path = pathOf(kind, namespace);
    const [, group] = /^\/apis\/([^/]+)/.exec(path) ?? [];
    const resource = `${path.slice(path.lastIndexOf('/') + 1)}${group === undefined ? '' : `.${group}`}`;
    await list(path, `${resource} ${where}`, `${kind}s are left out`, (object) => inventory.add({ ...object, kind }));
  }
  const refusal = refusals.at(-1);
  if (refusal !== undefined && refusals.length - before === WORKLOADS.length) throw refusal;
  return { inventory, nodes: [...nodes.values()], namespaces, accountSecrets, unread };
}

/** What a report on files has: their objects, and nothing of a cluster. */
export function gatherFiles(objects: readonly JsonObject[], namespace?: string): Gathered {
  const inventory = createInventory();
  for (const object of objects) inventory.add(inNamespace(object, namespace));
  const namespaces = objects.filter((object) => stringAt(object, 'kind') === 'Namespace').map(readNamespace);
  const byName = new Map(namespaces.map((each) => [each.name, each]));
  return { inventory, nodes: [], namespaces: byName, accountSecrets: new Map(), unread: [] };
}

/** As with kubectl, an object that names no namespace gets the one of `--namespace`. */
export function inNamespace(object: JsonObject, namespace: string | undefined): JsonObject {
  const metadata = objectAt(object, 'metadata');
  if (namespace === undefined || stringAt(metadata, 'namespace')) return object;
  return { ...object, metadata: { ...metadata, namespace } };
}

/** The namespace of an object in a file that names none. */
const DEFAULT = 'default';

/** Returns the circumstances of workloads. `on`: the architectures that there are; `namespaces`: by name, those that were read. */
export function circumstancesOf(
  config: Context['config'],
  { namesOf }: Pick<Circumstances, 'namesOf'>,
  on: readonly string[] = [],
  namespaces: Gathered['namespaces'] = new Map(),
): Circumstances {
  const namespaceOf = (name: string) =>
    namespaces.get(name || DEFAULT) ?? { name: name || DEFAULT, labels: {}, preferred: undefined };
  return { settings: toSettings(config), architectures: on, namespaceOf, namesOf };
}

/** Returns the question about an image of a workload, with what its pods may use to pull it. */
export function questionOf(
  image: PodImage,
  { namespace, template, pod }: Candidate,
  { accountSecrets }: Pick<Gathered, 'accountSecrets'>,
): LookupQuestion {
  const of = namespace || DEFAULT;
  const { pullSecrets: own, serviceAccountName } = template;
  // Admission adds the secrets of its service account to a pod that names none. A pod of the cluster has them already.
  const isAdmitted = pod !== undefined && pod.uid !== '';
  const secrets = own.length > 0 || isAdmitted ? own : (accountSecrets.get(`${of}/${serviceAccountName}`) ?? []);
  return { image, namespace: of, pullSecrets: secrets };
}

/** The same without a cluster: no Secret is read, so private images need `credentials.dockerConfigFiles`. */
export function withoutSecrets(image: PodImage): LookupQuestion {
  return { image, namespace: DEFAULT, pullSecrets: [] };
}

/** Returns the line about images whose lookups failed, those that have a code; nothing if there are none. */
export function notLookedUp(
  images: readonly { readonly image?: string; readonly code?: string }[],
  registryOf: (image: string) => string,
): string[] {
  const failed = images.flatMap(({ image = '', code }) =>
    code === undefined ? [] : [{ image, code, registry: registryOf(image) }],
  );
  return [notLookedUpText(countNotLookedUp(failed)) ?? []].flat();
}
