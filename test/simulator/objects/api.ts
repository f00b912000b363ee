import { FIELD_MANAGER, GUARD_POLICY } from '../../../src/names.ts';
import { assign, at, equal, isObject, type JsonObject, list, normalise, object, text } from '../json.ts';
import type { Webhooks } from '../webhooks/webhooks.ts';
import { asSent, carryOver, content, sameContent } from './carry-over.ts';
import { CONTROLLER_MANAGER, managedFields, type Writer } from './managed-fields.ts';
import { born, checkIdentity, checkPreconditions, newMetadata, timeText, unborn } from './metadata.ts';
import { defaultTolerations, newPodStatus, preparePod } from './pod-rules.ts';
import {
  type Address,
  DAEMON_SETS,
  findResource,
  NAMESPACES,
  PODS,
  RESOURCES,
  type Resource,
  SERVICE_ACCOUNTS,
} from './resources.ts';
import { guardDaemonSet, validate, withDefaults } from './rules.ts';
import { alreadyExists, forbidden, invalid, notFound } from './status.ts';
import { nameOf, namespaceOf, type Store } from './store.ts';

export interface ApiOptions {
  /** The admission plug-in DefaultTolerationSeconds. */
  readonly defaultTolerations: boolean;
  /** The MutatingAdmissionPolicy `archaware-keep` works where it and its binding exist. */
  readonly daemonSetGuard: boolean;
  readonly webhooks: Webhooks;
  /** Milliseconds since the epoch; default: the machine's. */
  readonly wall?: () => number;
  /** Makes the uid of a new object; default: a random one. */
  readonly uid?: () => string;
}

type Change = (current: JsonObject) => JsonObject;

export type Api = ReturnType<typeof createApi>;

/** The verbs of the API server over the store: admission, defaults, validation, versions. Throws `ApiError`. */
export function createApi(store: Store, options: ApiOptions) {
  const now = (laterMs = 0) => timeText((options.wall ?? Date.now)() + laterMs);
  const find = ({ resource, namespace, name }: Address): JsonObject => {
    const found = store.get(resource, namespace, name);
    if (!found) throw notFound(resource, name);
    return found;
  };

  async function create(
    resource: Resource,
    namespace: string,
    body: JsonObject,
    writer: Writer,
    dryRun = false,
  ): Promise<JsonObject> {
    const metadata = newMetadata(resource, namespace, object(body.metadata), now(), options.uid);
    const name = text(at(body, 'metadata', 'name'));
    checkNamespace(resource, namespace);
    const { status, ...rest } = body;
    const keepsStatus = !resource.status || resource.plural === 'nodes';
    const { apiVersion, kind } = resource;
    const given = { kind, apiVersion, ...rest, metadata, ...(keepsStatus && status ? { status } : {}) };
    const fill = (item: JsonObject) => object(normalise(withDefaults(resource, item)));
    const filled = fill(given);
    // Fields that admission adds have no owner: the fields of a new object are owned as they were sent, with defaults.
    const fields = managedFields(undefined, filled, writer, '', now());
    const owned = unborn(assign(filled, ['metadata', 'managedFields'], fields), name !== '');
    const prepare = (item: JsonObject) => admit(resource, item);
    const shown = prepare(resource.status ? { status: {}, ...owned } : owned);
    const asked = { resource, operation: 'CREATE', namespace, name, writer, dryRun, prepare, fill } as const;
    const admitted = born(await options.webhooks.mutate(asked, shown), metadata);
    const newStatus = resource === PODS ? newPodStatus(admitted) : filled.status;
    const next = object(normalise(assign(admitted, ['status'], newStatus)));
    // Time has passed.
    checkNamespace(resource, namespace);
    const causes = validate(resource, next, undefined);
    if (causes.length > 0) throw invalid(resource, nameOf(next), causes);
    if (store.get(resource, namespace, nameOf(next))) throw alreadyExists(resource, nameOf(next));
    if (dryRun) return next;
    const stored = store.put(resource, next);
    if (resource === NAMESPACES) await createDefaultAccount(nameOf(next));
    return stored;
  }

  function checkNamespace({ namespaced }: Resource, namespace: string): void {
    if (namespaced && !store.get(NAMESPACES, '', namespace)) throw notFound(NAMESPACES, namespace);
  }

  function admit(resource: Resource, item: JsonObject): JsonObject {
    if (resource.plural === 'nodes') {
      const taints = list(at(item, 'spec', 'taints'));
      const notReady = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };
      const present = taints.some((taint) => at(taint, 'key') === notReady.key && at(taint, 'effect') === 'NoSchedule');
      return present ? item : assign(item, ['spec', 'taints'], [...taints, notReady]);
    }
    if (resource !== PODS) return item;
    const account = text(at(item, 'spec', 'serviceAccountName')) || 'default';
    const found = store.get(SERVICE_ACCOUNTS, namespaceOf(item), account);
    if (!found) {
      const where = `${namespaceOf(item)}/${account}: serviceaccount "${account}" not found`;
      throw forbidden(PODS, nameOf(item), `error looking up service account ${where}`);
    }
    const pod = preparePod(item, found.imagePullSecrets);
    return options.defaultTolerations ? defaultTolerations(pod) : pod;
  }

  async function createDefaultAccount(namespace: string): Promise<void> {
    await create(SERVICE_ACCOUNTS, namespace, { metadata: { name: 'default' } }, CONTROLLER_MANAGER);
  }

  /** Reads an object, lets `change` make its next state, checks that as an update and stores it. Calls no webhook. */
  function update(address: Address, change: Change, writer: Writer, dryRun = false): JsonObject {
    const previous = find(address);
    const sent = requested(address, previous, change);
    return settle(address, previous, sent, admitUpdate(address, sent, previous, writer), writer, dryRun);
  }

  /** `update` for a client's PUT or PATCH: calls the webhooks, and starts again after a conflict with another writer. */
  async function amend(address: Address, change: Change, writer: Writer, dryRun = false): Promise<JsonObject> {
    const { resource, namespace, name, subresource } = address;
    if (subresource !== '') return update(address, change, writer, dryRun);
    for (;;) {
      const previous = find(address);
      const changed = change(previous);
      const sent = requested(address, previous, () => changed);
      const prepare = (item: JsonObject) => admitUpdate(address, item, previous, writer);
      const fill = (item: JsonObject) => object(normalise(withDefaults(resource, item)));
      const asked = { resource, namespace, name, oldObject: previous, writer, dryRun, prepare, fill };
      const admitted = await options.webhooks.mutate({ ...asked, operation: 'UPDATE' }, asSent(prepare(sent), changed));
      if (store.get(resource, namespace, name) !== previous) continue;
      return settle(address, previous, sent, admitted, writer, dryRun);
    }
  }

  function requested(address: Address, previous: JsonObject, change: Change): JsonObject {
    const changed = change(previous);
    checkIdentity(address, previous, changed);
    return carryOver(address, previous, changed);
  }

  /** Stores the object after admission. Fields that admission added have no owner. */
  function settle(
    address: Address,
    previous: JsonObject,
    sent: JsonObject,
    admitted: JsonObject,
    writer: Writer,
    dryRun: boolean,
  ): JsonObject {
    const { resource, name, subresource } = address;
    const next = object(normalise(carryOver(address, previous, admitted)));
    const causes = subresource === '' ? validate(resource, next, previous) : [];
    if (causes.length > 0) throw invalid(resource, name, causes);
    if (sameContent(previous, next)) return previous;
    const bumps = resource.generation && subresource === '' && !equal(content(previous), content(next));
    const generation = Number(at(previous, 'metadata', 'generation') ?? 0) + 1;
    const counted = bumps ? assign(next, ['metadata', 'generation'], generation) : next;
    const requestedState = object(normalise(subresource === '' ? withDefaults(resource, sent) : sent));
    const fields = managedFields(previous, requestedState, writer, subresource, now());
    const owned = subresource === 'binding' ? counted : assign(counted, ['metadata', 'managedFields'], fields);
    if (dryRun) return owned;
    const isGone = at(owned, 'metadata', 'deletionTimestamp') !== undefined && !held(owned);
    return isGone && resource !== PODS ? store.remove(resource, owned) : store.put(resource, owned);
  }

  function admitUpdate(
    { resource, subresource }: Address,
    next: JsonObject,
    previous: JsonObject,
    writer: Writer,
  ): JsonObject {
    if (subresource !== '') return next;
    const filled = withDefaults(resource, next);
    if (resource === PODS && options.defaultTolerations) return defaultTolerations(filled);
    const isOurs = writer.manager === FIELD_MANAGER;
    const guarded = resource === DAEMON_SETS && options.daemonSetGuard && !isOurs && guardExists();
    return guarded ? guardDaemonSet(filled, previous) : filled;
  }

  function guardExists(): boolean {
    return ['mutatingadmissionpolicies', 'mutatingadmissionpolicybindings'].every((plural) => {
      const resource = findResource('admissionregistration.k8s.io/v1', plural);
      return resource && store.get(resource, '', GUARD_POLICY);
    });
  }

  /** DELETE: at once, or by a time of grace (bound pods), or when finalizers are gone. */
  function remove(address: Address, deleteOptions: JsonObject, writer: Writer, dryRun = false): JsonObject {
    const { resource } = address;
    const current = find(address);
    checkPreconditions(resource, current, object(deleteOptions.preconditions));
    if (dryRun) return current;
    if (!terminates(resource, current, deleteOptions) && !held(current)) return drop(resource, current);
    if (at(current, 'metadata', 'deletionTimestamp') !== undefined) return current;
    const seconds = Number(
      deleteOptions.gracePeriodSeconds ?? at(current, 'spec', 'terminationGracePeriodSeconds') ?? 0,
    );
    const deletion = {
      ...object(current.metadata),
      deletionTimestamp: now(seconds * 1000),
      deletionGracePeriodSeconds: seconds,
      ...(resource.generation ? { generation: Number(at(current, 'metadata', 'generation') ?? 0) + 1 } : {}),
    };
    return store.put(resource, owning(current, { ...current, metadata: deletion }, writer, '', now()));
  }

  function terminates(resource: Resource, current: JsonObject, deleteOptions: JsonObject): boolean {
    if (resource !== PODS || deleteOptions.gracePeriodSeconds === 0) return false;
    const ended = ['Succeeded', 'Failed'].includes(text(at(current, 'status', 'phase')));
    const isBound = text(at(current, 'spec', 'nodeName')) !== '';
    return isBound && !ended;
  }

  function drop(resource: Resource, current: JsonObject): JsonObject {
    if (resource === NAMESPACES) emptyNamespace(nameOf(current));
    return store.remove(resource, current);
  }

  function emptyNamespace(namespace: string): void {
    for (const resource of namespacedResources) {
      for (const item of store.list(resource, namespace)) store.remove(resource, item);
    }
  }

  return { find, create, update, amend, remove };
}

const namespacedResources = RESOURCES.filter(({ namespaced }) => namespaced);

const held = (item: JsonObject) => list(at(item, 'metadata', 'finalizers')).length > 0;

function owning(
  previous: JsonObject | undefined,
  next: JsonObject,
  writer: Writer,
  subresource: string,
  time: string,
): JsonObject {
  const fields = managedFields(previous, next, writer, subresource, time);
  return isObject(next.metadata) ? assign(next, ['metadata', 'managedFields'], fields) : next;
}
