import { createHash } from 'node:crypto';
import { type Endpoint, repositoryUrl } from './endpoint.ts';

const known = new WeakMap<readonly Endpoint[], { readonly key: string | undefined }>();

/**
 * Returns a key for the endpoints of an image if one of them may lack some of the manifests that an index names: an answer holds only
 * for the endpoints that gave it. Undefined if each has all.
 */
export function sparseRoute(endpoints: readonly Endpoint[]): string | undefined {
  const before = known.get(endpoints);
  if (before !== undefined) return before.key;
  const key = endpoints.some(({ isSparse }) => isSparse) ? keyOf(endpoints) : undefined;
  known.set(endpoints, { key });
  return key;
}

function keyOf(endpoints: readonly Endpoint[]): string {
  const parts = endpoints.map((each) => [repositoryUrl(each), each.query, each.isSparse === true]);
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);
}
