import { randomUUID } from 'node:crypto';
import { equal, type JsonObject, list, objects, text } from '../json.ts';
import type { Writer } from '../objects/managed-fields.ts';
import { jsonPatch } from '../objects/patch.ts';
import { MUTATING_WEBHOOKS, type Resource } from '../objects/resources.ts';
import { ApiError } from '../objects/status.ts';
import { type Store, uidOf } from '../objects/store.ts';
import { CallFailure, internalError, patchOf } from './answer.ts';
import { createWebhookClient } from './client.ts';
import { wants } from './matching.ts';

/** A write that is about to happen, but for its object, which the webhooks may change. */
export interface Admission {
  readonly resource: Resource;
  readonly operation: 'CREATE' | 'UPDATE';
  readonly namespace: string;
  /** '' where the server makes it up (`generateName`): that comes after admission. */
  readonly name: string;
  readonly oldObject?: JsonObject;
  readonly writer: Writer;
  readonly dryRun: boolean;
  /** The built-in changes to an object, before the webhooks and again before their second round. */
  readonly prepare: (item: JsonObject) => JsonObject;
  /** What is not there is filled in, after each patch. */
  readonly fill: (item: JsonObject) => JsonObject;
}

/**
 * The admission plug-in MutatingAdmissionWebhook, over the configurations in the store: in the order of their names, then
 * of their webhooks; a webhook of `reinvocationPolicy: IfNeeded` is called a second time when the object changed after it.
 */
export function createWebhooks(store: Store) {
  const client = createWebhookClient(store);

  const configured = () =>
    store.list(MUTATING_WEBHOOKS).flatMap((configuration) =>
      objects(configuration.webhooks).map((webhook) => ({
        id: `${uidOf(configuration)}/${text(webhook.name)}`,
        webhook,
      })),
    );

  /** The object as one webhook leaves it. */
  async function call(webhook: JsonObject, admission: Admission, item: JsonObject, request: JsonObject) {
    const name = text(webhook.name);
    let patch: string;
    try {
      const answer = await client.post(webhook, {
        kind: 'AdmissionReview',
        apiVersion: 'admission.k8s.io/v1',
        request,
      });
      patch = patchOf(name, text(request.uid), answer);
    } catch (error) {
      if (!(error instanceof CallFailure)) throw error;
      if (webhook.failurePolicy === 'Ignore') return item;
      throw internalError(`failed calling webhook ${JSON.stringify(name)}: ${error.message}`);
    }
    if (patch === '' || list(JSON.parse(patch)).length === 0) return item;
    return admission.fill(patched(item, patch));
  }

  return {
    /** The object as all webhooks leave it. Throws the `ApiError` of a refusal, or of a failure that is not ignored. */
    async mutate(admission: Admission, item: JsonObject): Promise<JsonObject> {
      const webhooks = configured();
      let current = item;
      let called = new Set<string>();
      const outdated = new Set<string>();
      const changed = () => {
        for (const id of called) outdated.add(id);
        called = new Set();
      };
      const round = async (isDue: (id: string) => boolean) => {
        for (const { id, webhook } of webhooks) {
          const request = requestOf(admission, current);
          if (!isDue(id) || !wants(store, webhook, admission.resource, request)) continue;
          const next = await call(webhook, admission, current, request);
          if (!equal(next, current)) changed();
          current = next;
          if (webhook.reinvocationPolicy === 'IfNeeded') called.add(id);
        }
      };
      await round(() => true);
      if (equal(current, item)) return item;
      const after = admission.prepare(current);
      if (!equal(after, current)) changed();
      current = after;
      await round((id) => outdated.has(id));
      return current;
    },
    close: () => client.close(),
  };
}

export type Webhooks = ReturnType<typeof createWebhooks>;

/** A patch that cannot be applied is the server's trouble, not the webhook's: `failurePolicy: Ignore` does not cover it. */
function patched(item: JsonObject, patch: string): JsonObject {
  try {
    return jsonPatch(item, patch);
  } catch (error) {
    if (error instanceof ApiError) throw internalError('the JSON patch of the webhook cannot be applied');
    throw error;
  }
}

function requestOf(admission: Admission, item: JsonObject): JsonObject {
  const { resource, operation, namespace, name, oldObject = null, writer, dryRun } = admission;
  const { group, version, kind, plural } = resource;
  const [kinds, resources] = [
    { group, version, kind },
    { group, version, resource: plural },
  ];
  const options = {
    kind: operation === 'CREATE' ? 'CreateOptions' : 'UpdateOptions',
    apiVersion: 'meta.k8s.io/v1',
    ...(dryRun ? { dryRun: ['All'] } : {}),
    ...(writer.fieldManager === undefined ? {} : { fieldManager: writer.fieldManager }),
  };
  return {
    uid: randomUUID(),
    kind: kinds,
    resource: resources,
    requestKind: kinds,
    requestResource: resources,
    ...(name === '' ? {} : { name }),
    ...(namespace === '' ? {} : { namespace }),
    operation,
    userInfo: { username: writer.user, groups: groupsOf(writer.user) },
    object: item,
    oldObject,
    dryRun,
    options,
  };
}

function groupsOf(user: string): string[] {
  const [, namespace] = /^system:serviceaccount:([^:]+):/.exec(user) ?? [];
  const own =
    namespace === undefined ? ['system:masters'] : ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
  return [...own, 'system:authenticated'];
}
