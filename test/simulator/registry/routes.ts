/** The OCI distribution API over a store: what a request is answered when nothing goes wrong. */
import type { Auth } from './auth.ts';
import { jsonReply, type Reply, refusalReply } from './reply.ts';
import type { Store } from './store.ts';

export type RegistryRequest = {
  readonly method: string;
  readonly url: URL;
  readonly header: (name: string) => string | undefined;
};

export type RouteOptions = {
  readonly store: Store;
  readonly auth: Auth;
  /** The URL of the token service; undefined for Basic challenges. */
  readonly realm: string | undefined;
};

const NOT_FOUND = { status: 404, code: 'NOT_FOUND', message: 'nothing is here' };
const ROUTE = /^\/v2\/(.+)\/(manifests|blobs|tags)\/(.+)$/;

/** The function that answers. */
export function createRoutes(options: RouteOptions): (request: RegistryRequest) => Reply {
  const { store, auth } = options;

  function refuse(request: RegistryRequest, repository: string | undefined): Reply | undefined {
    const denial = auth.judge(request.header('authorization'), repository);
    if (denial === undefined) return undefined;
    const challenge =
      options.realm === undefined
        ? 'Basic realm="test-registry"'
        : `Bearer realm="${options.realm}",${denial.challenge}`;
    const headers = { 'www-authenticate': challenge };
    return refusalReply({ status: 401, code: 'UNAUTHORIZED', message: 'authentication required' }, headers);
  }

  function manifest(request: RegistryRequest, name: string, reference: string): Reply {
    const found = store.negotiate(name, reference, request.header('accept') ?? '');
    if ('status' in found) return refusalReply(found);
    const headers = {
      'content-type': found.mediaType,
      etag: `"${found.digest}"`,
      'docker-content-digest': found.digest,
    };
    return { status: 200, headers, body: found.bytes };
  }

  return (request) => {
    const path = decodeURIComponent(request.url.pathname);
    if (path === '/token') {
      const { status, body } = auth.token(request.header('authorization'), request.url.searchParams);
      return jsonReply(status, body);
    }
    if (path === '/v2/' || path === '/v2') return refuse(request, undefined) ?? jsonReply(200, {});
    const [, name, kind, rest] = ROUTE.exec(path) ?? [];
    if (name === undefined || rest === undefined) return refusalReply(NOT_FOUND);
    const refused = refuse(request, name);
    if (refused) return refused;
    if (kind === 'manifests') return manifest(request, name, rest);
    if (kind === 'tags') {
      const tags = store.tags(name);
      return tags ? jsonReply(200, { name, tags }) : refusalReply({ ...NOT_FOUND, code: 'NAME_UNKNOWN' });
    }
    const blob = store.blob(name, rest);
    if (blob === undefined) return refusalReply({ ...NOT_FOUND, code: 'BLOB_UNKNOWN' });
    const headers = { 'content-type': 'application/octet-stream', 'docker-content-digest': rest };
    return { status: 200, headers, body: blob };
  };
}
