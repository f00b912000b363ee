import { isForbidden } from '../../kube/errors.ts';
import { createLies, type Lies } from '../../placement/lies/lies.ts';
import type { Connection } from '../connect.ts';
import type { Context } from '../surroundings.ts';
import { addFrom, readConfigMap } from './cluster-lies.ts';

/**
 * Returns what the controller of a cluster has learned of images that lie, for a command. Empty without a cluster, and without the
 * right to read it, which a note says.
 */
export async function readLearned(
  { clock, note, signal }: Pick<Context, 'clock' | 'note' | 'signal'>,
  cluster: Pick<Connection, 'client' | 'leaseNamespace'> | undefined,
): Promise<Lies> {
  const lies = createLies();
  if (cluster === undefined) return lies;
  try {
    const { client, leaseNamespace: namespace } = cluster;
    const read = await readConfigMap({ client, namespace }, signal);
    if (read !== undefined) addFrom(read, lies, clock.wall());
  } catch (error) {
    if (!isForbidden(error)) throw error;
    note('without what the controller learned of images that lie: the right to read it is missing');
  }
  return lies;
}
