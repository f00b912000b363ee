import type { Config } from '../../src/config/schema.ts';
import { type Actors, createActors, NAMESPACE, SYSTEM } from './actors.ts';
import { createModelServer, type ModelServer } from './api-server.ts';
import { type Cleaner, configOf, LEASE_NAMESPACE, type Replica, startCleaner, startReplica } from './program.ts';
import { createModelRegistry, type ModelRegistry } from './registry.ts';
import { CLEANER, createRules, type Rules } from './rules.ts';
import { type History, NODES, SETS, SETTINGS, type Step } from './steps.ts';
import { createWorld, type World } from './world.ts';

export { type History, histories, type Step } from './steps.ts';

const MOST_TRIES = 3;
/** After this time every backoff is over and every failed lookup was retried. */
const LONG_MS = 25 * 60_000;
/** After this time everything is decided with a new configuration. */
const DECIDED_MS = 3 * 60_000;

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
  readonly actors: Actors;
  readonly replicas: Replica[];
  strips: boolean;
  refusesTemplates: boolean;
  /** Whether templates were refused at some time: a `clean` may then say that some are left, and is run again. */
  hasRefused: boolean;
  refusesPods: boolean;
  settings: keyof typeof SETTINGS;
  /** Whether the namespace of the pods has the label that a policy selects, and that of ignored namespaces. */
  isBlue: boolean;
  isIgnored: boolean;
  /** The process of `clean`. Once it has started, no replica starts any more. */
  cleaner: Cleaner | undefined;
  clean(): void;
  start(): void;
  /** The configuration in force. */
  config(): Config;
};

/** Plays a history to its end, then lets everything recover, and says which rule was broken first. */
export async function play(history: History): Promise<Verdict> {
  const stage = await setUp(history);
  for (const one of history.steps) {
    if (stage.rules.broken() !== undefined) break;
    await perform(stage, one);
  }
  if (stage.rules.broken() === undefined) await recover(stage);
  const { trace } = stage.world;
  for (const replica of stage.replicas) replica.kill();
  stage.cleaner?.kill();
  return { broken: stage.rules.broken(), trace, states: trace.length };
}

/** Everything that was broken works again, and everybody else puts things back. Then the rules for the end must hold. */
async function recover(stage: Stage): Promise<void> {
  const { world, actors, registry, rules } = stage;
  registry.isUp = true;
  stage.strips = false;
  stage.refusesTemplates = false;
  // A rollout that is refused until the end is taken back at the end.
  if (stage.refusesPods) {
    stage.refusesPods = false;
    await settle(stage);
  }
  for (const name of ['amd64-1', 'arm64-1', ...Array.from({ length: NODES }, (_, index) => `n${index}`)])
    await actors.report(name, true);
  // What archaware took back is tried again when its author restarts it.
  for (let index = 0; index < SETS; index++) if (await actors.isTakenBack(index)) await actors.restart(index);
  if (stage.cleaner === undefined) {
    const isRestricted = stage.settings === 'arm' && stage.isBlue;
    if (stage.settings !== 'start' || isRestricted || stage.isIgnored) await world.tick(DECIDED_MS, true);
    await ignoreNamespace(stage, false);
    // The label of the namespace goes, or the policy that selects it. Either must reach the pods by itself.
    const losesLabel = world.random() < 0.5;
    if (!isRestricted || losesLabel) await paintNamespace(stage, false);
    if (!isRestricted || !losesLabel) reload(stage, 'start');
    // The leader has decided with the restriction. Without it, it decides about all pods again.
    if (isRestricted) rules.unrestricted();
  }
  await settle(stage);
  if (stage.cleaner === undefined) rules.check(alive(stage), true);
  else await finishCleaning(stage);
}

async function setUp({ mode, replicas, leaseDuration = '300s', seed, pageSize = 500 }: History): Promise<Stage> {
  const world = createWorld(seed);
  const registry = createModelRegistry(world);
  let count = 0;
  const rules = createRules({
    mode,
    now: world.now,
    registry,
    server: () => server,
    replica: (name) => stage.replicas.find((replica) => replica.name === name),
  });
  const server: ModelServer = createModelServer({
    world,
    onSent: rules.onSent,
    onApplied(applied) {
      if (applied.plural === 'daemonsets') for (const one of [applied.before, applied.after]) stage.actors.revise(one);
      rules.onApplied(applied);
    },
    onAnswered: rules.onAnswered,
    strips: () => stage.strips,
    refusesTemplates: () => stage.refusesTemplates,
    pageSize,
  });
  const flags = {
    'placement.mode': mode,
    ...(mode === 'taints' ? {} : { 'webhook.enabled': 'true' }),
    'leaderElection.leaseDuration': leaseDuration,
    'bootstrap.timeout': '2m',
  };
  const stage: Stage = {
    world,
    server,
    registry,
    rules,
    actors: createActors({ world, server, rules }),
    replicas: [],
    strips: false,
    refusesTemplates: false,
    hasRefused: false,
    refusesPods: false,
    settings: 'start',
    isBlue: false,
    isIgnored: false,
    cleaner: undefined,
    config: () => configOf({ ...flags, ...SETTINGS[stage.settings] }),
    clean() {
      stage.cleaner?.kill();
      stage.cleaner = startCleaner({ name: `${CLEANER}${++count}`, world, server, config: stage.config() });
    },
    start() {
      if (stage.cleaner !== undefined) return;
      const name = `r${++count}`;
      // The kubelet starts it again.
      const onError = () =>
        world.add({ owner: 'kubelet', what: `${name} ended and is started again`, run: stage.start });
      const { onAsked, onEvent } = rules;
      const config = stage.config();
      stage.replicas.push(startReplica({ name, world, server, registry, config, onEvent, onAsked, onError }));
    },
  };
  for (const name of [LEASE_NAMESPACE, NAMESPACE, SYSTEM])
    await server.ask('POST', '/api/v1/namespaces', { metadata: { name } });
  for (const architecture of ['amd64', 'arm64']) await stage.actors.addNode(`${architecture}-1`, architecture);
  for (let started = 0; started < replicas; started++) stage.start();
  return stage;
}

/** Runs an interrupted `clean` again, as its message says. After that nothing of archaware may be left. */
async function finishCleaning(stage: Stage): Promise<void> {
  const isDone = () => {
    const left = stage.cleaner?.outcome()?.left.length;
    return left === 0 || (left !== undefined && !stage.hasRefused);
  };
  for (let tries = 0; tries < MOST_TRIES && !isDone(); tries++) {
    stage.clean();
    await settle(stage);
  }
  stage.rules.checkClean(stage.cleaner?.outcome()?.left.length ?? -1);
}

const alive = (stage: Stage) => stage.replicas.filter((replica) => !replica.isOver());

/** Returns a replica that lives, by number; by default the first. */
const replicaOf = (stage: Stage, which = 0) => alive(stage)[which % Math.max(1, alive(stage).length)];

/** Lets enough time pass for everything to recover, without new faults. DaemonSets finish their rollouts. */
async function settle(stage: Stage): Promise<void> {
  for (let past = 0; past < LONG_MS && stage.rules.broken() === undefined; past += 60_000) {
    await stage.world.tick(60_000, true);
    for (let index = 0; index < SETS; index++) await stage.actors.roll(index, stage.refusesPods);
  }
  await stage.world.calm();
}

async function ignoreNamespace(stage: Stage, is: boolean): Promise<void> {
  stage.isIgnored = is;
  if (is) stage.rules.loosen();
  await stage.actors.labelNamespace('archaware.dev/ignore', is ? 'true' : null);
}

async function paintNamespace(stage: Stage, is: boolean): Promise<void> {
  stage.isBlue = is;
  if (is) stage.rules.selected('namespace');
  await stage.actors.labelNamespace('team', is ? 'blue' : null);
}

function reload(stage: Stage, to: keyof typeof SETTINGS): void {
  if (stage.settings === to) return;
  stage.settings = to;
  if (to === 'arm') stage.rules.selected('policy');
  if (to === 'daemons') stage.rules.selected('daemons');
  // Each reads what the file says at that moment: of two changes, none reads the older one last.
  for (const { name, reload } of alive(stage))
    stage.world.add({ owner: name, what: `${name} reads its configuration`, run: () => reload(stage.config()) });
}

async function perform(stage: Stage, one: Step): Promise<void> {
  const { world, server, actors, rules } = stage;
  const hasWebhook = stage.cleaner === undefined;
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
    case 'wait':
      return world.tick(one.ms, true);
    case 'registry':
      stage.registry.isUp = one.is;
      return;
    case 'strip':
      stage.strips = one.is;
      if (one.is) rules.stripped();
      return;
    case 'refuse templates':
      stage.refusesTemplates = one.is;
      stage.hasRefused ||= one.is;
      return;
    case 'refuse pods':
      stage.refusesPods = one.is;
      return;
    case 'ignore namespace':
      return hasWebhook ? ignoreNamespace(stage, one.is) : undefined;
    case 'label namespace':
      return hasWebhook ? paintNamespace(stage, one.is) : undefined;
    case 'reload':
      return hasWebhook ? reload(stage, one.to) : undefined;
    case 'push':
      rules.loosen();
      return stage.registry.push(one.what);
    case 'pause':
    case 'hold events': {
      const { name } = replicaOf(stage, one.which) ?? {};
      if (name !== undefined) one.do === 'pause' ? world.pause(name, one.ms) : world.holdEvents(name, one.ms);
      return;
    }
    case 'suspend': {
      const { name } = replicaOf(stage, one.which) ?? {};
      if (name === undefined) return;
      world.pause(name, one.ms);
      await world.tick(one.ms - 1, true);
      await actors.deletePod(one.pod, false);
      await actors.createPod(one.pod, one, hasWebhook);
      return world.tick(1);
    }
    case 'connections die': {
      const { name } = replicaOf(stage, one.which) ?? {};
      if (name !== undefined) server.letConnectionsDie(name);
      return;
    }
    case 'node':
    case 'replace node':
      if (one.architecture === 's390x') rules.joined();
      if (one.do === 'replace node') await actors.deleteNode(one.node);
      return actors.changeNode(one.node, one.architecture);
    case 'delete node':
      return actors.deleteNode(one.node);
    case 'heartbeat':
      return actors.report(`n${one.node}`, one.is);
    case 'taint node':
      return actors.taintNode(one.node, one.is);
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
      return stage.cleaner === undefined ? rules.check(alive(stage), false) : undefined;
    case 'check':
      return rules.check(alive(stage), false);
    case 'clean':
      // As after its Deployment was scaled to 0: some replicas end after SIGTERM, one dies.
      for (const [index, replica] of alive(stage).entries()) index === 0 ? replica.stop() : replica.kill();
      return stage.clean();
    case 'pod':
      return actors.createPod(one.pod, one, hasWebhook);
    case 'replace pod':
      await actors.deletePod(one.pod, false);
      return actors.createPod(one.pod, one, hasWebhook);
    case 'delete pod':
      return actors.deletePod(one.pod, one.isSlow ?? false);
    case 'end pod':
      return actors.endPod();
    case 'orphan':
      return actors.orphan(one.pod);
    case 'image':
      return actors.changePodImage(one.pod, one.image);
    case 'replace set':
      await actors.deleteSet(one.set);
      return actors.createSet(one.set, one.image);
    case 'set':
      return actors.createSet(one.set, one.image);
    case 'delete set':
      return actors.deleteSet(one.set);
    case 'drop':
      return actors.drop(one.set);
    case 'roll':
      return actors.roll(one.set, stage.refusesPods);
    case 'restart':
      return actors.restart(one.set);
    case 'undo':
      // Once clean is over, nobody takes out what such an author brings back.
      return stage.cleaner?.isOver() ? undefined : actors.undo(one.set);
    case 'forget':
      return actors.forget(one.set);
    case 'bind':
      return actors.bind();
    default:
      one satisfies never;
  }
}
