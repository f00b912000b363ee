import { ARCHITECTURE_GATE, ARCHITECTURES_ANNOTATION, FIELD_MANAGER, TOLERATIONS_ANNOTATION } from '../../src/names.ts';
import { at, equal, type JsonObject, list, object, objects, text } from '../simulator/json.ts';
import { nameOf, uidOf } from '../simulator/objects/store.ts';
import type { Applied, ModelServer, Write } from './api-server.ts';
import { createEventRules, type EventRules } from './event-rules.ts';
import { LEASE_NAMESPACE, type Replica, recordOf } from './program.ts';
import type { ModelRegistry } from './registry.ts';
import { IMAGE_NAMES } from './steps.ts';
import { checkStores } from './store-rules.ts';
import {
  createTruth,
  imagesKey,
  imagesOf,
  isEnding,
  isGated,
  oursOf,
  type Right,
  requiredOf,
  TAINT_KEY,
  type Truth,
  taintsOf,
} from './truth.ts';

/** The name prefix of the `clean` processes. */
export const CLEANER = 'clean-';

/** A system DaemonSet is decided after two seconds, and its write is tried again within moments. */
const KNOWN_FOR_MS = 30_000;

/** For so long a replica waits for the event of its own write. */
const BEHIND_MS = 30_000;
export type RulesOptions = {
  readonly mode: 'taints' | 'affinity' | 'both';
  readonly now: () => number;
  readonly registry: ModelRegistry;
  readonly server: () => ModelServer;
  readonly replica: (name: string) => Replica | undefined;
};

/** The rules. Some are checked at every write, the others whenever nothing is under way. */
export type Rules = {
  onSent(write: Write): void;
  onApplied(applied: Applied): void;
  onAnswered(write: Write, answer: JsonObject): void;
  onEvent: EventRules['onEvent'];
  onAsked(replica: string, image: string): void;
  /** Checks the rules for a quiet moment. `isHealthy`: the registry answers, and enough time has passed. */
  check(replicas: readonly Replica[], isHealthy: boolean): void;
  /** Checks the rules for the end of a `clean` that reported how much is left. */
  checkClean(left: number): void;
  /** The first broken rule, as text. */
  broken(): string | undefined;
  /** Records that the author changed this object, so that it may be decided again. */
  changed(uid: string): void;
  /** Records that namespaces, settings or images changed: what was placed may be decided again. */
  loosen(): void;
  /** Records that an architecture joined: what an earlier process placed may have been a guess, and is looked up again. */
  joined(): void;
  /** Records that somebody else takes archaware's tolerations out of pods. */
  stripped(): void;
  /** Records that somebody undid what archaware had written to a DaemonSet. */
  undid(uid: string): void;
} & Pick<Truth, 'selected' | 'unrestricted' | 'reported'>;

/** Creates the rules for one history. */
export function createRules({ mode, now, registry, server, replica }: RulesOptions): Rules {
  let broken: string | undefined;
  const truth = createTruth(registry, server);
  const eventRules = createEventRules({
    ...{ now, fail, replica },
    hasPod: (uid) =>
      server()
        .all('v1', 'pods')
        .some((pod) => uidOf(pod) === uid),
  });
  /** The images for which an object was placed, by its uid. */
  const placed = new Map<string, string>();
  /** Pods that were placed with unknown images, or for images that have changed since. */
  const guessed = new Set<string>();
  let isLoose = false;
  let hasJoined = false;

  const knownWhenSent = new Map<string, ReadonlySet<string>>();

  function fail(rule: string): void {
    broken ??= rule;
  }

  const title = (item: JsonObject) => `${text(item.kind)} ${nameOf(item)}`;

  function onSent(write: Write): void {
    const { owner, verb, path, body } = write;
    keysWhenSent.set(write, answerOf(owner, path));
    lookAtTemplates(owner);
    if (path.includes('/leases')) return;
    if (path.includes('/nodes/') && !owner.startsWith(CLEANER)) nodeSent(owner, path, body);
    const holder = text(at(leaseOf(server()), 'spec', 'holderIdentity'));
    rememberKnown(owner, path);
    checkNotBehind(owner, verb, path);
    if (holder !== owner)
      fail(`a write without the lease: ${owner} sent ${verb} ${path} while ${holder || 'no replica'} held it`);
  }

  /** The last answer to each replica's writes of each pod. */
  const answers = new Map<string, { readonly uid: string; readonly version: string; readonly at: number }>();
  const answerOf = (owner: string, path: string) => `${owner} ${replica(owner)?.terms()} ${path.split('?')[0]}`;
  /** A term knows nothing of the writes of the one before it, which may be answered only now. */
  const keysWhenSent = new WeakMap<Write, string>();

  function onAnswered(write: Write, answer: JsonObject): void {
    const { verb, path } = write;
    if (verb !== 'patch' || path.includes('dryRun=')) return;
    const version = text(at(answer, 'metadata', 'resourceVersion'));
    answers.set(keysWhenSent.get(write) ?? '', { uid: uidOf(answer), version, at: now() });
  }

  /** Nothing is decided from what an object was before the replica's own write, until its watch has had time to show that. */
  function checkNotBehind(owner: string, verb: string, path: string): void {
    const answer = verb === 'patch' ? answers.get(answerOf(owner, path)) : undefined;
    const [, namespace, key] = /\/namespaces\/([^/]+)\/pods\/([^/?]+)/.exec(path) ?? [];
    const kept = replica(owner)?.watches.pods.store.get(`${namespace}/${key}`);
    if (verb === 'patch' && kept?.deleting) fail(`${owner} writes to ${key}, which is being deleted`);
    if (answer === undefined || kept?.uid !== answer.uid || now() - answer.at >= BEHIND_MS) return;
    if (Number(kept.resourceVersion) < Number(answer.version))
      fail(`${owner} writes to ${key} from before its own write`);
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
    if (value === undefined || lease?.mayWrite() !== true || truth.wasSelected('daemons')) return;
    for (const daemonSet of watches?.daemonSets.store.values() ?? []) {
      const { namespace, template, deleting } = daemonSet;
      const lasts = now() - (knownSince.get(idOf(owner, daemonSet)) ?? now());
      if (namespace !== 'kube-system' || deleting || lasts < KNOWN_FOR_MS) continue;
      const right = truth.ofImages(template.images.map(({ image }) => image));
      // The answer to a write comes before the watch shows it.
      const stored = server()
        .all('apps/v1', 'daemonsets')
        .find((one) => uidOf(one) === daemonSet.uid);
      const shown = (template.tolerations ?? []).some((one) => one.key === TAINT_KEY && one.value === value);
      const has = shown || oursOf(object(at(stored, 'spec', 'template', 'spec'))).includes(value);
      if (right?.least.includes(value) && !has)
        fail(`${name}: the taint ${value} cuts ${namespace}/${daemonSet.name} off`);
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
    const right = truth.ofPod(after);
    const [had, has] = [oursOf(object(before.spec)), oursOf(object(after.spec))];
    const added = has.filter((one) => !had.includes(one));
    const isWide = right !== undefined && added.some((one) => !right.most.includes(one));
    if (isWide && placed.get(uid) === imagesKey(object(after.spec)))
      fail(`${title(after)}: what was placed was widened to ${has}`);
    if (isWide && text(at(after, 'spec', 'nodeName')) !== '')
      fail(`${title(after)}: a bound pod was written on a guess`);
    if (isWide) guessed.add(uid);
    if (right !== undefined && isKnownTo(by, after, spec) && added.length > 0)
      placed.set(uid, imagesKey(object(after.spec)));
    if (isGated(before) && !isGated(after)) released(by, after, right);
  }

  function released(by: string, after: JsonObject, right: Right | undefined): void {
    if (mode === 'taints' || right === undefined || isLoose) return;
    if (isStated(after) || !isKnownTo(by, after, object(after.spec))) return;
    const required = requiredOf(after) ?? [];
    if (!isWithin(required, right) || required.length === 0)
      fail(`${title(after)}: released without its node affinity`);
  }

  /** Records what a process knows when it sends a write. What it learns before the write arrives comes too late. */
  function rememberKnown(name: string, path: string): void {
    const { resolver } = replica(name) ?? {};
    knownWhenSent.set(
      `${name} ${path.split('?')[0]?.split('/').at(-1)}`,
      new Set(IMAGE_NAMES.filter((image) => resolver?.knows(image))),
    );
  }

  /** Whether a process knew all images of a pod when it sent its last write, so that it need not guess. */
  function isKnownTo(name: string, written: JsonObject, spec: JsonObject): boolean {
    return imagesOf(spec).every((image) => knownWhenSent.get(`${name} ${nameOf(written)}`)?.has(image));
  }

  function templateWritten(by: string, before: JsonObject, after: JsonObject): void {
    const uid = uidOf(after);
    const spec = object(at(after, 'spec', 'template', 'spec'));
    const right = truth.ofImages(imagesOf(spec));
    if (right === undefined) return;
    const [had, has] = [oursOf(object(at(before, 'spec', 'template', 'spec'))), oursOf(spec)];
    const isSame = equal(had, has);
    if (isSame) return;
    if (text(at(after, 'metadata', 'annotations', TOLERATIONS_ANNOTATION)).includes('"rollout":"back ')) {
      takenBack(uid, before, has);
      return;
    }
    if (placed.get(uid) === imagesKey(spec) && !isLoose)
      fail(`${title(after)}: a placed template rolled from ${had} to ${has}`);
    if (isWithin(has, right) && isKnownTo(by, after, spec)) placed.set(uid, imagesKey(spec));
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
    if (taintsOf(after).length > 0 && mode === 'affinity') fail(`${title(after)}: tainted in mode affinity`);
  }

  function onAsked(name: string, image: string): void {
    const { watches, leads, lease } = replica(name) ?? {};
    // A process that was stopped for long may ask before it notices that its term is over. It can write nothing.
    if (watches === undefined || leads?.() !== true || lease?.mayWrite() !== true) return;
    const wanting = [
      ...[...watches.pods.store.values()].map(({ uid, images, asked, resourceVersion: seen }) => ({
        uid,
        images,
        asked,
        seen,
      })),
      ...[...watches.daemonSets.store.values()].map(({ uid, template, resourceVersion: seen }) => ({
        ...{ ...template, uid, seen },
        asked: undefined,
      })),
    ].filter(({ images }) => images.some((one) => one.image === image));
    // What another replica has just written is not known before the watch shows it.
    const versions = new Map(
      [...server().all('v1', 'pods'), ...server().all('apps/v1', 'daemonsets')].map((one) => [
        uidOf(one),
        text(at(one, 'metadata', 'resourceVersion')),
      ]),
    );
    const isPlaced = wanting.every(({ uid, images, asked, seen }) => {
      if (versions.get(uid) !== seen) return false;
      const names = images.map((one) => one.image);
      // A pod whose affinity is that of an earlier image fits no node, so its images are looked at again.
      const fits =
        asked === undefined || (truth.ofImages(names)?.least ?? []).some((name) => asked.architectures.includes(name));
      return fits && placed.get(uid) === names.join();
    });
    if (wanting.length > 0 && isPlaced && !isLoose && !hasJoined)
      fail(`${name} asked for ${image}, whose pods are all placed`);
  }

  function check(replicas: readonly Replica[], isHealthy: boolean): void {
    const isContested = () => replicas.some(({ contested }) => contested() > 0);
    for (const one of replicas) checkStores(one, server(), fail);
    if (!isHealthy) return;
    for (const pod of server().all('v1', 'pods')) if (!isEnding(pod)) checkPod(pod, isContested);
    for (const daemonSet of server().all('apps/v1', 'daemonsets')) checkTemplate(daemonSet);
    for (const node of server().all('v1', 'nodes')) {
      const wanted = mode === 'affinity' ? [] : [text(at(node, 'status', 'nodeInfo', 'architecture'))];
      if (!equal(taintsOf(node), wanted)) fail(`${title(node)}: its taints are ${taintsOf(node)}, not ${wanted}`);
    }
  }

  function checkClean(left: number): void {
    if (left !== 0) fail(`clean says that ${left} are left`);
    for (const node of server().all('v1', 'nodes'))
      if (taintsOf(node).length > 0) fail(`${title(node)}: still tainted after clean`);
    for (const pod of server().all('v1', 'pods')) if (isGated(pod)) fail(`${title(pod)}: still gated after clean`);
    for (const daemonSet of server().all('apps/v1', 'daemonsets')) {
      const has = oursOf(object(at(daemonSet, 'spec', 'template', 'spec')));
      if (has.length > 0) fail(`${title(daemonSet)}: its template still tolerates ${has} after clean`);
      if (at(daemonSet, 'metadata', 'annotations', TOLERATIONS_ANNOTATION) !== undefined) {
        fail(`${title(daemonSet)}: still has its record after clean`);
      }
      if (recordOf(daemonSet).ownsAny) fail(`${title(daemonSet)}: archaware owns fields after clean`);
    }
  }

  function checkPod(pod: JsonObject, isContested: () => boolean): void {
    const spec = object(pod.spec);
    const right = truth.ofPod(pod);
    const isBound = text(spec.nodeName) !== '';
    if (isGated(pod) && (right === undefined || right.least.length > 0))
      fail(`${title(pod)}: its gate was never taken away`);
    if (mode === 'affinity' || right === undefined) return;
    const has = oursOf(spec);
    const missing = right.least.filter((one) => !has.includes(one));
    // A bound daemon pod is its DaemonSet's matter. What a bound pod was placed with stays, whatever changes afterwards.
    const isDone = isBound && (isDaemon(pod) || isStated(pod) || truth.wasRestricted());
    if (missing.length > 0 && !isDone && !isContested()) fail(`${title(pod)}: lacks tolerations for ${missing}`);
    const wide = has.filter((one) => !right.most.includes(one));
    if (wide.length > 0 && !guessed.has(uidOf(pod)) && placed.get(uidOf(pod)) === imagesKey(spec)) {
      fail(`${title(pod)}: tolerates ${wide} too`);
    }
  }

  function checkTemplate(daemonSet: JsonObject): void {
    const spec = object(at(daemonSet, 'spec', 'template', 'spec'));
    const right = truth.ofImages(imagesOf(spec));
    if (right === undefined || right.least.length === 0) return;
    const has = [...oursOf(spec)].sort();
    const wanted = mode === 'affinity' ? { least: [], most: [] } : right;
    if (!isWithin(has, wanted))
      fail(`${title(daemonSet)}: its template tolerates ${has || 'nothing'}, not ${wanted.least}`);
    const { listed, ownsSpec } = recordOf(daemonSet);
    if (!equal(listed.sort(), has))
      fail(`${title(daemonSet)}: tolerates ${has}, and its record has ${listed || 'nothing'}`);
    if (ownsSpec) fail(`${title(daemonSet)}: its list of tolerations was not given back`);
  }

  return {
    onSent,
    onApplied,
    onAsked,
    check,
    checkClean,
    broken: () => broken,
    onAnswered,
    onEvent: eventRules.onEvent,
    stripped: eventRules.stripped,
    undid: eventRules.undid,
    reported: truth.reported,
    unrestricted: truth.unrestricted,
    selected(what) {
      isLoose = true;
      truth.selected(what);
    },
    loosen() {
      isLoose = true;
    },
    joined() {
      hasJoined = true;
    },
    changed(uid) {
      eventRules.changed(uid);
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

function isWithin(names: readonly string[], { least, most }: Right): boolean {
  return least.every((name) => names.includes(name)) && names.every((name) => most.includes(name));
}

function isDaemon(pod: JsonObject): boolean {
  return objects(at(pod, 'metadata', 'ownerReferences')).some(({ kind }) => kind === 'DaemonSet');
}

/** Whether the author of a pod stated its architectures. */
function isStated(pod: JsonObject): boolean {
  return at(pod, 'metadata', 'annotations', ARCHITECTURES_ANNOTATION) !== undefined;
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
  return [
    oursOf(object(item.spec)),
    oursOf(object(at(item, 'spec', 'template', 'spec'))),
    taintsOf(item).length > 0,
    isGated(item),
  ];
}
