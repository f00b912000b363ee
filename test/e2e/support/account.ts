import type { Client } from '../../../hack/cluster/client.ts';
import { at } from '../../../hack/cluster/json.ts';
import { connect } from '../../contract/client.ts';
import type { LiveWorld } from './world.ts';

/** A client with the rights of archaware's service account, which does what archaware never does. */
export const connectAsAccount = ({ kubeconfig }: LiveWorld): Promise<Client> => connect(kubeconfig);

/** One operation of a JSON Patch. */
type Operation = Readonly<Record<string, unknown>>;

/** Something that the account could try: the path of the object, and what it would write there. */
export type Attempt = readonly [title: string, path: string, patch: readonly Operation[]];

/** Attempts at one object: title and operations of each. */
export const on = (
  path: string,
  ...rows: readonly (readonly [title: string, ...patch: readonly Operation[]])[]
): readonly Attempt[] => rows.map(([title, ...patch]) => [title, path, patch]);
export const add = (path: string, value: unknown): Operation => ({ op: 'add', path, value });
export const replace = (path: string, value: unknown): Operation => ({ op: 'replace', path, value });
export const remove = (path: string): Operation => ({ op: 'remove', path });
/** A name as a part of a JSON pointer. */
export const part = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');

const SUBRESOURCES: ReadonlySet<string> = new Set(['eviction', 'binding']);

/** Asks the API server whether the controller's account has a right: `VERB RESOURCE[.GROUP][/NAME or subresource] [in NAMESPACE]`. */
export async function mayAccount(world: Pick<LiveWorld, 'cluster'>, right: string): Promise<boolean> {
  const [verb, what = '', , namespace = ''] = right.split(' ');
  const [, resource = '', group = '', part = ''] = /^([a-z]+)(?:[.]([a-z0-9.]+))?(?:\/(.*))?$/.exec(what) ?? [];
  const of = SUBRESOURCES.has(part) ? { subresource: part } : { name: part };
  const user = 'system:serviceaccount:archaware:archaware-controller';
  const review = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user, resourceAttributes: { verb, resource, group, namespace, ...of } },
  };
  const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
  return at((await world.cluster.request('POST', path, review)).body, 'status', 'allowed') === true;
}
