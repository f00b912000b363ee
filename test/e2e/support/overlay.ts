import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { stringify } from 'yaml';
import { at, listAt } from '../../../hack/cluster/json.ts';
import { freePorts } from '../../../hack/cluster/ports.ts';
import { kustomize, type ManifestObject } from '../../../hack/manifests/kustomize.ts';

const KUSTOMIZE = new URL('../../../manifests/kustomize/', import.meta.url);

/** An overlay of manifests/kustomize, for a controller that runs on this machine. */
export type Overlay = {
  /** Its objects, with an address of this machine in the webhooks; without the Deployment, and what needs cert-manager. */
  readonly manifest: string;
  readonly objects: readonly ManifestObject[];
  /** What it would run. */
  readonly deployment: ManifestObject | undefined;
  /** The content of config.yaml. */
  readonly config: string;
  /** Says where the webhook is served. */
  readonly flags: readonly string[];
};

/** `component`: one of manifests/kustomize/components that comes on top. */
export async function buildOverlay(name: string, component?: string): Promise<Overlay> {
  const all = await withComponent(name, component);
  const [port = 0] = await freePorts(1);
  const url = `https://127.0.0.1:${port}`;
  const objects = all
    .filter(({ kind, apiVersion }) => kind !== 'Deployment' && !apiVersion.startsWith('cert-manager.io/'))
    .map((object) => (object.kind === 'MutatingWebhookConfiguration' ? calling(object, url) : object));
  const configuration = objects.find(({ kind, metadata }) => `${kind} ${metadata.name}` === CONFIGURATION);
  return {
    objects,
    deployment: all.find(({ kind }) => kind === 'Deployment'),
    manifest: objects.map((object) => stringify(object)).join('---\n'),
    config: String(at(configuration, 'data', 'config.yaml')),
    flags: ['--webhook.address', `127.0.0.1:${port}`],
  };
}

/** The objects of an overlay, with a component on top. */
export async function withComponent(name: string, component?: string): Promise<ManifestObject[]> {
  if (component === undefined) return kustomize(new URL(`overlays/${name}/`, KUSTOMIZE));
  // kustomize takes relative paths alone.
  const directory = await mkdtemp(fileURLToPath(new URL('with-', KUSTOMIZE)));
  try {
    const lines = [`resources: [../overlays/${name}]`, `components: [../components/${component}]`];
    await writeFile(join(directory, 'kustomization.yaml'), `${lines.join('\n')}\n`);
    return await kustomize(pathToFileURL(`${directory}/`));
  } finally {
    await rm(directory, { recursive: true });
  }
}

const CONFIGURATION = 'ConfigMap archaware-controller';

function calling(configuration: ManifestObject, url: string): ManifestObject {
  const webhooks = listAt(configuration, 'webhooks').map((webhook) => ({ ...Object(webhook), clientConfig: { url } }));
  return { ...configuration, webhooks };
}
