import { readFile } from 'node:fs/promises';
import { parseAllDocuments, stringify } from 'yaml';
import { at, type JsonObject, objects } from './cluster/json.ts';

const MANIFEST = new URL('../../manifests/archaware-controller.yaml', import.meta.url);
const WEBHOOK_MANIFEST = new URL('../../manifests/webhook.yaml', import.meta.url);

/** The manifest without its Deployment: whoever applies it here runs the controller himself. */
export async function manifestWithoutDeployment(): Promise<string> {
  const documents = parseAllDocuments(await readFile(MANIFEST, 'utf8'));
  return documents
    .filter((document) => at(document.toJS(), 'kind') !== 'Deployment')
    .map(String)
    .join('---\n');
}

/**
 * The manifest of the webhook with an address of this machine in the place of the Service. `changed`: what each webhook
 * of another configuration has of its own.
 */
export async function webhookManifest(url: string, changed: JsonObject = {}): Promise<string> {
  const documents = parseAllDocuments(await readFile(WEBHOOK_MANIFEST, 'utf8')).map((document) => document.toJS());
  const here = documents.map((object) =>
    at(object, 'kind') === 'MutatingWebhookConfiguration'
      ? {
          ...object,
          webhooks: objects(at(object, 'webhooks')).map((webhook) => ({
            ...webhook,
            clientConfig: { url },
            ...changed,
          })),
        }
      : object,
  );
  return here.map((object) => stringify(object)).join('---\n');
}
