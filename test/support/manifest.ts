import { readFile } from 'node:fs/promises';
import { parseAllDocuments } from 'yaml';
import { at } from './cluster/json.ts';

const MANIFEST = new URL('../../manifests/archaware-controller.yaml', import.meta.url);

/** The manifest without its Deployment: whoever applies it here runs the controller himself. */
export async function manifestWithoutDeployment(): Promise<string> {
  const documents = parseAllDocuments(await readFile(MANIFEST, 'utf8'));
  return documents
    .filter((document) => at(document.toJS(), 'kind') !== 'Deployment')
    .map(String)
    .join('---\n');
}
