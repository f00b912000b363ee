/** What a kubelet reports of containers that do not run. */
import { listAt } from '../../../hack/cluster/json.ts';
import { FIXTURES } from '../../../testimg/fixtures.ts';
import { nameOf } from '../../support/objects.ts';
import { pathOf, type World } from '../../support/world.ts';

/** Of a container that crashes. Without a message it says why only in its log, as with the default terminationMessagePolicy. */
export const crashing = (message?: string, exitCode = 1) => ({
  ...{ ready: false, started: false, restartCount: 1, state: { waiting: { reason: 'CrashLoopBackOff' } } },
  lastState: { terminated: { exitCode, reason: 'Error', ...(message === undefined ? {} : { message }) } },
});

/** Sets what the status of a pod's containers says; `pulled`: the fixture that was pulled for them. */
export async function setContainers(
  world: World,
  namespace: string,
  found: unknown,
  status: object = crashing(),
  pulled = 'amd64',
): Promise<void> {
  const digest = FIXTURES.find(({ tag }) => tag === pulled)?.build().root.digest;
  const repository = world.image(pulled).replace(/:[^:/]*$/, '');
  const containerStatuses = listAt(found, 'status', 'containerStatuses').map((each) =>
    Object.assign({}, each, { imageID: `${repository}@${digest}` }, status),
  );
  await world.patch(`${pathOf('Pod', namespace, nameOf(found))}/status`, { status: { containerStatuses } });
}
