/** Overlays of one's own, made and applied by the blocks of the documents. */
import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import type { RealWorld } from './real-world.ts';

const OVERLAYS = new URL('../../../manifests/kustomize/overlays/', import.meta.url);

export type Own = {
  /** One of manifests/kustomize/overlays. */
  readonly overlay: string;
  /** Of manifests/kustomize/components, on top of it. */
  readonly components?: readonly string[];
  /** Keys that differ from the overlay's config.yaml. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** More lines of kustomization.yaml. */
  readonly lines?: readonly string[];
};

const APPLY = `kubectl apply -k mine
kubectl -n archaware rollout status deployment/archaware-controller --timeout=2m
`;

/** Applies it as docs/install.md says, by the block that begins an overlay, and waits until the replicas are Ready. */
export const applyOverlay = (real: RealWorld, own: Own): Promise<void> => overlayBlock(real, own, {});

/** The same without the commands that apply it. */
export const writeOverlay = (real: RealWorld, own: Own): Promise<void> => overlayBlock(real, own, { [APPLY]: '' });

async function overlayBlock(real: RealWorld, own: Own, instead: Readonly<Record<string, string>>): Promise<void> {
  const { overlay, components = [], lines = [] } = own;
  const { repository, digest } = await real.image();
  const paths = components.map((name) => `../manifests/kustomize/components/${name}`);
  const more = [...(paths.length > 0 ? [`components: [${paths.join(', ')}]`] : []), ...lines];
  await real.block('docs/install.md', 'config validate mine/config.yaml', {
    'overlays/taints]': [`overlays/${overlay}]`, ...more].join('\n'),
    'newName: registry.example.com/you/archaware-controller, newTag: 0.2.0': `newName: ${repository}, digest: "${digest}"`,
    [await documentedConfig()]: await configOf(real, own),
    ...instead,
  });
}

/** The config.yaml that the block of docs/install.md writes. */
async function documentedConfig(): Promise<string> {
  const document = await readFile(new URL('../../../docs/install.md', import.meta.url), 'utf8');
  const [, found = ''] = /cat > mine\/config.yaml <<'YAML'\n([\s\S]*?)YAML\n/.exec(document) ?? [];
  return found;
}

/** The overlay's configuration, with the keys that differ, and the registry of the test. */
async function configOf({ world }: RealWorld, { overlay, config = {} }: Own): Promise<string> {
  const shipped = parse(await readFile(new URL(`${overlay}/config.yaml`, OVERLAYS), 'utf8'));
  const all = { ...shipped, registries: { insecure: [world.registry.nodeHost] }, ...config };
  // A line for each key, as `configurationEdit` wants it.
  const lines = Object.entries(all).map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`);
  return lines.join('');
}

/** Uninstalls it as docs/operating.md says. */
export async function uninstallOverlay(real: RealWorld): Promise<void> {
  await real.block('docs/operating.md', 'main.js clean --dry-run', {
    'clean --dry-run': 'clean --dry-run --config mine/config.yaml',
  });
  await real.block('docs/operating.md', 'main.js clean --yes', {
    'clean --yes': 'clean --yes --config mine/config.yaml',
    '-f manifests/webhook.yaml -f manifests/archaware-controller.yaml': '-k mine',
  });
}
