import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { descriptorOf, type ImageFixture, programImage } from '../../testimg/build.ts';
import { binaries } from './spawn.ts';

/** The names of the images that the real node has from its start, without a registry. */
export const nodeImages = {
  /** Holds the namespaces of a pod; its program only waits. */
  pause: 'archaware.test/pause:1',
  /** The program of hack/cluster/tools/pod. */
  pod: 'archaware.test/pod:1',
  coredns: 'archaware.test/coredns:1',
} as const;

/**
 * An image of the program of hack/cluster/tools/pod; `says` is the platform that the image claims, if it is a false
 * one.
 */
export async function podImage(architecture: 'amd64' | 'arm64', says: string = architecture): Promise<ImageFixture> {
  const program = await readFile(join(binaries(), 'node', `pod-${architecture}`));
  return programImage({ os: 'linux', architecture: says }, program);
}

/**
 * Writes the images as an OCI image layout (image-spec, image-layout.md) into an archive, and passes its path to `use`;
 * the archive is removed afterwards.
 */
export async function withNodeImages(
  directory: string,
  architecture: 'amd64' | 'arm64',
  archive: (from: string, to: string) => Promise<unknown>,
  use: (path: string) => Promise<unknown>,
): Promise<void> {
  const pod = await podImage(architecture);
  const coredns = programImage({ os: 'linux', architecture }, await readFile(join(binaries(), 'node', 'coredns')));
  const images = { [nodeImages.pause]: pod, [nodeImages.pod]: pod, [nodeImages.coredns]: coredns };
  const layout = join(directory, 'images');
  const path = `${layout}.tar`;
  await mkdir(join(layout, 'blobs', 'sha256'), { recursive: true });
  const contents = Object.values(images).flatMap(({ blobs, manifests }) => [...blobs, ...manifests]);
  await Promise.all([
    ...contents.map(({ digest, bytes }) => writeFile(join(layout, 'blobs', digest.replace(':', '/')), bytes)),
    writeFile(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' })),
    writeFile(join(layout, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: named(images) })),
  ]);
  try {
    await archive(layout, path);
    await use(path);
  } finally {
    await Promise.all([layout, path].map((one) => rm(one, { recursive: true, force: true })));
  }
}

const named = (images: Readonly<Record<string, ImageFixture>>) =>
  Object.entries(images).map(([name, { root }]) =>
    descriptorOf(root, { annotations: { 'io.containerd.image.name': name } }),
  );
