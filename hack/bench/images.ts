import { image, multiPlatform } from '../../testimg/build.ts';
import type { Fixture } from '../../testimg/fixtures.ts';
import { pushFixtures } from '../../testimg/push.ts';
import type { Cluster } from '../cluster/cluster.ts';
import type { Registry } from '../cluster/registry.ts';

/** Where the whole benchmark runs: a real control plane, and a real registry with the images. */
export type World = {
  readonly cluster: Cluster;
  readonly registry: Registry;
  /** References. */
  readonly images: readonly string[];
};

const REPOSITORY = 'bench';
/** The number of images of the pods. */
export const IMAGES = 20;
/** The number of single-platform images among them: each costs two requests instead of one. */
export const SINGLES = 5;

/** Pushes the images, and returns their references. */
export async function pushImages(registry: Registry): Promise<string[]> {
  await pushFixtures({ registry: registry.host, repository: REPOSITORY, insecure: true, fixtures: fixtures() });
  return Array.from({ length: IMAGES }, (_, index) => `${registry.host}/${REPOSITORY}:t${index}`);
}

function fixtures(): Fixture[] {
  const platforms = ['amd64', 'arm64'].map((architecture) => ({ os: 'linux', architecture }));
  const amd64 = { os: 'linux', architecture: 'amd64' };
  return Array.from({ length: IMAGES }, (_, index) => ({
    tag: `t${index}`,
    description: 'for the benchmark',
    build: () =>
      index < SINGLES ? image(amd64, { note: `${index}` }) : multiPlatform(platforms, { note: `${index}` }),
    expected: { platforms: [] },
  }));
}
