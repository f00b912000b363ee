/**
 * One control plane for all suites of a process, one after the other: to start one takes longer than most suites do. Between two
 * suites everything is deleted that the first has created, whatever it is, and what it has changed is as it was.
 */
import { type Cluster, type ClusterOptions, startCluster } from '../../../hack/cluster/cluster.ts';

type Shared = { readonly cluster: Cluster; readonly clean: () => Promise<void> };

/** The control plane that no suite uses at the moment. It still has the objects of its last suite. */
let idle: Shared | undefined;

/** A cluster, and the function that hands it over, or stops it, when the suite is over. */
export type Borrowed = { readonly cluster: Cluster; done(): Promise<void> };

/**
 * Gives an empty control plane. With options of its own, which few suites have, it is started for this suite alone. If the suite stops or
 * pauses a component, no other suite gets the control plane afterwards.
 */
export async function borrowCluster(own?: ClusterOptions): Promise<Borrowed> {
  if (own !== undefined) {
    const cluster = await startCluster({ auditNamespaces: ['archaware'], ...own });
    return { cluster, done: () => cluster.stop() };
  }
  const found = idle;
  idle = undefined;
  if (found !== undefined && (await isCleaned(found))) return lent(found);
  const cluster = await startCluster({ auditNamespaces: ['archaware'] });
  try {
    return lent({ cluster, clean: await cluster.remember() });
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

/** Empties a control plane. One that keeps something of its last suite is stopped. */
async function isCleaned({ cluster, clean }: Shared): Promise<boolean> {
  try {
    await clean();
    return true;
  } catch (error) {
    console.warn('the control plane of the suite before is stopped instead of shared:', error);
    await cluster.stop();
    return false;
  }
}

function lent(shared: Shared): Borrowed {
  const { cluster } = shared;
  let isTouched = false;
  const touching =
    <A extends readonly unknown[], R>(act: (...args: A) => R) =>
    (...args: A): R => {
      isTouched = true;
      return act(...args);
    };
  return {
    cluster: { ...cluster, component: touching(cluster.component), stopApiServer: touching(cluster.stopApiServer) },
    async done() {
      if (isTouched || idle !== undefined) return cluster.stop();
      idle = shared;
      cluster.unref();
    },
  };
}
