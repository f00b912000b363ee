import { expectSuccess } from '../../../hack/cluster/client.ts';
import { at, listAt } from '../../../hack/cluster/json.ts';
import { pathOf } from '../../support/world.ts';
import type { LiveWorld } from './world.ts';

/** Reports the resources of a pod's containers as a kubelet does: without them the API server lets nobody resize the pod. */
export async function resizable(world: LiveWorld, namespace: string, name: string): Promise<void> {
  const found = await world.get('Pod', namespace, name);
  const containerStatuses = listAt(found, 'status', 'containerStatuses').map((status, index) =>
    Object.assign({}, status, { resources: at(listAt(found, 'spec', 'containers')[index], 'resources') }),
  );
  const path = `${pathOf('Pod', namespace, name)}/status`;
  expectSuccess('its status', await world.cluster.request('PATCH', path, { status: { containerStatuses } }));
}
