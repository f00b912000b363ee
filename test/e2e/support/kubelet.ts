/** The kubelet of a node, as somebody uses it who has broken into the node: with its rights, limited by NodeRestriction. */
import { readFile } from 'node:fs/promises';
import { createClient, expectSuccess } from '../../../hack/cluster/client.ts';
import { at } from '../../../hack/cluster/json.ts';
import { MANAGED } from './placed.ts';
import type { LiveWorld } from './world.ts';

export type Kubelet = {
  /** Reports an architecture, as a part of the status of its node. */
  report(architecture: string): Promise<void>;
  /** Writes the record of archaware on its node. */
  record(managed: object): Promise<void>;
  /** Tries to remove the taints of its node; returns what the API server says to that. */
  removeTaints(): Promise<string>;
  close(): Promise<void>;
};

/** Creates the kubelet of the node. */
export async function kubeletOf({ cluster }: LiveWorld, node: string): Promise<Kubelet> {
  const as = { user: `system:node:${node}`, groups: ['system:nodes', 'system:authenticated'] };
  const client = createClient(cluster.server, cluster.adminToken, await readFile(cluster.caFile, 'utf8'), as);
  const path = `/api/v1/nodes/${node}`;
  return {
    async report(architecture) {
      const status = { nodeInfo: { architecture } };
      expectSuccess('the report', await client.request('PATCH', `${path}/status`, { status }));
    },
    async record(managed) {
      const annotations = { [MANAGED]: JSON.stringify(managed) };
      expectSuccess('the record', await client.request('PATCH', path, { metadata: { annotations } }));
    },
    async removeTaints() {
      const { body } = await client.request('PATCH', path, { spec: { taints: [] } });
      return String(at(body, 'message') ?? '');
    },
    close: () => client.close(),
  };
}
