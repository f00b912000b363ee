import type { Context } from '../../app/context.ts';
import type { ApiClient } from '../../kube/client.ts';
import { isForbidden } from '../../kube/errors.ts';
import { deploymentsOf, readDeployment } from '../../kube/installation/deployments.ts';
import { findInstallations } from '../../kube/installation/installations.ts';
import { getLease, isHeld } from '../../kube/installation/leases.ts';
import { DEFAULT_NAMESPACE } from '../../names.ts';
import type { ControllerState } from '../../placement/explain/controller.ts';

/** Finds out whether a controller is there; undefined if that is not known, for example without the right to look. */
export async function readController(
  client: ApiClient,
  { config, clock, installation }: Pick<Context, 'config' | 'clock' | 'installation'>,
  signal: AbortSignal,
): Promise<ControllerState | undefined> {
  const { enabled, name, namespace } = config.leaderElection;
  if (!enabled) return undefined;
  try {
    const found = await findInstallations(client, installation, signal);
    if (found.kind === 'unreadable') return undefined;
    const [only, ...others] = found.installations;
    // Which of them is meant is not known.
    if (others.length > 0) return undefined;
    const deployments = only === undefined ? [] : await deploymentsOf(client, only, readDeployment, signal);
    const [deployment] = deployments;
    const place = { namespace: namespace || (only?.namespace ?? DEFAULT_NAMESPACE), name };
    const lease = await getLease(client, place, signal);
    const where = deployment && `${deployment.namespace}/${deployment.name}`;
    if (lease !== undefined && isHeld(lease, clock.wall())) return { kind: 'leads', deployment: where };
    if (deployment === undefined || where === undefined) return { kind: 'not-installed' };
    const { wanted } = deployment;
    return { kind: 'no-leader', lease: `${place.namespace}/${place.name}`, deployment: where, wanted };
  } catch (error) {
    if (isForbidden(error)) return undefined;
    throw error;
  }
}
