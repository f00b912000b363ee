import { randomUUID } from 'node:crypto';
import { bindPod, evictPod } from '../controllers/pod-actions.ts';
import type { Faults } from '../faults.ts';
import { at, type JsonObject, object, text } from '../json.ts';
import type { Api } from '../objects/api.ts';
import type { Writer } from '../objects/managed-fields.ts';
import { jsonPatch, mergePatch } from '../objects/patch.ts';
import type { createRbac } from '../objects/rbac.ts';
import type { Address, Resource } from '../objects/resources.ts';
import { undecodable } from '../objects/rules.ts';
import { fieldSelector, labelSelector, type Predicate } from '../objects/selectors.ts';
import { ApiError, badRequest, expired, invalid } from '../objects/status.ts';
import { jsonOf, keyOf, namespaceOf, type Store, uidOf } from '../objects/store.ts';
import { answerSimple, reply, route, verbOf } from './routes.ts';
import { type Call, parseBody, type Reply } from './server.ts';
import type { Watches } from './watch.ts';

const REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

export interface RestOptions {
  readonly store: Store;
  readonly api: Api;
  readonly rbac: ReturnType<typeof createRbac>;
  readonly watches: Watches;
  readonly faults: Faults;
  readonly adminUser: string;
  readonly gitVersion: string;
  /** Makes the token valid for the user. */
  readonly addToken: (token: string, user: string) => void;
}

/** Answers a call by the conventions of the Kubernetes REST API. Throws `ApiError`. */
export function createRest(options: RestOptions) {
  const { store, api } = options;

  return async (call: Call): Promise<Reply> => {
    const simple = answerSimple(call.url.pathname, options.gitVersion);
    if (simple) return simple;
    if (call.method === 'POST' && call.url.pathname === REVIEWS) return reviewed(call);
    const address = route(call.url.pathname);
    if (!address) throw new ApiError(404, 'NotFound', 'the server could not find the requested resource', {});
    authorize(address, call);
    switch (call.method) {
      case 'GET':
        if (address.name !== '') return reply(200, api.find(address));
        return call.url.searchParams.get('watch') ? watch(address, call) : list(address, call.url);
      case 'POST':
        return post(address, call);
      case 'PUT': {
        const body = parseBody(call.text);
        const change = () => decoded(address, body);
        return reply(200, await api.amend(address, change, writerOf(call), isDryRun(call)));
      }
      case 'PATCH':
        return reply(200, await api.amend(address, patched(address, call), writerOf(call), isDryRun(call)));
      case 'DELETE':
        return remove(address, call);
      default:
        throw new ApiError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource');
    }
  };

  function authorize(address: Address, call: Call): void {
    if (call.user === options.adminUser) return;
    const { resource, namespace, name, subresource } = address;
    const verb = verbOf(call, name);
    // For RBAC, a namespace is in itself: a Role in it may allow reading it.
    const within = resource.plural === 'namespaces' ? name : namespace;
    options.rbac.check({ user: call.user, verb, resource, subresource, namespace: within, name });
  }

  /** A SelfSubjectAccessReview about one resource in one namespace. Every account may create one. */
  function reviewed(call: Call): Reply {
    const review = parseBody(call.text);
    const asked = object(at(review, 'spec', 'resourceAttributes'));
    const address = route(`/api/v1/namespaces/${text(asked.namespace)}/${text(asked.resource)}`);
    if (!address) throw badRequest('only resources of v1 in a namespace can be reviewed here');
    const { resource, namespace } = address;
    let allowed = true;
    try {
      const attempt = { user: call.user, verb: text(asked.verb), resource, subresource: '', namespace, name: '' };
      if (call.user !== options.adminUser) options.rbac.check(attempt);
    } catch {
      allowed = false;
    }
    return reply(201, { ...review, status: { allowed } });
  }

  function list({ resource, namespace }: Address, url: URL): Reply {
    const query = url.searchParams;
    const matches = predicate(resource, query);
    const token = query.get('continue');
    const from = token === null ? undefined : decodeToken(token);
    if (from && from.version < store.compacted()) {
      throw expired(
        'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results.',
      );
    }
    // All pages show the state of the first one: a watch from its version gives what has changed since.
    const version = from?.version ?? store.version();
    const items = (from ? listAt(resource, namespace, version) : store.list(resource, namespace)).filter(matches);
    const rest = from ? items.filter((item) => keyOf(item) > from.after) : items;
    const limit = Number(query.get('limit') ?? 0);
    const page = limit > 0 ? rest.slice(0, limit) : rest;
    const last = page.at(-1);
    const more = last && page.length < rest.length ? encodeToken(version, keyOf(last)) : '';
    const selects = query.get('labelSelector') || query.get('fieldSelector');
    const metadata = {
      resourceVersion: String(version),
      ...(more === '' ? {} : { continue: more }),
      ...(more === '' || selects ? {} : { remainingItemCount: rest.length - page.length }),
    };
    const { kind, apiVersion } = resource;
    const head = JSON.stringify({ kind: `${kind}List`, apiVersion, metadata });
    return { status: 200, json: `${head.slice(0, -1)},"items":[${page.map(itemJson).join(',')}]}` };
  }

  /** The objects as they were at a version; those of now if the history does not go back so far. */
  function listAt(resource: Resource, namespace: string, version: number): JsonObject[] {
    const items = new Map(store.list(resource, namespace).map((item) => [keyOf(item), item]));
    for (const { resource: changed, object: item, previous } of [...(store.since(version) ?? [])].reverse()) {
      if (changed !== resource || (namespace !== '' && namespaceOf(item) !== namespace)) continue;
      if (previous === undefined) items.delete(keyOf(item));
      else items.set(keyOf(item), previous);
    }
    return [...items].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, item]) => item);
  }

  function watch({ resource, namespace }: Address, { url, response }: Call): undefined {
    const query = url.searchParams;
    const resourceVersion = query.get('resourceVersion') ?? '';
    options.watches.start(
      {
        resource,
        namespace,
        matches: predicate(resource, query),
        resourceVersion,
        bookmarks: query.get('allowWatchBookmarks') === 'true',
        timeoutSeconds: query.has('timeoutSeconds') ? Number(query.get('timeoutSeconds')) : undefined,
      },
      response,
    );
  }

  async function post(address: Address, call: Call): Promise<Reply> {
    const { resource, namespace, name, subresource } = address;
    const body = parseBody(call.text);
    const writer = writerOf(call);
    switch (name === '' ? '' : `${resource.plural}/${subresource}`) {
      case '':
        return reply(201, await api.create(resource, namespace, decoded(address, body), writer, isDryRun(call)));
      case 'pods/binding':
        return reply(201, bindPod(api, address, text(at(body, 'target', 'name')), writer));
      case 'pods/eviction':
        return reply(201, evictPod(store, api, address, body, writer));
      case 'serviceaccounts/token': {
        api.find(address);
        const token = randomUUID();
        options.addToken(token, `system:serviceaccount:${namespace}:${name}`);
        const seconds = Number(at(body, 'spec', 'expirationSeconds') ?? 3600);
        const expirationTimestamp = new Date(Date.now() + seconds * 1000).toISOString();
        return reply(201, { ...body, status: { token, expirationTimestamp } });
      }
      default:
        throw new ApiError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource');
    }
  }

  function remove(address: Address, call: Call): Reply {
    const { resource, name } = address;
    const gone = api.remove(address, deleteOptions(call), writerOf(call), isDryRun(call));
    if (['pods', 'namespaces', 'serviceaccounts'].includes(resource.plural)) return reply(200, gone);
    const { group, plural: kind } = resource;
    const details = { name, ...(group === '' ? {} : { group }), kind, uid: uidOf(gone) };
    return reply(200, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details });
  }
}

function patched(address: Address, { contentType, text: source }: Call): (current: JsonObject) => JsonObject {
  switch (contentType) {
    case 'application/json-patch+json':
      return (current) => patchDecoded(address, jsonPatch(current, source));
    case 'application/merge-patch+json':
    // As far as tests need one: each list in it is atomic.
    case 'application/strategic-merge-patch+json':
      return (current) => patchDecoded(address, object(mergePatch(current, parseBody(source))));
    default: {
      const message = `the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json`;
      throw new ApiError(415, 'UnsupportedMediaType', message);
    }
  }
}

/** A patch whose result cannot be decoded is an invalid patch (422), not a bad request. */
function patchDecoded({ resource }: Address, next: JsonObject): JsonObject {
  const problem = undecodable(resource, next);
  if (problem === undefined) return next;
  const message = `Invalid value: ${JSON.stringify(JSON.stringify(next))}: ${problem}`;
  throw invalid({ ...resource, group: '', kind: '' }, '', [{ reason: 'FieldValueInvalid', field: 'patch', message }]);
}

function decoded({ resource, subresource }: Address, body: JsonObject): JsonObject {
  const { kind = resource.kind, apiVersion = resource.apiVersion } = body;
  if (subresource === '' && (kind !== resource.kind || apiVersion !== resource.apiVersion)) {
    const expected = `the API version in the data (${apiVersion}) does not match the expected API version (${resource.apiVersion})`;
    throw badRequest(expected);
  }
  const problem = undecodable(resource, body);
  if (problem === undefined) return body;
  throw badRequest(
    `${resource.kind} in version "${resource.version}" cannot be handled as a ${resource.kind}: ${problem}`,
  );
}

const isDryRun = ({ url }: Call) => url.searchParams.get('dryRun') === 'All';

function writerOf({ url, user, userAgent }: Call): Writer {
  const fieldManager = url.searchParams.get('fieldManager') ?? '';
  if (fieldManager !== '') return { user, manager: fieldManager, fieldManager };
  return { user, manager: userAgent.split('/')[0] || 'unknown' };
}

function deleteOptions({ text: source, url }: Call): JsonObject {
  const body = source === '' ? {} : parseBody(source);
  const grace = url.searchParams.get('gracePeriodSeconds');
  return grace === null ? body : { ...body, gracePeriodSeconds: Number(grace) };
}

function predicate({ plural }: Resource, query: URLSearchParams): Predicate {
  const labels = query.get('labelSelector');
  const fields = query.get('fieldSelector');
  const terms = [labels ? labelSelector(labels) : undefined, fields ? fieldSelector(plural, fields) : undefined];
  return (item) => terms.every((term) => term === undefined || term(item));
}

const encodeToken = (version: number, after: string) =>
  Buffer.from(JSON.stringify({ version, after })).toString('base64url');

function decodeToken(token: string): { version: number; after: string } {
  try {
    const { version, after } = object(JSON.parse(Buffer.from(token, 'base64url').toString()));
    if (typeof version === 'number' && typeof after === 'string') return { version, after };
  } catch {
    // Said below.
  }
  throw badRequest('continue key is not valid');
}

/** An item of a list: its kind and apiVersion stand on the list alone. */
function itemJson(item: JsonObject): string {
  const head = JSON.stringify({ kind: item.kind, apiVersion: item.apiVersion }).slice(0, -1);
  const json = jsonOf(item);
  return json.startsWith(`${head},`) ? `{${json.slice(head.length + 1)}` : json;
}
