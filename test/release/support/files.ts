/** What stands in for the downloads of a release: an HTTPS server of a folder. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { createAuthority } from '../../../hack/cluster/certificates.ts';
import { registryName } from '../../../hack/cluster/node-config.ts';
import { freePorts } from '../../../hack/cluster/ports.ts';

export type Files = {
  /** https://registry.test:PORT */
  readonly url: string;
  /** The certificate of its authority, PEM. */
  readonly authority: string;
  /** Serves the files of a folder below a path from now on. */
  offer(path: string, folder: string): void;
  stop(): Promise<void>;
};

/** Starts it on a free port. It serves files whose names have no slash. */
export async function startFiles(): Promise<Files> {
  const [port = 0] = await freePorts(1);
  const authority = createAuthority(`archaware test authority of files at ${port}`);
  const { certificate, key } = authority.issue('files', ['127.0.0.1', registryName]);
  const folders = new Map<string, string>();
  const server = createServer({ cert: certificate, key }, (request, response) => {
    const [, path = '', name = ''] = /^(.*)\/([\w.-]+)$/.exec(request.url ?? '') ?? [];
    const folder = folders.get(path);
    const contents = folder === undefined ? Promise.reject(new Error('no such folder')) : readFile(join(folder, name));
    contents.then(
      (bytes) => response.writeHead(200).end(bytes),
      () => response.writeHead(404).end(),
    );
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `https://${registryName}:${port}`,
    authority: authority.certificate,
    offer: (path, folder) => void folders.set(path, folder),
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
