/** The kubelet of a node, as somebody uses it who has broken into the node: with its rights, limited by NodeRestriction. */
import type { World } from './world.ts';

/** What a kubelet writes; each returns the answer of kubectl, and fails only if told so by it. */
export type Kubelet = {
  /** Reports an architecture, as a part of the status of its node. */
  report(architecture: string): Promise<void>;
  /** Writes the record of archaware on its node. */
  record(managed: object): Promise<void>;
  /** Removes the taints of its node; returns what the API server says to that. */
  removeTaints(): Promise<string>;
};

/** Creates the kubelet of the node. */
export function kubeletOf({ cluster }: World, node: string): Kubelet {
  const groups = ['system:nodes', 'system:authenticated'].flatMap((group) => ['--as-group', group]);
  const kubelet = ['--as', `system:node:${node}`, ...groups];
  const patch = (body: object, ...more: string[]) =>
    cluster.kubectl(['patch', 'node', node, '--type=merge', '-p', JSON.stringify(body), ...more, ...kubelet]);
  const succeed = async (what: string, answer: ReturnType<typeof patch>) => {
    const { code, stderr } = await answer;
    if (code !== 0) throw new Error(`the kubelet of ${node} could not ${what}: ${stderr}`);
  };
  return {
    report: (architecture) =>
      succeed('report', patch({ status: { nodeInfo: { architecture } } }, '--subresource=status')),
    record: (managed) =>
      succeed('record', patch({ metadata: { annotations: { 'archaware.dev/managed': JSON.stringify(managed) } } })),
    removeTaints: async () => (await patch({ spec: { taints: [] } })).stderr,
  };
}
