/** A registry of several projects, some of which do not work, as behind a gateway or in a proxy cache. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json';
const CONFIG_TYPE = 'application/vnd.oci.image.config.v1+json';

/** What is wrong with a project: the name of the project. Each other project has every image, for amd64 alone. */
export const BROKEN = {
  'bad-gateway': (_method: string, response: ServerResponse) => response.writeHead(502).end(),
  overloaded: (_method: string, response: ServerResponse) => response.writeHead(503, { 'retry-after': '600' }).end(),
  limited: (_method: string, response: ServerResponse) => response.writeHead(429, { 'retry-after': '600' }).end(),
  silent: () => undefined,
  headless: (method: string, response: ServerResponse) =>
    method === 'HEAD' ? response.writeHead(200, { 'content-type': MANIFEST_TYPE }).end() : false,
  'no-login': (_method: string, response: ServerResponse, host: string) =>
    response.writeHead(401, { 'www-authenticate': `Bearer realm="http://${host}/token",service="test"` }).end(),
} as const;
export type Broken = keyof typeof BROKEN;

export type BrokenProjects = {
  /** 127.0.0.1:PORT */
  readonly host: string;
  /** `GET local/app`: the requests for manifests, in order. */
  requests(): readonly string[];
  stop(): Promise<void>;
};

/** Starts the registry. Stop it, or the process does not end. */
export async function startBrokenProjects(): Promise<BrokenProjects> {
  const config = JSON.stringify({ os: 'linux', architecture: 'amd64', rootfs: { type: 'layers', diff_ids: [] } });
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType: MANIFEST_TYPE,
    config: { mediaType: CONFIG_TYPE, digest: digestOf(config), size: config.length },
    layers: [],
  });
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const { method = '', url = '' } = request;
    if (url.startsWith('/token')) return void response.writeHead(500).end();
    const [, repository = '', kind] = /^\/v2\/(.+)\/(manifests|blobs)\//.exec(url) ?? [];
    if (kind === 'manifests') requests.push(`${method} ${repository}`);
    const project = repository.split('/', 1)[0] ?? '';
    if (isBroken(project) && BROKEN[project](method, response, host) !== false) return;
    const body = kind === 'blobs' ? config : manifest;
    const type = kind === 'blobs' ? 'application/octet-stream' : MANIFEST_TYPE;
    const headers = { 'content-type': type, 'docker-content-digest': digestOf(body), 'content-length': body.length };
    response.writeHead(kind === undefined ? 404 : 200, headers).end(method === 'HEAD' ? undefined : body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const host = `127.0.0.1:${port}`;
  return {
    host,
    requests: () => [...requests],
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

function isBroken(project: string): project is Broken {
  return Object.hasOwn(BROKEN, project);
}

function digestOf(body: string): string {
  return `sha256:${createHash('sha256').update(body).digest('hex')}`;
}
