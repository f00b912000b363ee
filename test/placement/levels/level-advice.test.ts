import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import { node as bare, explained, type Given } from '../explain/explained.ts';

const LABEL = 'feature.node.kubernetes.io/cpu-cpuid.X86_64_V3';
const OF_V3 = { [LABEL]: 'true' };
const node = (name: string, architecture: string, more: JsonObject = {}, labels: JsonObject = {}) =>
  bare(name, architecture, more, { 'kubernetes.io/arch': architecture, ...labels });
const images = { a: '=linux/amd64/v3' };
const nodes = [node('old', 'amd64'), node('new', 'amd64', {}, OF_V3), node('arm', 'arm64')];
const both: Partial<NonNullable<Given['settings']>> = { mode: 'both' };
const required = (expressions: readonly JsonObject[]) => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: expressions }] },
    },
  },
});
const OURS = required([
  { key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] },
  { key: LABEL, operator: 'In', values: ['true'] },
]);
/** As archaware leaves it on a pod. */
const WRITTEN = {
  managedFields: [
    { manager: 'archaware-controller', fieldsV1: { 'f:spec': { 'f:affinity': {}, 'f:tolerations': {} } } },
  ],
};

describe('explain of an image for a CPU level', () => {
  it('shows the label as required, and which node has it', () => {
    const { affinity, nodes: groups, verdict } = explained({ images, nodes, kind: 'Deployment', settings: both });
    expect(affinity?.required.map(({ key, values }) => `${key}=${values}`)).to.deep.equal([
      'kubernetes.io/arch=amd64',
      `${LABEL}=true`,
    ]);
    expect(groups.filter(({ placed }) => placed.fits).flatMap(({ names }) => names)).to.deep.equal(['new']);
    expect(verdict.state).to.equal('can-run');
  });

  const rows: readonly [string, Given, RegExp | undefined][] = [
    ['nothing where the label is required', { settings: both }, undefined],
    [
      'what the pod can ask for in the mode taints',
      {},
      /^needs CPUs of amd64\/v3 .* nodeSelector ask for .*X86_64_V3=true/,
    ],
    ['nothing where its author asks for it', { spec: { nodeSelector: OF_V3 } }, undefined],
    ['that no node has the label', { settings: both, nodes: [node('old', 'amd64')] }, /no node .*X86_64_V3=true/],
    [
      'the label for NodePools, where Karpenter makes nodes',
      { settings: both, nodes: [...nodes, node('k', 'amd64', {}, { 'karpenter.sh/nodepool': 'p' })] },
      /^Karpenter starts a node for it only from a NodePool with .*X86_64_V3=true/,
    ],
    [
      'the same for a pod to which archaware has written the label',
      {
        kind: 'Pod',
        spec: OURS,
        metadata: WRITTEN,
        settings: both,
        nodes: [...nodes, node('k', 'amd64', {}, { 'karpenter.sh/nodepool': 'p' })],
      },
      /^Karpenter starts a node for it only from a NodePool with .*X86_64_V3=true/,
    ],
    [
      'nothing more for a DaemonSet than to ask',
      { kind: 'DaemonSet', settings: both },
      /nodeSelector ask for .*=true$/,
    ],
  ];
  for (const [title, given, expected] of rows) {
    it(`advises ${title}`, () => {
      const { advice } = explained({ images, nodes, kind: 'Deployment', ...given });
      const said = advice.filter((line) => line.includes(LABEL));
      if (expected === undefined) expect(said).to.deep.equal([]);
      else expect(said.join('\n')).to.match(expected);
    });
  }

  it('does not advise to set the label by hand where no node that has it fits', () => {
    const full = [node('new', 'amd64', { unschedulable: true }, OF_V3), node('old', 'amd64')];
    const { advice } = explained({ images, nodes: full, settings: both, kind: 'Pod', spec: OURS, metadata: WRITTEN });
    expect(advice.join('\n'))
      .to.contain('kubectl uncordon new')
      .and.not.to.match(/label old as/);
  });
});
