/** NodePools as docs/autoscalers.md shows them. */

export type NodePoolOptions = {
  readonly name: string;
  readonly architectures: readonly string[];
  /** The list of the template that holds the taint of archaware. */
  readonly taint?: 'taints' | 'startupTaints';
};

const ours = (value: string) => ({ key: 'supported-arch', value, effect: 'NoSchedule' });

/** A NodePool of Karpenter, and nothing in it that a case does not need. */
export function nodePool({ name, architectures, taint }: NodePoolOptions) {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name },
    spec: {
      limits: { cpu: '64' },
      disruption: {
        consolidationPolicy: 'WhenEmptyOrUnderutilized',
        consolidateAfter: '20s',
        budgets: [{ nodes: '100%' }],
      },
      template: {
        spec: {
          expireAfter: 'Never',
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
          requirements: [
            { key: 'kubernetes.io/arch', operator: 'In', values: architectures },
            { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] },
            { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
          ],
          ...(taint === undefined ? {} : { [taint]: architectures.map(ours) }),
        },
      },
    },
  };
}

/** One NodePool for both architectures, without a taint. */
export const ONE: readonly NodePoolOptions[] = [{ name: 'default', architectures: ['amd64', 'arm64'] }];

/** A NodePool for each architecture; `taint`: the list that holds its taint. */
export const two = (taint?: NodePoolOptions['taint']): readonly NodePoolOptions[] =>
  ['amd64', 'arm64'].map((name) => ({ name, architectures: [name], ...(taint === undefined ? {} : { taint }) }));

/** A machine of this provider registers ten seconds after it was started. */
export const NODE_CLASS = {
  apiVersion: 'karpenter.kwok.sh/v1alpha1',
  kind: 'KWOKNodeClass',
  metadata: { name: 'default' },
  spec: { nodeRegistrationDelay: '10s' },
};
