import { at, listAt } from '../../hack/cluster/json.ts';
import { freePorts } from '../../hack/cluster/ports.ts';
import { webhookManifest } from './manifest.ts';
import type { RunningController } from './running.ts';
import type { Objects, World } from './world.ts';

type Applying = { readonly cluster: Pick<World['cluster'], 'apply'> };

/** The configuration of archaware's webhooks. */
export const WEBHOOKS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archaware-controller';

/** A webhook that the API server calls on this machine. */
export type Webhook = {
  readonly port: number;
  /** What switches it on in a controller. */
  readonly flags: readonly string[];
};

/**
 * Applies our manifest for the webhook with an address of this machine in the place of the Service, and gives the flags
 * of the controller that serves it. `changed`: what another configuration has of its own, by field of each webhook.
 */
export async function arrangeWebhook(
  world: Applying,
  changed: Readonly<Record<string, unknown>> = {},
): Promise<Webhook> {
  const [port = 0] = await freePorts(1);
  await applyWebhook(world, port, changed);
  return { port, flags: ['--webhook.enabled', '--webhook.address', `127.0.0.1:${port}`] };
}

/** Applies the manifest, for instance again after `clean` took it away. */
export async function applyWebhook(
  world: Applying,
  port: number,
  changed: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const url = `https://127.0.0.1:${port}`;
  await world.cluster.apply(await webhookManifest(url, changed));
}

/** Whom the API server trusts as each webhook; undefined for nobody. */
export const bundlesOf = async ({ get }: Pick<Objects, 'get'>): Promise<readonly unknown[]> =>
  listAt(await get(WEBHOOKS), 'webhooks').map((hook) => at(hook, 'clientConfig', 'caBundle'));

/** Whether the API server can call every webhook. */
export async function isTrusted(world: Pick<Objects, 'get'>): Promise<boolean> {
  const bundles = await bundlesOf(world);
  return bundles.length > 0 && bundles.every((bundle) => bundle !== undefined);
}

/** Runs the controller with a webhook that the API server trusts. */
export async function runWithWebhook(world: World, ...flags: readonly string[]): Promise<RunningController> {
  const webhook = await arrangeWebhook(world);
  const controller = await world.run([...webhook.flags, ...flags]);
  await eventuallyTrusted(world);
  return controller;
}

/** Waits until the API server trusts what the controller serves with, so that no review is passed over. */
export async function eventuallyTrusted(world: Pick<Objects, 'eventually' | 'get'>): Promise<void> {
  await world.eventually('every webhook to have a caBundle', () => isTrusted(world));
}
