import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { binaries } from '../cluster/spawn.ts';
import { attempt } from '../programs.ts';

/** An object in the output of kustomize. */
export type ManifestObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly [field: string]: unknown;
};

/** Returns the output of `kubectl kustomize` for a directory. Throws with its message if it fails. */
export async function kustomize(directory: URL): Promise<ManifestObject[]> {
  const { code, stdout, stderr } = await attempt(kubectl(), ['kustomize', fileURLToPath(directory)]).catch(
    (error: unknown) => {
      const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
      throw isMissing ? new Error('kubectl is missing: run hack/cluster/build.sh, or install kubectl') : error;
    },
  );
  if (code !== 0) throw new Error(`kubectl kustomize ${directory.pathname}: ${stderr.trim()}`);
  return parseAllDocuments(stdout).map((document) => {
    const object: unknown = document.toJS();
    if (!isManifestObject(object))
      throw new Error(`kubectl kustomize ${directory.pathname}: a document is not an object`);
    return object;
  });
}

/** The kubectl of build.sh, else the one on the PATH: machines that only check generated files have built nothing. */
function kubectl(): string {
  const built = join(binaries(), 'kubectl');
  return existsSync(built) ? built : 'kubectl';
}

function isManifestObject(value: unknown): value is ManifestObject {
  if (typeof value !== 'object' || value === null || !('metadata' in value)) return false;
  const { metadata } = value;
  return 'apiVersion' in value && 'kind' in value && typeof metadata === 'object' && metadata !== null;
}
