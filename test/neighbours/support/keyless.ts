import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { basename, join } from 'node:path';
import { emptyDirectory } from '../../../hack/cluster/directory.ts';
import { freePorts } from '../../../hack/cluster/ports.ts';
import { binaries } from '../../../hack/cluster/spawn.ts';
import { attempt } from '../../../hack/programs.ts';

/** A statement about an image that a workflow signs. cosign's own signature is one, of the type `SIGNATURE`. */
export interface Attestation {
  /** The image to which it is attached, by digest. */
  readonly image: string;
  /** The workflow, and who vouches for it. */
  readonly identity: string;
  readonly issuer: string;
  /** The digest of which it speaks; default: that of the image. */
  readonly subject?: string;
  readonly predicateType: string;
  readonly predicate: unknown;
}

/** The predicate types of a release: what `cosign sign` writes, and SLSA's provenance. */
export const SIGNATURE = 'https://sigstore.dev/cosign/sign/v1';
export const PROVENANCE = 'https://slsa.dev/provenance/v1';

/** What trusts the signatures of one `signKeyless`: in the place of the public Sigstore's TUF repository. */
export interface Trust {
  /** The URL of the TUF repository. */
  readonly mirror: string;
  /** The path of its root.json. */
  readonly root: string;
  /** The path of what `cosign verify --trusted-root` reads. */
  readonly trustedRoot: string;
  stop(): Promise<void>;
}

/** Signs without a key, as in GitHub Actions, with an authority of its own (`build-image-policies.sh`). Certificates last ten minutes. */
export async function signKeyless(attestations: readonly Attestation[]): Promise<Trust> {
  const directory = await emptyDirectory('keyless');
  try {
    await sign(directory.path, attestations);
    const repository = join(directory.path, 'tuf');
    const [port = 0] = await freePorts(1);
    const server = createServer(async ({ url = '/' }, response) => {
      const folder = url.startsWith('/targets/') ? join(repository, 'targets') : repository;
      const file = await readFile(join(folder, basename(url))).catch(() => undefined);
      response.writeHead(file === undefined ? 404 : 200).end(file);
    }).listen(port, '127.0.0.1');
    await once(server, 'listening');
    return {
      mirror: `http://127.0.0.1:${port}`,
      root: join(repository, 'root.json'),
      trustedRoot: join(directory.path, 'trusted_root.json'),
      async stop() {
        server.closeAllConnections();
        server.close();
        await directory.remove();
      },
    };
  } catch (error) {
    await directory.remove();
    throw error;
  }
}

async function sign(directory: string, attestations: readonly Attestation[]): Promise<void> {
  const input = JSON.stringify({ directory, attestations });
  const { code, stderr } = await attempt(join(binaries(), 'keyless'), [], { input });
  if (code !== 0) throw new Error(`keyless: ${stderr.trim()}`);
}
