/** The OCI distribution API over a store: what a request is answered when nothing goes wrong. */
import type { Auth } from './auth.ts';
import { jsonReply, type Reply, refusalReply } from './reply.ts';
import type { Store } from './store.ts';

export type RegistryRequest = {
  readonly method: string;
  readonly url: URL;
  readonly header: (name: string) => string | undefined;
  readonly body: Buffer;
};

export type RouteOptions = {
  readonly store: Store;
  readonly auth: Auth;
  /** The URL of the token service; undefined for Basic challenges. */
  readonly realm: string | undefined;
  readonly digestHeader: boolean;
  readonly headSupported: boolean;
};

const NOT_FOUND = { status: 404, code: 'NOT_FOUND', message: 'nothing is here' };
const ROUTE = /^\/v2\/(.+)\/(manifests|blobs|tags)\/(.+)$/;

/** The function that answers; it keeps uploads that have begun. */
export function createRoutes(options: RouteOptions): (request: RegistryRequest) => Reply {
  const { store, auth } = options;
  const uploads = new Map<string, Buffer>();
  let begun = 0;

  function refuse(request: RegistryRequest, repository: string | undefined): Reply | undefined {
    const action = request.method === 'GET' || request.method === 'HEAD' ? 'pull' : 'push';
    const denial = auth.judge(request.header('authorization'), repository, action);
    if (denial === undefined) return undefined;
    if (denial.challenge === undefined) {
      return refusalReply({ status: denial.status, code: 'DENIED', message: 'requested access is denied' });
    }
    const challenge =
      options.realm === undefined
        ? 'Basic realm="test-registry"'
        : `Bearer realm="${options.realm}",${denial.challenge}`;
    const headers = { 'www-authenticate': challenge };
    return refusalReply({ status: denial.status, code: 'UNAUTHORIZED', message: 'authentication required' }, headers);
  }

  function manifest(request: RegistryRequest, name: string, reference: string): Reply {
    if (request.method === 'PUT') {
      const stored = store.putManifest(name, reference, request.header('content-type') ?? '', request.body);
      if (typeof stored !== 'string') return refusalReply(stored);
      const location = `/v2/${name}/manifests/${stored}`;
      return { status: 201, headers: { location, 'docker-content-digest': stored } };
    }
    const found = store.negotiate(name, reference, request.header('accept') ?? '');
    if ('status' in found) return refusalReply(found);
    const etag = `"${found.digest}"`;
    if ([etag, found.digest].includes(request.header('if-none-match') ?? '')) return { status: 304, headers: { etag } };
    const headers = { 'content-type': found.mediaType, etag };
    return { status: 200, headers: { ...headers, ...digestHeader(found.digest) }, body: found.bytes };
  }

  function digestHeader(digest: string): Record<string, string> {
    return options.digestHeader ? { 'docker-content-digest': digest } : {};
  }

  function upload(request: RegistryRequest, name: string, id: string): Reply {
    const digest = request.url.searchParams.get('digest');
    if (request.method === 'POST' && digest === null) {
      begun += 1;
      const key = `upload-${begun}`;
      uploads.set(key, Buffer.alloc(0));
      // A state that is part of the location, as distribution's is: a client must add to the query, not replace it.
      return { status: 202, headers: { location: `/v2/${name}/blobs/uploads/${key}?_state=${begun}` } };
    }
    const sofar = request.method === 'POST' ? Buffer.alloc(0) : uploads.get(id);
    if (sofar === undefined) {
      return refusalReply({ status: 404, code: 'BLOB_UPLOAD_UNKNOWN', message: 'upload unknown' });
    }
    const bytes = Buffer.concat([sofar, request.body]);
    if (request.method === 'PATCH') {
      uploads.set(id, bytes);
      return { status: 202, headers: { location: `/v2/${name}/blobs/uploads/${id}?_state=1` } };
    }
    uploads.delete(id);
    const refusal = store.putBlob(name, digest ?? '', bytes);
    if (refusal) return refusalReply(refusal);
    return { status: 201, headers: { location: `/v2/${name}/blobs/${digest}`, 'docker-content-digest': digest ?? '' } };
  }

  function token(request: RegistryRequest): Reply {
    const answer =
      request.method === 'POST'
        ? auth.refresh(new URLSearchParams(request.body.toString('utf8')))
        : auth.token(request.header('authorization'), request.url.searchParams);
    return jsonReply(answer.status, answer.body);
  }

  return (request) => {
    const path = decodeURIComponent(request.url.pathname);
    if (path === '/token') return token(request);
    if (path === '/v2/' || path === '/v2') return refuse(request, undefined) ?? jsonReply(200, {});
    const [, name, kind, rest] = ROUTE.exec(path.replace(/\/uploads\/$/, '/uploads/new')) ?? [];
    if (name === undefined || rest === undefined) return refusalReply(NOT_FOUND);
    const refused = refuse(request, name);
    if (refused) return refused;
    if (request.method === 'HEAD' && kind === 'manifests' && !options.headSupported) return { status: 405 };
    if (kind === 'manifests') return manifest(request, name, rest);
    if (kind === 'tags') {
      const tags = store.tags(name);
      return tags ? jsonReply(200, { name, tags }) : refusalReply({ ...NOT_FOUND, code: 'NAME_UNKNOWN' });
    }
    if (rest.startsWith('uploads/')) return upload(request, name, rest.slice('uploads/'.length));
    const blob = store.blob(name, rest);
    if (blob === undefined) return refusalReply({ ...NOT_FOUND, code: 'BLOB_UNKNOWN' });
    const headers = { 'content-type': 'application/octet-stream', ...digestHeader(rest) };
    return { status: 200, headers, body: blob };
  };
}
