/** What a leader publishes for the policies that place objects in their author's own request. */
import { readFile } from 'node:fs/promises';
import { knownImagesPath } from '../../../src/names.ts';
import { knownImages, readAnswers } from '../../../src/placement/publish/known-images.ts';
import { settings } from '../../placement/objects.ts';
import { object } from '../../simulator/json.ts';
import type { LiveWorld } from './world.ts';

const MANIFEST = new URL('../../../manifests/publish.yaml', import.meta.url);
export const KNOWN = knownImagesPath('archaware');

export const BOTH = 'r.example/both:1';
export const AMD = 'r.example/amd:1';
export const ARM = 'r.example/arm:1';
export const NEW = 'r.example/new:1';
/** What is published of them; nothing of `NEW`. */
export const ANSWERS: ReadonlyMap<string, string> = new Map([
  [BOTH, 'amd64,arm64'],
  [AMD, 'amd64'],
  [ARM, 'arm64'],
]);

/** A toleration of archaware, as its policies write it. */
export const own = (value: string) => ({ key: 'supported-arch', operator: 'Equal', value, effect: 'NoSchedule' });

/** A new kind is served, and known to the policies, after some seconds. */
export const installKnown = async ({ cluster }: LiveWorld) => cluster.apply(await readFile(MANIFEST, 'utf8'));

/** Publishes as a leader would. */
export async function publish(
  { cluster, eventually }: LiveWorld,
  answers: ReadonlyMap<string, string>,
  { excluded = [], isForDaemonSets = false, ...flags }: Publication = {},
): Promise<void> {
  const labels = { 'app.kubernetes.io/name': 'archaware-controller' };
  const typed = { apiVersion: 'archaware.dev/v1', kind: 'KnownImages', metadata: { name: 'known', labels } };
  const whole = { ...typed, ...knownImages(answers, settings(flags), excluded, isForDaemonSets) };
  await eventually('the kind to be served', async () => {
    await cluster.request('DELETE', KNOWN);
    return (await cluster.request('POST', KNOWN.replace(/\/known$/, ''), whole)).status === 201;
  });
}

type Publication = NonNullable<Parameters<typeof settings>[0]> & {
  readonly excluded?: readonly string[];
  readonly isForDaemonSets?: boolean;
};

/** What is published of an image; undefined for nothing. */
export async function publishedOf({ cluster }: LiveWorld, image: string): Promise<string | undefined> {
  const { status, body } = await cluster.request('GET', KNOWN);
  return status === 200 ? readAnswers(object(body)).get(image) : undefined;
}
