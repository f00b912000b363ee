/** What is deployed in the demo: images, what they run on, and where each workload has to end up. */
import type { TestRegistry } from '../../test/simulator/registry/registry.ts';

export const NAMESPACE = 'demo';
export const NODES = [
  { name: 'amd64-1', architecture: 'amd64' },
  { name: 'amd64-2', architecture: 'amd64' },
  { name: 'arm64-1', architecture: 'arm64' },
  { name: 's390x-1', architecture: 's390x' },
] as const;

/** What must become of a workload: it is placed on these architectures, or not at all, which an Event explains. */
export type Expectation =
  | { readonly kind: 'placed'; readonly architectures: readonly string[] }
  | { readonly kind: 'unplaced'; readonly reason: string };

export type Workload = {
  readonly kind: 'Deployment' | 'DaemonSet';
  readonly name: string;
  /** Repositories of the demo's registry. */
  readonly images: readonly string[];
  /** Of a Deployment. */
  readonly replicas: number;
  readonly pullSecret?: boolean;
  readonly expected: Expectation;
};

/** Architectures by repository. `wbe` is not there: somebody mistyped `web`. */
const IMAGES: Readonly<Record<string, readonly string[]>> = {
  web: ['amd64', 'arm64', 's390x'],
  camera: ['arm64'],
  proxy: ['amd64', 'arm64', 's390x'],
  api: ['arm64', 's390x'],
  cache: ['amd64', 's390x'],
  agent: ['amd64', 'arm64'],
  ledger: ['amd64'],
};
const PRIVATE = 'ledger';
const ACCOUNT = { name: 'demo', password: 'a-password' };

const placed = (...architectures: string[]): Expectation => ({ kind: 'placed', architectures });

export const WORKLOADS: readonly Workload[] = [
  { kind: 'Deployment', name: 'web', images: ['web'], replicas: 4, expected: placed('amd64', 'arm64', 's390x') },
  { kind: 'Deployment', name: 'camera', images: ['camera'], replicas: 3, expected: placed('arm64') },
  { kind: 'Deployment', name: 'ledger', images: [PRIVATE], replicas: 2, pullSecret: true, expected: placed('amd64') },
  { kind: 'Deployment', name: 'report', images: ['proxy', 'api', 'cache'], replicas: 1, expected: placed('s390x') },
  { kind: 'DaemonSet', name: 'agent', images: ['agent'], replicas: 0, expected: placed('amd64', 'arm64') },
  {
    kind: 'Deployment',
    name: 'video',
    images: ['camera', 'ledger'],
    replicas: 1,
    pullSecret: true,
    expected: { kind: 'unplaced', reason: 'NoCommonArchitecture' },
  },
];

/** Deployed only where somebody looks at images: a kubelet would not even get as far as a crash. */
export const MISTYPED: Workload = {
  kind: 'Deployment',
  name: 'typo',
  images: ['wbe'],
  replicas: 1,
  expected: { kind: 'unplaced', reason: 'ImageUnresolvable' },
};

export const REGISTRY_OPTIONS = { auth: 'bearer', users: { [ACCOUNT.name]: ACCOUNT.password } } as const;

/** Fills the registry; one of its repositories is private. */
export function fill(registry: TestRegistry): void {
  for (const [repository, architectures] of Object.entries(IMAGES)) registry.put(repository, '1', architectures);
  registry.makePrivate(PRIVATE);
}

/** The architectures of an image of a pod's spec; undefined where it is not ours. */
export function platformsOf(image: string): readonly string[] | undefined {
  return IMAGES[repositoryOf(image)];
}

/** `web` of `127.0.0.1:34567/web:1`. */
export function repositoryOf(image: string): string {
  return /\/([^/:]+)(?::[^/]*)?$/.exec(image)?.[1] ?? image;
}

/** The architectures that all of the images have. */
export function commonArchitectures(images: readonly string[]): string[] {
  const sets = images.map((repository) => IMAGES[repository] ?? []);
  return (sets[0] ?? []).filter((architecture) => sets.every((set) => set.includes(architecture)));
}

/** The objects as somebody would apply them, with the pull secret before the pods that need it. */
export function objectsOf(workloads: readonly Workload[], host: string): object[] {
  const auth = Buffer.from(`${ACCOUNT.name}:${ACCOUNT.password}`).toString('base64');
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'registry-account', namespace: NAMESPACE },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': Buffer.from(JSON.stringify({ auths: { [host]: { auth } } })).toString('base64') },
  };
  return [secret, ...workloads.map((workload) => objectOf(workload, host))];
}

function objectOf({ kind, name, images, replicas, pullSecret }: Workload, host: string): object {
  const labels = { app: name };
  const spec = {
    containers: images.map((repository) => ({ name: repository, image: `${host}/${repository}:1` })),
    ...(pullSecret ? { imagePullSecrets: [{ name: 'registry-account' }] } : {}),
  };
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name, namespace: NAMESPACE },
    spec: {
      // Without us it has a daemon that crashes: one that may be unavailable is not enough to roll the others.
      ...(kind === 'Deployment' ? { replicas } : { updateStrategy: { rollingUpdate: { maxUnavailable: 2 } } }),
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec },
    },
  };
}
