import { at } from '../../../hack/cluster/json.ts';
import { missingForNode } from '../../../hack/cluster/node-means.ts';
import type { Registry } from '../../../hack/cluster/registry.ts';
import { type Content, content, type ImageFixture, MEDIA_TYPES } from '../../../testimg/build.ts';
import { pushFixtures } from '../../../testimg/push.ts';
import type { Harness } from '../../oci/server.ts';
import { isInstalled } from './programs.ts';
import { type LiveWorld, startWorld } from './world.ts';

/**
 * For `before`: skips, with the reason printed, where this machine cannot run a real node, or lacks one of the programs. In CI
 * that is a failure, unless ARCHAWARE_WITHOUT_NODE says why a run of CI does without.
 */
export function needsRealNode(context: Mocha.Context, ...programs: readonly string[]): void {
  const missing = [...missingForNode(), ...programs.filter((program) => !isInstalled(program))];
  if (missing.length === 0) return;
  const reason = `no real node on this machine, it lacks: ${missing.join('; ')}`;
  const without = process.env.ARCHAWARE_WITHOUT_NODE ?? '';
  if (process.env.CI !== undefined && without === '') throw new Error(reason);
  console.log(`      ${reason}`);
  context.skip();
}

/** A world with the real node alone, on which nothing is installed. */
export async function startNodeWorld() {
  const world = await startWorld({ cluster: { node: 'real' }, manifest: '', nodes: [] });
  const { node } = world.cluster;
  if (node !== undefined) return { world, node };
  await world.stop();
  throw new Error('the cluster has no node');
}

/** Pushes images under their tags, of which the registry must refuse none. */
export async function pushIndexes(
  { host }: Pick<Registry, 'host'>,
  images: readonly { readonly tag: string; readonly image: ImageFixture }[],
): Promise<void> {
  const fixtures = images.map(({ tag, image }) => ({ tag, build: () => image, refusable: 'an unusual index' }));
  const { skipped } = await pushFixtures({ registry: host, repository: 'app', insecure: true, fixtures });
  if (skipped.length > 0) throw new Error(`the registry refuses ${skipped.join()}`);
}

/** Whether archaware counts an architecture of an image; the error where its platforms cannot be looked up. */
export async function isCounted(harness: Harness, image: string, architecture: string): Promise<boolean> {
  const access = { namespace: 'default', pullSecrets: [], always: false };
  const { platforms } = await harness.resolver.resolve(image, access, new AbortController().signal);
  return platforms.some((platform) => platform.architecture === architecture);
}

/** An index with these entries. */
export const indexOf = (manifests: readonly object[]): Content =>
  content(
    MEDIA_TYPES.ociIndex,
    Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: MEDIA_TYPES.ociIndex, manifests })),
  );

/** Waits until the kubelet has pulled the images of all these pods, or has been refused; by the name of the pod. */
export async function eventuallyPulled(world: LiveWorld, namespace: string, count: number, refused: RegExp) {
  const found = new Map<string, { isPulled: boolean; message: string }>();
  await world.cluster.waitFor('the kubelet to pull, or to say why not', async () => {
    const waiting: string[] = [];
    for (const one of await world.list('Pod', namespace)) {
      const status = at(one, 'status', 'containerStatuses', 0);
      const isPulled = String(at(status, 'imageID') ?? '') !== '';
      const message = String(at(status, 'state', 'waiting', 'message') ?? '');
      const name = String(at(one, 'metadata', 'name'));
      if (isPulled || refused.test(message)) found.set(name, { isPulled, message });
      else if (!found.has(name)) waiting.push(`${name}: ${message || 'no message'}`);
    }
    if (waiting.length > 0) throw new Error(waiting.join('\n'));
    return found.size === count;
  });
  return found;
}
