import fc from 'fast-check';
import { loadConfig } from '../../src/config/load.ts';
import { ARCHITECTURE_GATE, TOLERATIONS_ANNOTATION } from '../../src/names.ts';
import { obstaclesTo, readDemands, readSchedulableNode } from '../../src/placement/fit.ts';
import { at, equal, type JsonObject, list, object, objects, text } from '../simulator/json.ts';
import { nameOf, uidOf } from '../simulator/objects/store.ts';
import { createModelServer, type ModelServer } from './api-server.ts';
import { type Cleaner, startCleaner } from './cleaner.ts';
import { createModelRegistry, IMAGES, type ModelRegistry } from './registry.ts';
import { LEASE_NAMESPACE, type Replica, startReplica } from './replica.ts';
import { CLEANER, createRules, type Rules, TAINT_KEY } from './rules.ts';
import { createWorld, type World } from './world.ts';

/** One step of a history. Numbers choose among the things that exist at that moment. */
export type Step =
  | { readonly do: 'go' | 'lose' | 'repeat'; readonly which: number }
  | { readonly do: 'refuse'; readonly which: number; readonly status: 403 | 429 | 500 | 503 }
  | { readonly do: 'calm' | 'bind' | 'crash' | 'stop' | 'compact' | 'break watches' | 'quiet' | 'clean' }
  /** Checks that the stores match the cluster, if all events have arrived. For scripts. */
  | { readonly do: 'check' }
  | { readonly do: 'tick' | 'pause'; readonly ms: number }
  /** A policy refuses that archaware changes templates, or refuses pods of DaemonSets that tolerate archaware's taint. */
  | { readonly do: 'refuse templates' | 'refuse pods'; readonly is: boolean }
  | { readonly do: 'registry' | 'strip' | 'ignore namespace'; readonly is: boolean }
  /** Node n has this architecture from now on: it joins, or it was installed again. */
  | { readonly do: 'node'; readonly node: number; readonly architecture: string }
  | { readonly do: 'delete node'; readonly node: number }
  | {
      readonly do: 'pod' | 'replace pod';
      readonly pod: number;
      readonly images: readonly number[];
      readonly isGated: boolean;
    }
  | { readonly do: 'delete pod'; readonly pod: number }
  | { readonly do: 'image'; readonly pod: number; readonly image: number }
  | { readonly do: 'set' | 'replace set'; readonly set: number; readonly image: number }
  | { readonly do: 'delete set' | 'drop' | 'roll' | 'restart' | 'undo' | 'forget'; readonly set: number };

/** A world and what happens in it. */
export type History = {
  readonly mode: 'taints' | 'affinity' | 'both';
  readonly replicas: 1 | 2;
  /** Default: so long that it is not lost while time moves on in one step. */
  readonly leaseDuration?: '15s' | '300s';
  readonly steps: readonly Step[];
};

const MOST_TRIES = 3;
const PODS = 3;
const SETS = 2;
/** The nodes that join and go. Two others are always there. */
const NODES = 2;
const NAMESPACE = 'shop';
const SYSTEM = 'kube-system';
const IMAGE_NAMES = Object.keys(IMAGES);
/** After this time every backoff is over and every failed lookup was retried. */
const LONG_MS = 25 * 60_000;

const which = fc.nat({ max: 30 });
const pod = fc.nat({ max: PODS - 1 });
const set = fc.nat({ max: SETS - 1 });
const image = fc.nat({ max: IMAGE_NAMES.length - 1 });
const newPod = { pod, images: fc.array(image, { minLength: 1, maxLength: 2 }), isGated: fc.boolean() };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 40, arbitrary: fc.record({ do: fc.constant('go' as const), which }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('calm' as const) }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('tick' as const), ms: fc.constantFrom(100, 1_000, 5_000, 30_000, 130_000) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('lose' as const, 'repeat' as const), which }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('refuse' as const),
      which,
      status: fc.constantFrom(403 as const, 429 as const, 500 as const, 503 as const),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('pod' as const), ...newPod }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('replace pod' as const), ...newPod }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('delete pod' as const), pod }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('image' as const), pod, image }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('set' as const, 'replace set' as const), set, image }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('delete set' as const, 'drop' as const, 'roll' as const, 'restart' as const),
      set,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom('undo' as const, 'undo' as const, 'forget' as const), set }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('bind' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('crash' as const, 'stop' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('compact' as const, 'break watches' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('registry' as const), is: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('strip' as const), is: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('ignore namespace' as const), is: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('refuse templates' as const, 'refuse pods' as const),
      is: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('node' as const),
      node: fc.nat({ max: NODES - 1 }),
      architecture: fc.constantFrom('amd64', 'arm64', 's390x'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete node' as const), node: fc.nat({ max: NODES - 1 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('pause' as const), ms: fc.constantFrom(5_000, 20_000, 400_000) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('quiet' as const, 'quiet' as const, 'clean' as const) }) },
);

/** Any history. */
export function histories(length: number): fc.Arbitrary<History> {
  return fc.record({
    mode: fc.constantFrom('taints' as const, 'both' as const, 'affinity' as const),
    replicas: fc.constantFrom(1 as const, 2 as const),
    leaseDuration: fc.constantFrom('300s' as const, '300s' as const, '15s' as const),
    steps: fc.array(step, { maxLength: length, size: 'max' }),
  });
}

/** The result of a history. */
export type Verdict = {
  readonly broken: string | undefined;
  readonly trace: readonly string[];
  readonly states: number;
};

type Stage = {
  readonly world: World;
  readonly server: ModelServer;
  readonly registry: ModelRegistry;
  readonly rules: Rules;
  replicas: Replica[];
  strips: boolean;
  /** The templates that each DaemonSet has had, by uid, without repetitions. The last one is the newest. */
  readonly revisions: Map<string, JsonObject[]>;
  refusesTemplates: boolean;
  refusesPods: boolean;
  /** The process of `clean`. Once it has started, no replica starts any more. */
  cleaner: Cleaner | undefined;
  clean(): void;
  start(): void;
};

/** Plays a history to its end, then lets everything recover, and says which rule was broken first. */
export async function play(history: History): Promise<Verdict> {
  const stage = await setUp(history);
  for (const one of history.steps) {
    if (stage.rules.broken() !== undefined) break;
    await perform(stage, one);
  }
  if (stage.rules.broken() === undefined) {
    stage.registry.isUp = true;
    stage.strips = false;
    stage.refusesTemplates = false;
    // A rollout that is refused until the end is taken back at the end.
    if (stage.refusesPods) {
      stage.refusesPods = false;
      await settle(stage);
    }
    // What archaware took back is tried again when its author restarts it.
    for (let index = 0; index < SETS; index++)
      if (await isTakenBack(stage, index)) await restart(stage, setPath(index));
    if (stage.cleaner === undefined) await ignoreNamespace(stage, false);
    await settle(stage);
    if (stage.cleaner === undefined) stage.rules.check(alive(stage), true);
    else await finishCleaning(stage);
  }
  const { trace } = stage.world;
  for (const replica of stage.replicas) replica.kill();
  stage.cleaner?.kill();
  return { broken: stage.rules.broken(), trace, states: trace.length };
}

async function setUp({ mode, replicas, leaseDuration = '300s' }: History): Promise<Stage> {
  const world = createWorld();
  const registry = createModelRegistry(world);
  let count = 0;
  const rules = createRules({
    mode,
    now: world.now,
    server: () => server,
    replica: (name) => stage.replicas.find((replica) => replica.name === name),
  });
  const server: ModelServer = createModelServer({
    world,
    onSent: rules.onSent,
    onApplied(applied) {
      if (applied.plural === 'daemonsets') for (const one of [applied.before, applied.after]) revise(stage, one);
      rules.onApplied(applied);
    },
    strips: () => stage.strips,
    refusesTemplates: () => stage.refusesTemplates,
    onAnswered() {},
    onLine() {},
    pageSize: 500,
  });
  const flags = {
    'placement.mode': mode,
    ...(mode === 'taints' ? {} : { 'webhook.enabled': 'true' }),
    'leaderElection.leaseDuration': leaseDuration,
    'bootstrap.timeout': '2m',
  };
  const { config } = loadConfig({ file: undefined, environment: {}, flags });
  const stage: Stage = {
    world,
    server,
    registry,
    rules,
    replicas: [],
    strips: false,
    revisions: new Map(),
    refusesTemplates: false,
    refusesPods: false,
    cleaner: undefined,
    clean() {
      stage.cleaner?.kill();
      stage.cleaner = startCleaner({ name: `${CLEANER}${++count}`, world, server, config });
    },
    start() {
      if (stage.cleaner !== undefined) return;
      const name = `r${++count}`;
      // The kubelet starts it again.
      const onEnd = () => world.add({ owner: 'kubelet', what: `${name} ended and is started again`, run: stage.start });
      stage.replicas.push(
        startReplica({ name, world, server, registry, config, onEvent() {}, onAsked: rules.onAsked, onError: onEnd }),
      );
    },
  };
  for (const name of [LEASE_NAMESPACE, NAMESPACE, SYSTEM])
    await server.ask('POST', '/api/v1/namespaces', { metadata: { name } });
  for (const architecture of ['amd64', 'arm64']) await addNode(server, `${architecture}-1`, architecture);
  for (let started = 0; started < replicas; started++) stage.start();
  return stage;
}

async function addNode(server: ModelServer, name: string, architecture: string): Promise<void> {
  const metadata = { name, labels: { 'kubernetes.io/arch': architecture } };
  const status = { nodeInfo: { architecture }, conditions: [{ type: 'Ready', status: 'True' }] };
  await server.ask('POST', '/api/v1/nodes', {
    metadata,
    spec: { taints: [{ key: 'foreign', effect: 'PreferNoSchedule' }] },
    status,
  });
}

/** Runs an interrupted `clean` again, as its message says. After that nothing of archaware may be left. */
async function finishCleaning(stage: Stage): Promise<void> {
  for (let tries = 0; tries < MOST_TRIES && stage.cleaner?.outcome() === undefined; tries++) {
    stage.clean();
    await settle(stage);
  }
  stage.rules.checkClean(stage.cleaner?.outcome()?.left.length ?? -1);
}

const alive = (stage: Stage) => stage.replicas.filter((replica) => !replica.isOver());

/** Lets enough time pass for everything to recover, without new faults. DaemonSets finish their rollouts. */
async function settle(stage: Stage): Promise<void> {
  for (let past = 0; past < LONG_MS && stage.rules.broken() === undefined; past += 60_000) {
    await stage.world.tick(60_000, true);
    for (let index = 0; index < SETS; index++) await roll(stage, index);
  }
  await stage.world.calm();
}

async function perform(stage: Stage, one: Step): Promise<void> {
  const { world, server } = stage;
  const podPath = (index: number) => `/api/v1/namespaces/${NAMESPACE}/pods/p${index}`;
  switch (one.do) {
    case 'go':
      return world.meet(one.which, 'run');
    case 'lose':
    case 'repeat':
      return world.meet(one.which, one.do);
    case 'refuse':
      return world.meet(one.which, one.status);
    case 'calm':
      return world.calm();
    case 'tick':
      return world.tick(one.ms);
    case 'registry':
      stage.registry.isUp = one.is;
      return;
    case 'strip':
      stage.strips = one.is;
      return;
    case 'refuse templates':
      stage.refusesTemplates = one.is;
      return;
    case 'refuse pods':
      stage.refusesPods = one.is;
      return;
    case 'ignore namespace':
      return stage.cleaner === undefined ? ignoreNamespace(stage, one.is) : undefined;
    case 'pause':
      if (alive(stage)[0] !== undefined) world.pause(alive(stage)[0]?.name ?? '', one.ms);
      return;
    case 'node': {
      const path = `/api/v1/nodes/n${one.node}`;
      if (one.architecture === 's390x') stage.rules.joined();
      const { status } = await server.ask('GET', path);
      if (status === 404) return addNode(server, `n${one.node}`, one.architecture);
      const nodeInfo = { architecture: one.architecture };
      await server.ask('PATCH', `${path}/status`, { status: { nodeInfo } }, 'application/merge-patch+json');
      return;
    }
    case 'delete node':
      await server.ask('DELETE', `/api/v1/nodes/n${one.node}`);
      return;
    case 'compact':
      return server.compact();
    case 'break watches':
      return server.breakWatches();
    case 'crash':
      alive(stage)[0]?.kill();
      return stage.start();
    case 'stop':
      alive(stage)[0]?.stop();
      return stage.start();
    case 'quiet':
      await settle(stage);
      return stage.cleaner === undefined ? stage.rules.check(alive(stage), false) : undefined;
    case 'check':
      return stage.rules.check(alive(stage), false);
    case 'clean':
      // As after its Deployment was scaled to 0: some replicas end after SIGTERM, one dies.
      for (const [index, replica] of alive(stage).entries()) index === 0 ? replica.stop() : replica.kill();
      return stage.clean();
    case 'pod':
      await server.ask('POST', `/api/v1/namespaces/${NAMESPACE}/pods`, podOf(one, stage.cleaner !== undefined));
      return;
    case 'replace pod':
      await server.ask('DELETE', podPath(one.pod), { gracePeriodSeconds: 0 });
      await server.ask('POST', `/api/v1/namespaces/${NAMESPACE}/pods`, podOf(one, stage.cleaner !== undefined));
      return;
    case 'delete pod':
      await server.ask('DELETE', podPath(one.pod), { gracePeriodSeconds: 0 });
      return;
    case 'image':
      // managedFields has times in seconds.
      await world.tick(1_000);
      return changeImage(stage, podPath(one.pod), '/spec/containers/0/image', one.image);
    case 'set':
    case 'replace set': {
      if (one.do === 'replace set') await server.ask('DELETE', setPath(one.set));
      const created = await server.ask('POST', setPath(one.set, false), setOf(one.set, one.image));
      if (created.status === 409)
        await changeImage(stage, setPath(one.set), '/spec/template/spec/containers/0/image', one.image);
      return;
    }
    case 'delete set':
      await server.ask('DELETE', setPath(one.set));
      return;
    case 'drop':
      return drop(stage, setPath(one.set));
    case 'roll':
      return roll(stage, one.set);
    case 'restart':
      return restart(stage, setPath(one.set));
    case 'undo':
      return undo(stage, setPath(one.set));
    case 'forget':
      return forget(stage, setPath(one.set));
    case 'bind':
      return bind(stage);
    default:
      one satisfies never;
  }
}

/** The first DaemonSet is a tenant's, the second one the system's. */
function setPath(index: number, isNamed = true): string {
  const namespace = index === 0 ? NAMESPACE : SYSTEM;
  return `/apis/apps/v1/namespaces/${namespace}/daemonsets${isNamed ? `/d${index}` : ''}`;
}

async function isTakenBack({ server }: Stage, index: number): Promise<boolean> {
  const { body } = await server.ask('GET', setPath(index));
  return text(at(body, 'metadata', 'annotations', TOLERATIONS_ANNOTATION)).includes('"rollout":"back ');
}

/** `isLate`: the webhook that gates pods no longer exists. */
function podOf(
  { pod: index, images, isGated }: Extract<Step, { do: 'pod' | 'replace pod' }>,
  isLate: boolean,
): JsonObject {
  const containers = images.map((number, position) => ({ name: `c${position}`, image: IMAGE_NAMES[number] }));
  const schedulingGates =
    isGated && !isLate ? [{ name: 'other.example.com/gate' }, { name: ARCHITECTURE_GATE }] : undefined;
  const tolerations = [{ key: 'foreign', operator: 'Exists' }];
  return {
    metadata: { name: `p${index}`, annotations: { 'example.com/mine': 'kept' } },
    spec: { containers, tolerations, ...(schedulingGates ? { schedulingGates } : {}) },
  };
}

function setOf(index: number, number: number): JsonObject {
  const labels = { app: `d${index}` };
  const containers = [{ name: 'app', image: IMAGE_NAMES[number] }];
  return {
    metadata: { name: `d${index}` },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
  };
}

async function changeImage(stage: Stage, path: string, field: string, number: number): Promise<void> {
  const patch = [{ op: 'replace', path: field, value: IMAGE_NAMES[number] }];
  const { status, body } = await stage.server.ask('PATCH', path, patch, 'application/json-patch+json');
  if (status < 300) stage.rules.changed(uidOf(body));
}

/** An update by the author without archaware's tolerations, as by a GitOps tool. */
async function drop({ server, rules }: Stage, path: string): Promise<void> {
  const found = await server.ask('GET', path);
  if (found.status !== 200) return;
  if (at(found.body, 'spec', 'template', 'spec', 'tolerations') === undefined) return;
  await server.ask(
    'PATCH',
    path,
    [{ op: 'remove', path: '/spec/template/spec/tolerations' }],
    'application/json-patch+json',
  );
  rules.changed(uidOf(found.body));
}

/** `kubectl rollout restart`: the template is decided again. */
async function restart({ server, rules, world }: Stage, path: string): Promise<void> {
  const annotations = { 'kubectl.kubernetes.io/restartedAt': String(world.now()) };
  const body = { spec: { template: { metadata: { annotations } } } };
  const { status, body: after } = await server.ask('PATCH', path, body, 'application/merge-patch+json');
  if (status < 300) rules.changed(uidOf(after));
}

/** The DaemonSet controller keeps the template as a revision. */
function revise({ revisions }: Stage, daemonSet: JsonObject): void {
  const template = object(at(daemonSet, 'spec', 'template'));
  const known = revisions.get(uidOf(daemonSet)) ?? [];
  revisions.set(uidOf(daemonSet), [...known.filter((one) => !equal(one, template)), template]);
}

/** `kubectl rollout undo`: the template is the one before the last change, no matter who made that. */
async function undo(stage: Stage, path: string): Promise<void> {
  const { server, rules, revisions } = stage;
  const found = await server.ask('GET', path);
  if (found.status !== 200) return;
  revise(stage, found.body);
  const value = revisions.get(uidOf(found.body))?.at(-2);
  if (value === undefined) return;
  const patch = [{ op: 'replace', path: '/spec/template', value }];
  const { status, body } = await server.ask('PATCH', path, patch, 'application/json-patch+json');
  if (status >= 300) return;
  revise(stage, body);
  rules.changed(uidOf(body));
}

/** Somebody removes archaware's record. */
async function forget({ server, rules }: Stage, path: string): Promise<void> {
  const annotations = { [TOLERATIONS_ANNOTATION]: null };
  const { status, body } = await server.ask(
    'PATCH',
    path,
    { metadata: { annotations } },
    'application/merge-patch+json',
  );
  if (status < 300) rules.changed(uidOf(body));
}

async function ignoreNamespace({ server, rules }: Stage, is: boolean): Promise<void> {
  if (is) rules.ignored();
  const labels = { 'archaware.dev/ignore': is ? 'true' : null };
  await server.ask(
    'PATCH',
    `/api/v1/namespaces/${NAMESPACE}`,
    { metadata: { labels } },
    'application/merge-patch+json',
  );
}

/** The DaemonSet controller: the status follows the template and the nodes. */
async function roll({ server, refusesPods }: Stage, index: number): Promise<void> {
  const path = setPath(index);
  const { status, body } = await server.ask('GET', path);
  if (status !== 200) return;
  const own = readDemands(object(at(body, 'spec', 'template', 'spec')));
  const demands = {
    ...own,
    tolerations: [...own.tolerations, { key: 'node.kubernetes.io/not-ready', operator: 'Exists' }],
  };
  const nodes = server.all('v1', 'nodes').map(readSchedulableNode);
  const count = nodes.filter((node) => obstaclesTo(demands, node).length === 0).length;
  // The pod of one node was taken down, and no other may take its place.
  const isRefused = refusesPods && demands.tolerations.some(({ key }) => key === TAINT_KEY);
  const current = isRefused ? Math.max(0, count - 1) : count;
  const updated = isRefused ? 0 : count;
  await server.ask(
    'PATCH',
    `${path}/status`,
    {
      status: {
        observedGeneration: at(body, 'metadata', 'generation'),
        desiredNumberScheduled: count,
        currentNumberScheduled: current,
        numberMisscheduled: 0,
        updatedNumberScheduled: updated,
        numberAvailable: current,
        numberReady: current,
      },
    },
    'application/merge-patch+json',
  );
}

/** The scheduler: the first pod that fits a node is bound to it, and runs. */
async function bind({ server }: Stage): Promise<void> {
  const nodes = server.all('v1', 'nodes').map(readSchedulableNode);
  for (const item of server.all('v1', 'pods')) {
    const spec = object(item.spec);
    if (text(spec.nodeName) !== '' || list(spec.schedulingGates).length > 0) continue;
    const demands = readDemands({ ...spec, tolerations: objects(spec.tolerations) });
    const node = nodes.find((one) => obstaclesTo(demands, one).length === 0);
    if (node === undefined) continue;
    const path = `/api/v1/namespaces/${NAMESPACE}/pods/${nameOf(item)}`;
    await server.ask('POST', `${path}/binding`, { target: { kind: 'Node', name: node.name } });
    await server.ask('PATCH', `${path}/status`, { status: { phase: 'Running' } }, 'application/merge-patch+json');
    return;
  }
}
