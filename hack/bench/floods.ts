import { createServer } from 'node:net';
import {
  type LargePod,
  manyLabels,
  manyImages as manyLongImages,
  manyTolerations,
  templateVersion,
} from '../../test/support/large-objects.ts';
import { expectSuccess, type Request } from '../cluster/client.ts';

/** What one tenant does to delay the others. */
export type Flood = {
  readonly name: string;
  /** Whether the flood is in the namespace of the bystander. */
  readonly isNeighbour?: boolean;
  /**
   * What is measured of the bystander: the time until its pod is served, or until the Event about its missing image.
   */
  readonly measures: 'pod' | 'event';
  /** Whether its objects are large: then the controller has the memory of the manifests, and starts again when all are there. */
  readonly isLarge?: boolean;
  /** Resolves when everything was sent. */
  readonly run: (world: FloodWorld) => Promise<void>;
};

export type FloodWorld = {
  readonly request: Request;
  /** The namespace of the tenant. */
  readonly namespace: string;
  /** The host of the registry that everybody uses. */
  readonly registry: string;
  /** The host of a registry that accepts connections and never answers. */
  readonly silent: string;
};

/** The tags of the common registry from this number on are for the floods. */
export const MANY_IMAGES = 5_000;
const REFUSED = 200;
const IMAGES_OF_REFUSED = 64;
export const FLOOD_TAGS = MANY_IMAGES + REFUSED * IMAGES_OF_REFUSED;
const WRITERS = 4;

/** The floods of the findings, each as its own row. */
export const FLOODS: readonly Flood[] = [
  { name: `one pod of ${MANY_IMAGES} images at the same registry`, measures: 'pod', run: manyImages },
  {
    name: `${REFUSED} creates of ${IMAGES_OF_REFUSED} images, refused by quota`,
    measures: 'pod',
    run: (world) => refused(world, 0),
  },
  {
    name: '60 pods at a silent registry, same namespace, a registry that is new',
    isNeighbour: true,
    measures: 'pod',
    run: silentRegistry,
  },
  { name: 'one pod with 20,000 pull secrets', measures: 'pod', run: (world) => pullSecrets(world, 1, 20_000) },
  { name: `300 creates of 64 images with 300 pull secrets, refused by quota`, measures: 'pod', run: refusedSecrets },
  { name: '12 pods with 700 pull secrets', measures: 'event', run: (world) => pullSecrets(world, 12, 700) },
  { name: '500 pods of 20 missing images', measures: 'event', run: missingImages },
  {
    name: '240 pods of 10,000 tolerations',
    isLarge: true,
    measures: 'pod',
    run: (world) => large(world, 240, manyTolerations),
  },
  { name: '70 pods of 20,000 labels', isLarge: true, measures: 'pod', run: (world) => large(world, 70, manyLabels) },
  {
    name: '300 pods of 256 long images',
    isLarge: true,
    measures: 'pod',
    run: (world) => large(world, 300, manyLongImages),
  },
  { name: '4,000 versions of one template', isLarge: true, measures: 'pod', run: templateVersions },
];

async function large({ request, namespace }: FloodWorld, count: number, of: LargePod): Promise<void> {
  await eachOf(count, async (index) => {
    const { labels, spec } = of(index);
    const metadata = { name: `large-${index}`, namespace, labels };
    const object = { apiVersion: 'v1', kind: 'Pod', metadata, spec };
    expectSuccess(metadata.name, await request('POST', `/api/v1/namespaces/${namespace}/pods`, object));
  });
}

async function templateVersions({ request, namespace }: FloodWorld): Promise<void> {
  const path = `/apis/apps/v1/namespaces/${namespace}/daemonsets`;
  const template = (index: number) => {
    const { labels, spec } = templateVersion(index);
    return { metadata: { labels }, spec };
  };
  const metadata = { name: 'bomb', labels: { 'archaware.dev/ignore': 'true' } };
  const spec = { revisionHistoryLimit: 0, selector: { matchLabels: { app: 'bomb' } }, template: template(0) };
  const object = { apiVersion: 'apps/v1', kind: 'DaemonSet', metadata, spec };
  expectSuccess('the DaemonSet', await request('POST', path, object));
  for (let index = 1; index <= 4_000; index += 1) {
    const patch = [{ op: 'replace', path: '/spec/template', value: template(index) }];
    await request('PATCH', `${path}/bomb`, patch);
  }
}

async function manyImages({ request, namespace, registry }: FloodWorld): Promise<void> {
  await create(request, namespace, 'many', images(registry, 0, MANY_IMAGES));
}

async function refused(world: FloodWorld, secrets: number, count = REFUSED): Promise<void> {
  const { request, namespace, registry } = world;
  const path = `/api/v1/namespaces/${namespace}/resourcequotas`;
  const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'none' }, spec: { hard: { pods: '0' } } };
  expectSuccess('the quota', await request('POST', path, quota));
  await eachOf(count, async (index) => {
    const first = MANY_IMAGES + (index % REFUSED) * IMAGES_OF_REFUSED;
    const named = images(registry, first, IMAGES_OF_REFUSED);
    await send(request, namespace, `refused-${index}`, named, secretNames(secrets));
  });
}

async function refusedSecrets(world: FloodWorld): Promise<void> {
  await refused(world, 300, 300);
}

async function silentRegistry({ request, namespace, silent }: FloodWorld): Promise<void> {
  await eachOf(60, async (index) => create(request, namespace, `silent-${index}`, [`${silent}/app${index}:v1`]));
}

async function pullSecrets({ request, namespace, registry }: FloodWorld, pods: number, secrets: number) {
  await eachOf(pods, async (index) =>
    create(request, namespace, `secrets-${index}`, [`${registry}/none/x${index}:1`], secretNames(secrets)),
  );
}

async function missingImages({ request, namespace, registry }: FloodWorld): Promise<void> {
  await eachOf(500, async (index) => {
    const named = Array.from({ length: 20 }, (_, image) => `${registry}/none/x${index}-${image}:1`);
    await create(request, namespace, `missing-${index}`, named);
  });
}

/** Returns names of images that the common registry has. */
function images(registry: string, first: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${registry}/bench:flood${first + index}`);
}

function secretNames(count: number): { name: string }[] {
  return Array.from({ length: count }, (_, index) => ({ name: `s${index}` }));
}

async function eachOf(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const writer = async () => {
    for (let index = next++; index < count; index = next++) await work(index);
  };
  await Promise.all(Array.from({ length: WRITERS }, writer));
}

/** Creates a pod for a scheduler that does not exist. */
export async function create(
  request: Request,
  namespace: string,
  name: string,
  named: readonly string[],
  imagePullSecrets: readonly { name: string }[] = [],
): Promise<void> {
  expectSuccess(name, await send(request, namespace, name, named, imagePullSecrets));
}

function send(
  request: Request,
  namespace: string,
  name: string,
  named: readonly string[],
  imagePullSecrets: readonly { name: string }[],
) {
  const containers = named.map((image, index) => ({ name: `c${index}`, image, imagePullPolicy: 'IfNotPresent' }));
  return request('POST', `/api/v1/namespaces/${namespace}/pods`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace },
    spec: { schedulerName: 'nobody', containers, imagePullSecrets },
  });
}

/** A registry that accepts connections and never answers. */
export async function startSilent(): Promise<{ readonly host: string; stop(): void }> {
  const sockets = new Set<{ destroy(): void }>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a listening socket has no port');
  return {
    host: `127.0.0.1:${address.port}`,
    stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
