import { stringify } from 'yaml';
import { at, listAt } from '../../../hack/cluster/json.ts';
import { freePorts } from '../../../hack/cluster/ports.ts';
import { kustomize, type ManifestObject } from '../../../hack/manifests/kustomize.ts';

/** An overlay of manifests/kustomize, for a controller that runs on this machine. */
export type Overlay = {
  /** Its objects, with an address of this machine in the webhooks; without the Deployment, and what needs cert-manager. */
  readonly manifest: string;
  readonly objects: readonly ManifestObject[];
  /** The content of config.yaml. */
  readonly config: string;
  /** Says where the webhook is served. */
  readonly flags: readonly string[];
};

export async function buildOverlay(name: string): Promise<Overlay> {
  const all = await kustomize(new URL(`../../../manifests/kustomize/overlays/${name}/`, import.meta.url));
  const [port = 0] = await freePorts(1);
  const url = `https://127.0.0.1:${port}/mutate`;
  const objects = all
    .filter(({ kind, apiVersion }) => kind !== 'Deployment' && !apiVersion.startsWith('cert-manager.io/'))
    .map((object) => (object.kind === 'MutatingWebhookConfiguration' ? calling(object, url) : object));
  const configuration = objects.find(({ kind, metadata }) => `${kind} ${metadata.name}` === CONFIGURATION);
  return {
    objects,
    manifest: objects.map((object) => stringify(object)).join('---\n'),
    config: String(at(configuration, 'data', 'config.yaml')),
    // The cache is in a directory of the container.
    flags: ['--webhook.address', `127.0.0.1:${port}`, '--images.cache.file', ''],
  };
}

const CONFIGURATION = 'ConfigMap archaware-controller';

function calling(configuration: ManifestObject, url: string): ManifestObject {
  const webhooks = listAt(configuration, 'webhooks').map((webhook) => ({ ...Object(webhook), clientConfig: { url } }));
  return { ...configuration, webhooks };
}
