import { setTimeout as delay } from 'node:timers/promises';
import { expectSuccess, type Request } from './client.ts';
import type { Etcd, EtcdKey } from './etcd.ts';
import { at } from './json.ts';
import { hasMutatingPolicies } from './spawn.ts';
import { waitFor } from './wait.ts';

/** The contents of a fresh control plane: by key the value, in base64, and the revision that it was read or written at. */
type Contents = Map<string, { readonly value: string; readonly revision: string }>;

/** Brings a control plane back to its first state. */
export type Memory = {
  /**
   * Deletes everything that was created since, and writes back what was changed or deleted. Resolves when nothing else is left,
   * and no deleted policy holds any longer. Throws if something comes back for ever.
   */
  restore(): Promise<void>;
};

/** Objects that the API server renews by itself, and Events, which the components write about deleted objects. */
const PASSING = /^\/registry\/(masterleases|leases\/kube-system|events)\//;
/** The accounts of the controller manager's controllers, which it creates when it begins to use them. */
const ITS_OWN = /^\/registry\/serviceaccounts\/kube-system\//;
/** The controller manager has begun when these are there. */
const NEEDED = ['default', 'kube-node-lease', 'kube-public', 'kube-system'].flatMap((namespace) => [
  `/registry/serviceaccounts/${namespace}/default`,
  `/registry/configmaps/${namespace}/kube-root-ca.crt`,
]);

/**
 * The order of deletion, so that no component creates a deleted object again: first webhooks and policies, which may refuse or change
 * writes, then namespaces, so that nothing is created in them, then objects whose controllers create others.
 */
const ORDER = [
  /^\/registry\/((mutating|validating)webhookconfigurations|(mutating|validating)admissionpolic)/,
  /^\/registry\/namespaces\//,
  /^\/registry\/(cronjobs|jobs|deployments|statefulsets|daemonsets)\//,
  /^\/registry\/replicasets\//,
];

const QUIET_MS = 500;
const PASSES = 100;

/** Waits until the API server and the controller manager of a fresh control plane have created what they need, and reads all of it. */
export async function rememberContents(etcd: Etcd, request: Request): Promise<Memory> {
  const contents = await readContents(etcd, await settled(etcd));
  return { restore: () => restore(etcd, request, contents) };
}

/** The keys, once they have stayed the same for a while. */
function settled(etcd: Etcd): Promise<readonly EtcdKey[]> {
  let last = '';
  let since = performance.now();
  const isQuiet = async () => {
    const keys = (await etcd.keys()).filter(({ key }) => !PASSING.test(key));
    const names = keys.map(({ key }) => key);
    if (names.join() !== last) since = performance.now();
    last = names.join();
    return NEEDED.every((key) => names.includes(key)) && performance.now() - since > QUIET_MS && keys;
  };
  return waitFor('the control plane to have created what it needs', isQuiet, 60_000);
}

async function readContents(etcd: Etcd, keys: readonly EtcdKey[]): Promise<Contents> {
  const contents: Contents = new Map();
  await sideBySide(keys, async ({ key, revision }) => {
    contents.set(key, { value: await etcd.value(key), revision });
  });
  return contents;
}

async function restore(etcd: Etcd, request: Request, contents: Contents): Promise<void> {
  let hadPolicies = false;
  let quiet = 0;
  for (let pass = 0; quiet < 2; pass++) {
    const keys = await etcd.keys();
    const isSurplus = ({ key }: EtcdKey) =>
      !contents.has(key) && !ITS_OWN.test(key) && (pass === 0 || !PASSING.test(key));
    const surplus = keys.filter(isSurplus);
    const changed = await changedOf(etcd, keys, contents);
    if (pass > PASSES)
      throw new Error(`these keep changing: ${[...surplus.map(({ key }) => key), ...changed].join(', ')}`);
    hadPolicies ||= surplus.some(({ key }) => key.includes('admissionpolic'));
    quiet = surplus.length + changed.length === 0 ? quiet + 1 : 0;
    for (const group of inOrder(surplus)) await sideBySide(group, ({ key }) => etcd.remove(key));
    await sideBySide(changed, (key) => etcd.put(key, contents.get(key)?.value ?? ''));
    await delay(100);
  }
  if (hadPolicies) await policiesAreRead(request);
}

/** The keys that are gone, or whose value is no longer the first one. */
async function changedOf(etcd: Etcd, keys: readonly EtcdKey[], contents: Contents): Promise<string[]> {
  const present = new Map(keys.map(({ key, revision }) => [key, revision]));
  const changed: string[] = [];
  await sideBySide([...contents], async ([key, first]) => {
    const revision = present.get(key);
    if (revision === first.revision) return;
    if (revision !== undefined && (await etcd.value(key)) === first.value) contents.set(key, { ...first, revision });
    else changed.push(key);
  });
  return changed;
}

function inOrder(keys: readonly EtcdKey[]): readonly (readonly EtcdKey[])[] {
  const groups: EtcdKey[][] = [...ORDER.map(() => []), []];
  for (const each of keys) {
    const rank = ORDER.findIndex((pattern) => pattern.test(each.key));
    groups[rank === -1 ? ORDER.length : rank]?.push(each);
  }
  return groups;
}

async function sideBySide<T>(all: readonly T[], act: (each: T) => Promise<void>): Promise<void> {
  const left = [...all];
  const worker = async () => {
    for (let each = left.shift(); each !== undefined; each = left.shift()) await act(each);
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}

const LAST = 'archaware-last-policy';
const REGISTRATION = '/apis/admissionregistration.k8s.io/v1';

/**
 * Waits until the deleted policies hold no longer. The API server reads policies about once a second, so it has forgotten them when a
 * policy that was created after their deletion holds.
 */
async function policiesAreRead(request: Request): Promise<void> {
  const kinds = hasMutatingPolicies() ? ['Validating', 'Mutating'] : ['Validating'];
  await Promise.all(kinds.map((kind) => policyHolds(request, kind)));
}

async function policyHolds(request: Request, kind: string): Promise<void> {
  const name = `${LAST}-${kind.toLowerCase()}`;
  const mutations = [
    { patchType: 'ApplyConfiguration', applyConfiguration: { expression: 'Object{data: {"read": "yes"}}' } },
  ];
  const spec = {
    matchConstraints: {
      resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }],
    },
    matchConditions: [{ name: 'name', expression: `object.metadata.name == '${name}'` }],
    ...(kind === 'Mutating'
      ? { mutations, reinvocationPolicy: 'Never' }
      : { validations: [{ expression: 'false', message: 'read' }] }),
  };
  const base = `${REGISTRATION}/${kind.toLowerCase()}admissionpolic`;
  const binding = { policyName: name, ...(kind === 'Mutating' ? {} : { validationActions: ['Deny'] }) };
  const created = [
    [`${base}ies`, { kind: `${kind}AdmissionPolicy`, spec }],
    [`${base}ybindings`, { kind: `${kind}AdmissionPolicyBinding`, spec: binding }],
  ] as const;
  for (const [path, object] of created) {
    const body = { apiVersion: 'admissionregistration.k8s.io/v1', metadata: { name }, ...object };
    expectSuccess(path, await request('POST', path, body));
  }
  const tried = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } };
  await waitFor(`the API server to read ${kind} policies`, async () => {
    const { status, body } = await request('POST', '/api/v1/namespaces/default/configmaps?dryRun=All', tried);
    return status === 422 || at(body, 'data', 'read') === 'yes';
  });
  for (const [path] of created) expectSuccess(path, await request('DELETE', `${path}/${name}`));
}
