import { type JsonObject, listAt, stringAt } from '../../kit/json.ts';
import { APP_LABEL, DEPLOYMENT } from '../../names.ts';
import type { ApiClient } from '../api-client.ts';
import { type ApiError, isForbidden } from '../errors.ts';
import { readAll } from '../list.ts';

/**
 * An installation of archaware, which only an administrator can make. Anybody who may write in a namespace can put archaware's label
 * on a Deployment or a Lease there; only an administrator can make a ClusterRoleBinding.
 */
export type Installation = {
  readonly namespace: string;
  /**
   * The service accounts there that archaware's ClusterRoleBindings name. Undefined if the user named the namespace and no binding
   * names it: then the label decides within that namespace.
   */
  readonly accounts: ReadonlySet<string> | undefined;
};

/** The result of the search. `unreadable`: these credentials may not list ClusterRoleBindings; `error` is the refusal. */
type FoundInstallations =
  | { readonly kind: 'found'; readonly installations: readonly Installation[] }
  | { readonly kind: 'unreadable'; readonly error: ApiError };

const BINDINGS = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings';
/** The query for the objects that carry archaware's label. */
export const LABELLED = `labelSelector=${encodeURIComponent(`${APP_LABEL}=${DEPLOYMENT}`)}`;

/**
 * Finds the installations by the subjects of the ClusterRoleBindings that carry archaware's label: one for each namespace, in
 * alphabetical order. `named`: the namespace of `--installation`, which is then the only one. Throws what the client throws, except
 * for a 403.
 */
export async function findInstallations(
  client: Pick<ApiClient, 'request'>,
  named: string | undefined,
  signal: AbortSignal,
): Promise<FoundInstallations> {
  const accounts = new Map<string, Set<string>>();
  try {
    const subjects = await readAll(client, `${BINDINGS}?${LABELLED}`, (object) => listAt(object, 'subjects'), signal);
    for (const { namespace, account } of subjects.flat().flatMap(readSubject)) {
      accounts.set(namespace, (accounts.get(namespace) ?? new Set()).add(account));
    }
  } catch (error) {
    if (!isForbidden(error)) throw error;
    if (named === undefined) return { kind: 'unreadable', error };
  }
  const namespaces = named === undefined ? [...accounts.keys()].sort() : [named];
  return {
    kind: 'found',
    installations: namespaces.map((namespace) => ({ namespace, accounts: accounts.get(namespace) })),
  };
}

function readSubject(subject: JsonObject): { namespace: string; account: string }[] {
  const namespace = stringAt(subject, 'namespace') ?? '';
  const account = stringAt(subject, 'name') ?? '';
  return stringAt(subject, 'kind') === 'ServiceAccount' && namespace !== '' ? [{ namespace, account }] : [];
}
