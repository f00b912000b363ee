/** Bad neighbours of the controller: one that reverts its writes, one that refuses them, and one that rolls DaemonSets all the time. */
import { setTimeout as delay } from 'node:timers/promises';
import { MANAGED_ANNOTATION } from '../../src/names.ts';
import { TAINT_KEY } from '../../test/faults/support/foreign.ts';
import type { EmbeddedCluster } from '../../test/simulator/embedded-cluster.ts';
import type { AdmissionPlugin } from '../../test/simulator/faults.ts';
import { assign, at, equal, type JsonObject, objects } from '../../test/simulator/json.ts';
import { ApiError } from '../../test/simulator/objects/status.ts';
import type { TestRegistry } from '../../test/simulator/registry/registry.ts';
import { daemonSet, type KubernetesObject, pod } from '../../test/support/workloads.ts';
import { pathOf } from '../../test/support/world.ts';

/** Seconds between two acts of each neighbour. */
export const EVERY = { revert: 10, create: 20, roll: 15 } as const;

/** The node that the neighbours' DaemonSets run on, so that they hold no taint of another node back. */
const NODE = 'neighbours';
const ON_NODE = { nodeSelector: { 'kubernetes.io/hostname': NODE } };
/** Writes are reverted; our tolerations are removed at admission; templates with them are refused; pods with them are refused. */
const [REVERTS, STRIPS, REFUSES, REFUSES_PODS, ROLLS] = [
  'reverts',
  'strips',
  'refuses',
  'refuses-pods',
  'rolls',
] as const;
const NAMESPACES = [REVERTS, STRIPS, REFUSES, REFUSES_PODS, ROLLS] as const;

/** The objects of each neighbour, by the names that they have in a tally. */
export const GROUPS: readonly RegExp[] = [
  new RegExp(`nodes/${NODE}$`),
  ...NAMESPACES.map((namespace) => new RegExp(`[ /]${namespace}/`)),
];

/** Counts of what the neighbours did. */
export type NeighboursDid = {
  reverted: number;
  refused: number;
  rolled: number;
  /** How often the author of an object changed it, by the object's path. */
  readonly changes: Map<string, number>;
};

/** Lets the neighbours act until the signal aborts, and removes what is theirs. Throws what went wrong. */
export async function neighbours(
  cluster: EmbeddedCluster,
  registry: TestRegistry,
  signal: AbortSignal,
): Promise<NeighboursDid> {
  const did: NeighboursDid = { reverted: 0, refused: 0, rolled: 0, changes: new Map() };
  const wait = (seconds: number) => delay(seconds * 1000, undefined, { signal }).catch(() => undefined);
  const image = (name: string) => {
    registry.put(`neighbours/${name}`, '1', ['amd64', 'arm64'], { note: name });
    return `${registry.host}/neighbours/${name}:1`;
  };

  async function send(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<number> {
    const { status } = await cluster.request(method, path, body);
    const isExpected = status < 300 || status === 404 || status === 409 || status === 403;
    if (!isExpected) throw new Error(`${method} ${path}: ${status}`);
    return status;
  }
  async function every(seconds: number, act: () => Promise<void>): Promise<void> {
    while (!signal.aborted) {
      await act();
      await wait(seconds);
    }
  }
  const read = async (path: string) => (await cluster.request('GET', path)).body;
  const agent = (namespace: string, more: object = {}): KubernetesObject =>
    daemonSet(namespace, 'agent', { images: [image(namespace)], spec: ON_NODE, ...more });

  /** Takes back what it did not write itself: a node's taint, a template's tolerations, a pod's record. */
  async function revert(): Promise<void> {
    const node = pathOf('Node', '', NODE);
    const taints = objects(at(await read(node), 'spec', 'taints'));
    const others = taints.filter(({ key }) => key !== TAINT_KEY);
    if (others.length < taints.length) {
      did.reverted += 1;
      await send('PATCH', node, { spec: { taints: others } });
    }
    const set = pathOf('DaemonSet', REVERTS, 'agent');
    const template = at(await read(set), 'spec', 'template');
    const wanted = at(agent(REVERTS), 'spec', 'template', 'spec', 'tolerations');
    if (!equal(at(template, 'spec', 'tolerations'), wanted)) {
      did.reverted += 1;
      await send('PATCH', set, [{ op: 'remove', path: '/spec/template/spec/tolerations' }]);
    }
    const web = pathOf('Pod', REVERTS, 'web');
    if (at(await read(web), 'metadata', 'annotations', MANAGED_ANNOTATION) !== undefined) {
      did.reverted += 1;
      await send('PATCH', web, { metadata: { annotations: { [MANAGED_ANNOTATION]: null } } });
    }
  }

  let made = 0;
  /** Creates a pod as a workload's controller would, again after each refusal. */
  async function create(): Promise<void> {
    const name = `web-${++made}`;
    const path = pathOf('Pod', REFUSES_PODS);
    await send('POST', path, pod(REFUSES_PODS, name, { images: [image('known')] }));
    await send('POST', path, pod(REFUSES_PODS, `new-${made}`, { images: [image(`new-${made}`)] }));
    await send('DELETE', `${path}/web-${made - 1}`);
    // It lives for two minutes: a refused release ends after one.
    await send('DELETE', `${path}/new-${made - 120 / EVERY.create}`);
  }

  /** A change of the template, a restart, and an undo to the author's first template, in turns. */
  async function roll(): Promise<void> {
    did.rolled += 1;
    const path = pathOf('DaemonSet', ROLLS, 'agent');
    did.changes.set(path, did.rolled);
    const first = at(agent(ROLLS), 'spec', 'template');
    const turn = did.rolled % 3;
    const now = String(did.rolled);
    const restarted = { metadata: { annotations: { 'kubectl.kubernetes.io/restartedAt': now } } };
    const changed = {
      spec: { containers: [{ name: 'main', image: image('rolls'), env: [{ name: 'TURN', value: now }] }] },
    };
    if (turn === 0) await send('PATCH', path, [{ op: 'replace', path: '/spec/template', value: first }]);
    else await send('PATCH', path, { spec: { template: turn === 1 ? restarted : changed } });
  }

  await cluster.createNode({ name: NODE, architecture: 'amd64' });
  const removals = plugins(() => did.refused++).map((plugin) => cluster.faults.admit(plugin));
  for (const name of NAMESPACES) {
    await cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }));
  }
  for (const namespace of [REVERTS, STRIPS, REFUSES, ROLLS]) {
    await send('POST', pathOf('DaemonSet', namespace), agent(namespace));
  }
  for (const namespace of [REVERTS, STRIPS]) {
    await send('POST', pathOf('Pod', namespace), pod(namespace, 'web', { images: [image(namespace)] }));
  }
  await Promise.all([every(EVERY.revert, revert), every(EVERY.create, create), every(EVERY.roll, roll)]);
  for (const remove of removals) remove();
  for (const name of NAMESPACES) await send('DELETE', pathOf('Namespace', '', name));
  await send('DELETE', pathOf('Node', '', NODE));
  return did;
}

/** The neighbours' admission plug-ins. */
function plugins(onRefused: () => void): AdmissionPlugin[] {
  const specPath = (resource: string) => {
    if (resource === 'daemonsets') return ['spec', 'template', 'spec'];
    return resource === 'pods' ? ['spec'] : undefined;
  };
  const tolerationsOf = (item: JsonObject, path: readonly string[]) => objects(at(item, ...path, 'tolerations'));
  const isOurs = ({ key }: JsonObject) => key === TAINT_KEY;
  return [
    (item, { resource, namespace }) => {
      const path = namespace === STRIPS ? specPath(resource) : undefined;
      if (path === undefined || !tolerationsOf(item, path).some(isOurs)) return item;
      const others = tolerationsOf(item, path).filter((toleration) => !isOurs(toleration));
      return assign(item, [...path, 'tolerations'], others);
    },
    (item, { resource, namespace }) => {
      const refused = resource === 'daemonsets' ? REFUSES : REFUSES_PODS;
      const path = namespace === refused ? specPath(resource) : undefined;
      if (path === undefined || !tolerationsOf(item, path).some(isOurs)) return item;
      onRefused();
      const message = `admission webhook "tolerations.example.com" denied the request: ${TAINT_KEY} is not in the whitelist`;
      throw new ApiError(403, 'Forbidden', message, { name: String(at(item, 'metadata', 'name')), kind: resource });
    },
  ];
}
