import { ARCHITECTURE_GATE, ARCHITECTURE_LABEL, FIELD_MANAGER, TOLERATIONS_ANNOTATION } from '../../src/names.ts';
import { readDaemonSet, readRecord } from '../../src/placement/objects/daemonset.ts';
import { at, equal, type JsonObject, list, object, objects, text } from '../simulator/json.ts';
import { nameOf, uidOf } from '../simulator/objects/store.ts';
import type { Applied, ModelServer, Write } from './api-server.ts';
import { IMAGES } from './registry.ts';
import { LEASE_NAMESPACE, type Replica } from './replica.ts';

/** The name prefix of the `clean` processes. */
export const CLEANER = 'clean-';

/** A system DaemonSet is decided after two seconds, and its write is tried again within moments. */
const KNOWN_FOR_MS = 30_000;

/** The key of archaware's taints in the simulation. */
export const TAINT_KEY = 'supported-arch';

export type RulesOptions = {
  readonly mode: 'taints' | 'affinity' | 'both';
  readonly now: () => number;
  readonly server: () => ModelServer;
  readonly replica: (name: string) => Replica | undefined;
};

/** The rules. Some are checked at every write, the others whenever nothing is under way. */
export type Rules = {
  onSent(write: Write): void;
  onApplied(applied: Applied): void;
  onAsked(replica: string, image: string): void;
  /** Checks the rules for a quiet moment. `isHealthy`: the registry answers, and enough time has passed. */
  check(replicas: readonly Replica[], isHealthy: boolean): void;
  /** Checks the rules for the end of a `clean` that reported how much is left. */
  checkClean(left: number): void;
  /** The first broken rule, as text. */
  broken(): string | undefined;
  /** Records that the author changed this object, so that it may be decided again. */
  changed(uid: string): void;
  /**
   * Records that the namespace of the pods was ignored at some time: its pods then lose their gate and get nothing, and are decided
   * again afterwards.
   */
  ignored(): void;
  /** Records that an architecture joined: what an earlier process placed may have been a guess, and is looked up again. */
  joined(): void;
};

/** Creates the rules for one history. */
export function createRules({ mode, now, server, replica }: RulesOptions): Rules {
  let broken: string | undefined;
  /** The images for which an object was placed, by its uid. */
  const placed = new Map<string, string>();
  /** Pods that were placed with unknown images, or for images that have changed since. */
  const guessed = new Set<string>();
  let wasIgnored = false;
  let hasJoined = false;

  const knownWhenSent = new Map<string, ReadonlySet<string>>();

  function fail(rule: string): void {
    broken ??= rule;
  }

  const title = (item: JsonObject) => `${text(item.kind)} ${nameOf(item)}`;

  function onSent({ owner, verb, path, body }: Write): void {
    lookAtTemplates(owner);
    if (path.includes('/leases')) return;
    if (path.includes('/nodes/') && !owner.startsWith(CLEANER)) nodeSent(owner, path, body);
    const holder = text(at(leaseOf(server()), 'spec', 'holderIdentity'));
    rememberKnown(owner, path);
    if (holder !== owner)
      fail(`a write without the lease: ${owner} sent ${verb} ${path} while ${holder || 'no replica'} held it`);
  }

  /** The DaemonSets from which a change was taken back, and that nobody has changed since. */
  const tookBack = new Set<string>();
  /** Since when each replica has known a template, by its name, the uid and the generation. */
  const knownSince = new Map<string, number>();
  const idOf = (owner: string, { uid, generation }: { uid: string; generation: number }) =>
    `${owner} ${uid} ${generation}`;

  function lookAtTemplates(owner: string): void {
    for (const daemonSet of replica(owner)?.watches.daemonSets.store.values() ?? []) {
      const id = idOf(owner, daemonSet);
      if (!knownSince.has(id)) knownSince.set(id, now());
    }
  }

  /** A taint must not cut a DaemonSet of the system off, as far as the replica that sets it can know. */
  function nodeSent(owner: string, path: string, body: unknown): void {
    const { watches, lease } = replica(owner) ?? {};
    const name = path.split('?')[0]?.split('/').at(-1) ?? '';
    const node = watches?.nodes.store.get(name);
    const added = objects(body).flatMap(({ op, path: field, value }) =>
      op !== 'test' && field === '/spec/taints' ? objects(value) : [],
    );
    const values = added.flatMap(({ key, value }) => (key === TAINT_KEY ? text(value) : []));
    const [value] = values.filter(
      (one) => !(node?.taints ?? []).some((had) => had.key === TAINT_KEY && had.value === one),
    );
    if (value === undefined || lease?.fresh() !== true) return;
    for (const daemonSet of watches?.daemonSets.store.values() ?? []) {
      const { namespace, template, deleting } = daemonSet;
      const lasts = now() - (knownSince.get(idOf(owner, daemonSet)) ?? now());
      if (namespace !== 'kube-system' || deleting || lasts < KNOWN_FOR_MS) continue;
      const truth = setOf(template.images.map(({ image }) => image));
      // The answer to a write comes before the watch shows it.
      const stored = server()
        .all('apps/v1', 'daemonsets')
        .find((one) => uidOf(one) === daemonSet.uid);
      const has = oursOf(object(at(stored, 'spec', 'template', 'spec'))).includes(value);
      if (truth?.includes(value) && !has) fail(`${name}: the taint ${value} cuts ${namespace}/${daemonSet.name} off`);
    }
  }

  function onApplied({ by, plural, before, after }: Applied): void {
    if (plural === 'leases' || !writtenByUs(before, after)) return;
    if (!equal(foreign(before), foreign(after))) fail(`${title(after)}: something foreign changed`);
    // The rules for placement do not apply to the writes of clean.
    if (by.startsWith(CLEANER)) return;
    if (plural === 'pods') podWritten(by, before, after);
    if (plural === 'daemonsets') templateWritten(by, before, after);
    if (plural === 'nodes') nodeWritten(after);
  }

  function podWritten(by: string, before: JsonObject, after: JsonObject): void {
    const uid = uidOf(after);
    const spec = object(after.spec);
    const truth = setOf(imagesOf(spec));
    const [had, has] = [oursOf(object(before.spec)), oursOf(object(after.spec))];
    const added = has.filter((one) => !had.includes(one));
    const isWide = truth !== undefined && added.some((one) => !truth.includes(one));
    if (isWide && placed.get(uid) === imagesKey(object(after.spec)))
      fail(`${title(after)}: what was placed was widened to ${has}`);
    if (isWide && text(at(after, 'spec', 'nodeName')) !== '')
      fail(`${title(after)}: a bound pod was written on a guess`);
    if (isWide) guessed.add(uid);
    if (truth !== undefined && isKnownTo(by, after, spec) && added.length > 0)
      placed.set(uid, imagesKey(object(after.spec)));
    if (gateOf(before) && !gateOf(after)) released(by, after, truth);
  }

  function released(by: string, after: JsonObject, truth: readonly string[] | undefined): void {
    if (mode === 'taints' || truth === undefined || wasIgnored) return;
    if (isKnownTo(by, after, object(after.spec)) && !equal(requiredOf(after), truth))
      fail(`${title(after)}: released without its node affinity`);
  }

  /** Records what a process knows when it sends a write. What it learns before the write arrives comes too late. */
  function rememberKnown(name: string, path: string): void {
    const { resolver } = replica(name) ?? {};
    knownWhenSent.set(
      `${name} ${path.split('?')[0]?.split('/').at(-1)}`,
      new Set(Object.keys(IMAGES).filter((image) => resolver?.knows(image))),
    );
  }

  /** Whether a process knew all images of a pod when it sent its last write, so that it need not guess. */
  function isKnownTo(name: string, written: JsonObject, spec: JsonObject): boolean {
    return imagesOf(spec).every((image) => knownWhenSent.get(`${name} ${nameOf(written)}`)?.has(image));
  }

  function templateWritten(by: string, before: JsonObject, after: JsonObject): void {
    const uid = uidOf(after);
    const spec = object(at(after, 'spec', 'template', 'spec'));
    const truth = setOf(imagesOf(spec));
    if (truth === undefined) return;
    const [had, has] = [oursOf(object(at(before, 'spec', 'template', 'spec'))), oursOf(spec)];
    const isSame = equal(had, has);
    if (isSame) return;
    if (text(at(after, 'metadata', 'annotations', TOLERATIONS_ANNOTATION)).includes('"rollout":"back ')) {
      takenBack(uid, before, has);
      return;
    }
    if (placed.get(uid) === imagesKey(spec)) fail(`${title(after)}: a placed template rolled from ${had} to ${has}`);
    if (equal([...has].sort(), truth) && isKnownTo(by, after, spec)) placed.set(uid, imagesKey(spec));
  }

  function takenBack(uid: string, before: JsonObject, has: readonly string[]): void {
    placed.delete(uid);
    if (tookBack.has(uid)) fail(`${title(before)}: taken back twice`);
    tookBack.add(uid);
    if (has.length > 0) fail(`${title(before)}: only a part was taken back`);
    if (Number(at(before, 'status', 'updatedNumberScheduled')) > 0)
      fail(`${title(before)}: a rollout that goes on was taken back`);
  }

  function nodeWritten(after: JsonObject): void {
    if (tainted(after) && mode === 'affinity') fail(`${title(after)}: tainted in mode affinity`);
  }

  function onAsked(name: string, image: string): void {
    const { watches, loops, lease } = replica(name) ?? {};
    // A process that was stopped for long may ask before it notices that its term is over. It can write nothing.
    if (watches === undefined || loops?.() === undefined || lease?.fresh() !== true) return;
    const wanting = [
      ...[...watches.pods.store.values()].map(({ uid, images, asked }) => ({ uid, images, asked })),
      ...[...watches.daemonSets.store.values()].map(({ uid, template }) => ({ ...template, uid, asked: undefined })),
    ].filter(({ images }) => images.some((one) => one.image === image));
    const isPlaced = wanting.every(({ uid, images, asked }) => {
      const names = images.map((one) => one.image);
      // A pod whose affinity is that of an earlier image fits no node, so its images are looked at again.
      const fits = asked === undefined || (setOf(names) ?? []).some((name) => asked.architectures.includes(name));
      return fits && placed.get(uid) === names.join();
    });
    if (wanting.length > 0 && isPlaced && !wasIgnored && !hasJoined)
      fail(`${name} asked for ${image}, whose pods are all placed`);
  }

  function check(replicas: readonly Replica[], isHealthy: boolean): void {
    const isContested = () => replicas.some(({ loops }) => (loops()?.contested() ?? 0) > 0);
    for (const { name, watches, loops } of replicas) {
      for (const [plural, version, { store }] of [
        ['pods', 'v1', watches.pods],
        ['nodes', 'v1', watches.nodes],
        ['daemonsets', 'apps/v1', watches.daemonSets],
      ] as const) {
        const real = new Map(
          server()
            .all(version, plural)
            .map((item) => [keyIn(item), item]),
        );
        for (const key of store.keys()) if (!real.has(key)) fail(`${name} has a ghost: ${plural} ${key}`);
        for (const [key, item] of real) {
          const kept = store.get(key);
          if (kept === undefined) fail(`${name} has lost ${plural} ${key}`);
          else if (kept.uid !== uidOf(item)) fail(`${name} has an older ${plural} ${key}`);
        }
      }
      const pods = new Set(server().all('v1', 'pods').map(keyIn));
      for (const key of loops()?.podStates.keys() ?? [])
        if (!pods.has(key)) fail(`${name} remembers a pod that is gone: ${key}`);
    }
    if (!isHealthy) return;
    for (const pod of server().all('v1', 'pods')) checkPod(pod, isContested);
    for (const daemonSet of server().all('apps/v1', 'daemonsets')) checkTemplate(daemonSet);
    for (const node of server().all('v1', 'nodes')) {
      const wanted = mode === 'affinity' ? [] : [text(at(node, 'status', 'nodeInfo', 'architecture'))];
      if (!equal(taintsOf(node), wanted)) fail(`${title(node)}: its taints are ${taintsOf(node)}, not ${wanted}`);
    }
  }

  function checkClean(left: number): void {
    if (left !== 0) fail(`clean says that ${left} are left`);
    for (const node of server().all('v1', 'nodes'))
      if (tainted(node)) fail(`${title(node)}: still tainted after clean`);
    for (const pod of server().all('v1', 'pods')) if (gateOf(pod)) fail(`${title(pod)}: still gated after clean`);
    for (const daemonSet of server().all('apps/v1', 'daemonsets')) {
      const has = oursOf(object(at(daemonSet, 'spec', 'template', 'spec')));
      if (has.length > 0) fail(`${title(daemonSet)}: its template still tolerates ${has} after clean`);
      if (at(daemonSet, 'metadata', 'annotations', TOLERATIONS_ANNOTATION) !== undefined) {
        fail(`${title(daemonSet)}: still has its record after clean`);
      }
      if (readDaemonSet(daemonSet).entry !== undefined) fail(`${title(daemonSet)}: archaware owns fields after clean`);
    }
  }

  function checkPod(pod: JsonObject, isContested: () => boolean): void {
    const spec = object(pod.spec);
    const truth = setOf(imagesOf(spec));
    if (gateOf(pod) && (truth === undefined || truth.length > 0)) fail(`${title(pod)}: its gate was never taken away`);
    if (mode === 'affinity' || truth === undefined) return;
    const has = oursOf(spec);
    const missing = truth.filter((one) => !has.includes(one));
    if (missing.length > 0 && !isContested()) fail(`${title(pod)}: lacks tolerations for ${missing}`);
    const wide = has.filter((one) => !truth.includes(one));
    if (wide.length > 0 && !guessed.has(uidOf(pod)) && placed.get(uidOf(pod)) === imagesKey(spec)) {
      fail(`${title(pod)}: tolerates ${wide} too`);
    }
  }

  function checkTemplate(daemonSet: JsonObject): void {
    const spec = object(at(daemonSet, 'spec', 'template', 'spec'));
    const truth = setOf(imagesOf(spec));
    if (truth === undefined || truth.length === 0) return;
    const has = [...oursOf(spec)].sort();
    const wanted = mode === 'affinity' ? [] : truth;
    if (!equal(has, wanted)) fail(`${title(daemonSet)}: its template tolerates ${has || 'nothing'}, not ${wanted}`);
    const { recorded, entry } = readDaemonSet(daemonSet);
    const listed = readRecord(recorded).tolerations.map(({ value }) => value);
    if (!equal(listed.sort(), has))
      fail(`${title(daemonSet)}: tolerates ${has}, and its record has ${listed || 'nothing'}`);
    if (entry?.ownsSpec) fail(`${title(daemonSet)}: its list of tolerations was not given back`);
  }

  return {
    onSent,
    onApplied,
    onAsked,
    check,
    checkClean,
    broken: () => broken,
    ignored() {
      wasIgnored = true;
    },
    joined() {
      hasJoined = true;
    },
    changed(uid) {
      placed.delete(uid);
      tookBack.delete(uid);
      guessed.add(uid);
    },
  };
}

/** Returns the Lease, or an empty object. */
export function leaseOf(server: ModelServer): JsonObject {
  return (
    server
      .all('coordination.k8s.io/v1', 'leases')
      .find((lease) => at(lease, 'metadata', 'namespace') === LEASE_NAMESPACE) ?? {}
  );
}

/** Returns the architectures that all images have; undefined if the registry does not have one of them. */
function setOf(images: readonly string[]): readonly string[] | undefined {
  const sets = images.map((image) => IMAGES[image] ?? []);
  if (sets.some((set) => set.length === 0)) return undefined;
  return ['amd64', 'arm64'].filter((name) => sets.every((set) => set.includes(name)));
}

function imagesOf(spec: JsonObject): string[] {
  return objects(spec.containers).map(({ image }) => text(image));
}

function imagesKey(spec: JsonObject): string {
  return imagesOf(spec).join();
}

function oursOf(spec: JsonObject): string[] {
  return objects(spec.tolerations).flatMap(({ key, value }) => (key === TAINT_KEY ? text(value) : []));
}

function gateOf(pod: JsonObject): boolean {
  return objects(at(pod, 'spec', 'schedulingGates')).some(({ name }) => name === ARCHITECTURE_GATE);
}

function requiredOf(pod: JsonObject): unknown {
  const required = at(pod, 'spec', 'affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution');
  const [term] = objects(at(required, 'nodeSelectorTerms'));
  return objects(term?.matchExpressions).find(({ key }) => key === ARCHITECTURE_LABEL)?.values;
}

function tainted(node: JsonObject): boolean {
  return taintsOf(node).length > 0;
}

/** Returns the values of archaware's taints on a node. */
function taintsOf(node: JsonObject): string[] {
  return objects(at(node, 'spec', 'taints')).flatMap(({ key, value }) => (key === TAINT_KEY ? text(value) : []));
}

function keyIn(item: JsonObject): string {
  const namespace = text(at(item, 'metadata', 'namespace'));
  return namespace === '' ? nameOf(item) : `${namespace}/${nameOf(item)}`;
}

/** Returns everything in an object that archaware must not change. */
function foreign(item: JsonObject): unknown {
  const { managedFields: _m, resourceVersion: _v, generation: _g, annotations, ...metadata } = object(item.metadata);
  const { 'archaware.dev/managed': _a, [TOLERATIONS_ANNOTATION]: _t, ...others } = object(annotations);
  return { metadata, others, spec: foreignSpec(object(item.spec)) };
}

function foreignSpec(spec: JsonObject): unknown {
  const { tolerations, schedulingGates, affinity: _, taints, template, ...rest } = spec;
  const notOurs = (items: unknown) => objects(items).filter(({ key }) => key !== TAINT_KEY);
  const gates = objects(schedulingGates).filter(({ name }) => name !== ARCHITECTURE_GATE);
  const inner = template === undefined ? {} : { template: foreignSpec(object(at(template, 'spec'))) };
  return { ...rest, ...inner, tolerations: notOurs(tolerations), taints: notOurs(taints), gates };
}

function writtenByUs(before: JsonObject, after: JsonObject): boolean {
  const times = (item: JsonObject) =>
    list(at(item, 'metadata', 'managedFields')).filter((one) => at(one, 'manager') === FIELD_MANAGER);
  return !equal(times(before), times(after)) || !equal(oursAnywhere(before), oursAnywhere(after));
}

function oursAnywhere(item: JsonObject): unknown {
  return [oursOf(object(item.spec)), oursOf(object(at(item, 'spec', 'template', 'spec'))), tainted(item), gateOf(item)];
}
