/** Reading how pods were placed by admission, and what became of them on the way. */
import { expectSuccess } from '../../../hack/cluster/client.ts';
import { at, listAt } from '../../../hack/cluster/json.ts';
import { FIXTURES, TESTIMG_REPOSITORY } from '../../../testimg/fixtures.ts';
import { pushFixtures } from '../../../testimg/push.ts';
import { pod as createdPod } from '../../support/workloads.ts';
import { pathOf } from '../../support/world.ts';
import type { LiveWorld } from './world.ts';

export const GATE = 'archaware.dev/architecture';
export const MANAGED = 'archaware.dev/managed';

export const gates = (pod: unknown): unknown[] =>
  listAt(pod, 'spec', 'schedulingGates').map((gate) => at(gate, 'name'));
export const affinity = (pod: unknown): unknown => at(pod, 'spec', 'affinity');

/** `{key, operator: In, values}`, as archaware writes it. */
export const isIn = (key: string, ...values: readonly string[]) => ({ key, operator: 'In', values });
export const onArch = (...values: readonly string[]) => isIn('kubernetes.io/arch', ...values);

/** Node affinity that requires one of the terms: each is a list of expressions. */
export const required = (...terms: readonly (readonly unknown[])[]) => ({
  requiredDuringSchedulingIgnoredDuringExecution: {
    nodeSelectorTerms: terms.map((matchExpressions) => ({ matchExpressions })),
  },
});

/** What archaware requires for an image of arm64 alone. */
export const ON_ARM = { nodeAffinity: required([onArch('arm64')]) };
export const isOnArm = (pod: unknown): boolean => JSON.stringify(affinity(pod)) === JSON.stringify(ON_ARM);

let fresh = 0;

/** An image like the fixture, under a tag that nobody has asked for. */
export async function freshImage(world: LiveWorld, like: string): Promise<string> {
  const image = world.image(`fresh-${++fresh}`);
  await pushAgain(world, image, like);
  return image;
}

/** Pushes an image under its tag again, like the fixture from now on. */
export async function pushAgain(world: LiveWorld, image: string, like: string): Promise<void> {
  const tag = image.slice(image.lastIndexOf(':') + 1);
  const fixtures = FIXTURES.filter((fixture) => fixture.tag === like).map((fixture) => ({ ...fixture, tag }));
  await pushFixtures({ registry: world.registry.host, repository: TESTIMG_REPOSITORY, insecure: true, fixtures });
}

/** The manifest requests that an image has cost the registry so far. */
export async function lookUps(world: LiveWorld, image: string): Promise<number> {
  const tag = image.split(':').at(-1);
  const asked = (await world.registry.requests()).filter(({ path }) => path.endsWith(`/manifests/${tag}`));
  return asked.filter(({ method }) => method !== 'PUT').length;
}

/** Does something while the registry answers nobody, so that no image becomes known meanwhile. */
export async function inSilence(world: LiveWorld, act: () => Promise<void>): Promise<void> {
  world.registry.kill('SIGSTOP');
  try {
    await act();
  } finally {
    world.registry.kill('SIGCONT');
  }
}

/** Waits until a pod has no gate; returns it. */
export const eventuallyReleased = (world: LiveWorld, namespace: string, pod: string) =>
  world.eventually(`the gate of ${pod} to go`, async () => {
    const found = await world.get('Pod', namespace, pod);
    return gates(found).length === 0 && found;
  });

let tries = 0;

/** Creates pods until one with an image for arm64 is placed at its creation: the image is known, and the webhook is called. */
export const eventuallyPlacedAtOnce = (world: LiveWorld, namespace: string, image = world.image('arm64')) =>
  world.eventually('a pod to be placed at once', async () => {
    const found = await admit(world, createdPod(namespace, `tried-${++tries}`, { images: [image] }));
    return isOnArm(found) && found;
  });

/** How many patches of archaware a pod has had. */
export async function patchesOf(world: LiveWorld, namespace: string, pod: string): Promise<number> {
  const path = new RegExp(`/namespaces/${namespace}/pods/${pod}(?:\\?|$)`);
  return (await world.cluster.auditedRequests()).filter(({ verb, path: of }) => verb === 'patch' && path.test(of))
    .length;
}

/** Creates a pod and returns the API server's answer; `dryRun` stores nothing. */
export async function admit(
  world: LiveWorld,
  pod: { metadata: { namespace: string } },
  dryRun = false,
): Promise<unknown> {
  const path = `${pathOf('Pod', pod.metadata.namespace)}${dryRun ? '?dryRun=All' : ''}`;
  return expectSuccess('the pod', await world.cluster.request('POST', path, pod));
}
