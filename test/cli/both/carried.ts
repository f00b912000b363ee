/** The state from which tests of `clean` start, and the marks that they look for. */
import { at, listAt } from '../../../hack/cluster/json.ts';
import type { Finished } from '../../support/controller-process.ts';
import { isGoing, nameOf, runs, taints, tolerations } from '../../support/objects.ts';
import type { World } from '../../support/world.ts';

/** What `clean --output json` printed; throws with what it said where that is something else. */
export function outcome({ code, stdout, stderr }: Finished) {
  let printed: unknown;
  try {
    printed = JSON.parse(stdout);
  } catch {
    throw new Error(`exit code ${code}, no JSON: ${stdout}${stderr}`);
  }
  const entries = (field: string) =>
    listAt(printed, field).map((entry) => ({
      what: [at(entry, 'kind'), at(entry, 'namespace'), at(entry, 'name')].filter(Boolean).join(' '),
      reason: String(at(entry, 'reason')),
    }));
  return { code, removed: at(printed, 'removed'), left: entries('left'), kept: entries('kept'), printed, stderr };
}

/** Reads the taints of the nodes and the tolerations of the pods of a namespace. */
export function carriedIn(world: () => World, ns: () => string) {
  /** Runs the controller until nodes, pods and DaemonSets are in their final state, and ends it. */
  async function settle(flags: readonly string[] = [], end: NodeJS.Signals = 'SIGTERM', key = 'supported-arch') {
    await world().run(flags);
    await world().eventually(
      'everything to be settled',
      async () => (await nodesTainted(key)) && (await podsTolerate(key)) && settledSets(),
    );
    await world().stopControllers(end);
  }

  const nodesTainted = async (key: string) =>
    (await world().list('Node', '')).every((node) => taints(node).some((text) => text.startsWith(`${key}=`)));
  const podsTolerate = async (key: string) => {
    const pods = await world().list('Pod', ns());
    return (
      pods.length > 0 &&
      pods.every((entry) => !isGoing(entry) && tolerations(entry).some((text) => text.startsWith(`${key}=`)))
    );
  };
  const settledSets = async () =>
    (await world().list('DaemonSet', ns())).every((entry) => {
      const status = at(entry, 'status');
      const desired = at(status, 'desiredNumberScheduled');
      return (
        at(status, 'observedGeneration') === at(entry, 'metadata', 'generation') &&
        at(status, 'updatedNumberScheduled') === desired &&
        at(status, 'numberAvailable') === desired
      );
    });
  const running = (count: number) =>
    world().eventually(`${count} pods to run`, async () => {
      const pods = await world().list('Pod', ns());
      return pods.length === count && pods.every((entry) => runs(entry) && !isGoing(entry));
    });

  const carrying = async () =>
    (await world().list('Pod', ns()))
      .filter((entry) => !isGoing(entry) && tolerations(entry).length > 0)
      .map(nameOf)
      .sort();
  const nodeTaints = async () => (await world().list('Node', '')).flatMap(taints);
  const holder = async () =>
    at(await world().get('Lease', 'archaware', 'archaware-controller'), 'spec', 'holderIdentity') ?? '';

  return { settle, nodesTainted, settledSets, running, carrying, nodeTaints, holder };
}
