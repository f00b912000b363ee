import type { JsonObject } from '../json.ts';
import { type Address, findResource, RESOURCES } from '../objects/resources.ts';
import { jsonOf } from '../objects/store.ts';
import type { Call, Reply } from './server.ts';

/** An object as the answer. */
export const reply = (status: number, body: JsonObject): Reply => ({ status, json: jsonOf(body) });

/** The verb that RBAC knows the call by. */
export function verbOf({ method, url }: Call, name: string): string {
  switch (method) {
    case 'GET':
      return name !== '' ? 'get' : url.searchParams.get('watch') ? 'watch' : 'list';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    default:
      return 'delete';
  }
}

/** `/api/v1/…` or `/apis/GROUP/VERSION/…` as an address; undefined for what the table does not have. */
export function route(pathname: string): Address | undefined {
  const segments = pathname.split('/').slice(1).map(decodeURIComponent);
  const core = segments[0] === 'api';
  const apiVersion = core ? segments[1] : segments.slice(1, 3).join('/');
  const rest = segments.slice(core ? 2 : 3);
  const inNamespace = rest[0] === 'namespaces' && rest.length >= 3 && rest[2] !== 'status' && rest[2] !== 'finalize';
  const [plural = '', name = '', subresource = ''] = inNamespace ? rest.slice(2) : rest;
  const resource = findResource(apiVersion ?? '', plural);
  if (!resource || resource.namespaced !== inNamespace) {
    // Every namespaced resource can be listed over all namespaces.
    if (!resource?.namespaced || name !== '') return undefined;
  }
  return { resource, namespace: inNamespace ? (rest[1] ?? '') : '', name, subresource };
}

/** Paths that are not resources: health, version, discovery. */
export function answerSimple(pathname: string, gitVersion: string): Reply {
  if (['/healthz', '/readyz', '/livez'].includes(pathname)) return { status: 200, json: 'ok' };
  if (pathname === '/version') {
    const [, major, minor] = /^v(\d+)\.(\d+)/.exec(gitVersion) ?? [];
    return reply(200, { major, minor, gitVersion, platform: 'linux/amd64' });
  }
  const group = /^\/(?:api\/(v1)|apis\/([^/]+\/[^/]+))$/.exec(pathname);
  const groupVersion = group?.[1] ?? group?.[2];
  const found = RESOURCES.filter(({ apiVersion }) => apiVersion === groupVersion);
  if (found.length === 0) return undefined;
  const resources = found.map(({ plural: name, kind, namespaced }) => ({ name, kind, namespaced, verbs: [] }));
  return reply(200, { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources });
}
