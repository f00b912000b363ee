/**
 * One control plane for all suites of a process, one after the other: to start one takes longer than most suites do. Between two
 * suites everything is deleted that the first has created, whatever it is, and what it has changed is as it was.
 */
import { type Cluster, type ClusterOptions, startCluster } from '../../../hack/cluster/cluster.ts';

type Shared = { readonly cluster: Cluster; readonly clean: () => Promise<void> };

/** The one that no suite uses at the moment. What its last suite made is still in it. */
let idle: Shared | undefined;

/** A cluster, and the function that hands it over, or stops it, when the suite is over. */
export type Borrowed = {
  readonly cluster: Cluster;
  done(): Promise<void>;
};

/**
 * Gives a control plane in which nothing is. With options of its own, which are seldom, it is started for this suite alone; so is
 * one whose components a suite has stopped or paused, which nobody gets afterwards.
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

/** A control plane that keeps something of its last suite is given to nobody. */
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
