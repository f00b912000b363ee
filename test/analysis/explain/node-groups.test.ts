import { expect } from 'chai';
import { groupNodes } from '../../../src/analysis/explain/node-groups.ts';
import type { JsonObject } from '../../../src/kit/json.ts';
import { readDemands } from '../../../src/placement/fit.ts';
import type { Node } from '../../../src/placement/nodes/node.ts';
import { expression, requires } from '../../placement/affinities.ts';
import { node, taint } from '../../placement/objects.ts';

type GivenNode = Pick<Parameters<typeof node>[0], 'architecture' | 'labels'> &
  Partial<Pick<Node, 'name' | 'unschedulable'>> & { readonly taints?: readonly string[] };

const read = ({
  name = 'n1',
  architecture = 'amd64',
  unschedulable = false,
  taints = [],
  ...given
}: GivenNode = {}) => ({
  ...node({ ...given, architecture, taints: taints.map((text) => taint(text)) }),
  ...{ name, unschedulable },
});

describe('nodes are grouped', () => {
  const grouped = (spec: JsonObject, nodes: (GivenNode | undefined)[]) =>
    groupNodes(nodes.map(read), readDemands(spec))
      .map(({ architecture, names }) => `${architecture ?? 'unknown'}: ${names.join(',')}`)
      .join(' | ');

  const [a, b, c] = ['a', 'b', 'c'].map((name) => ({ name }));
  const zoned = { ...a, labels: { zone: 'z' } };
  const cordoned = { ...a, unschedulable: true };
  const tainted = (effect: string) => ({ ...a, taints: [`x=y:${effect}`] });
  const named = { affinity: requires({ matchFields: [expression('metadata.name In b')] }) };
  const rows: [given: string, spec: JsonObject, nodes: (GivenNode | undefined)[], expected: string][] = [
    ['by architecture, sorted', {}, [{ ...b, architecture: 'arm64' }, c, a], 'amd64: a,c | arm64: b'],
    ['by taints that keep pods away', {}, [tainted('NoSchedule'), b], 'amd64: a | amd64: b'],
    ['not by other taints', {}, [tainted('PreferNoSchedule'), b], 'amd64: a,b'],
    ['by being cordoned', {}, [cordoned, b], 'amd64: a | amd64: b'],
    ['by labels that the pod speaks of', { nodeSelector: { zone: 'z' } }, [zoned, b], 'amd64: a | amd64: b'],
    ['not by other labels', {}, [zoned, b], 'amd64: a,b'],
    ['by the name that the pod asks for', { nodeName: 'a' }, [a, b, c], 'amd64: a | amd64: b,c'],
    ['by the name that the affinity asks for', named, [a, b, c], 'amd64: a,c | amd64: b'],
    ['with one that has not reported it last', {}, [{ ...a, architecture: '' }, b], 'amd64: b | unknown: a'],
  ];
  for (const [given, spec, nodes, expected] of rows)
    it(`${given}: ${expected}`, () => expect(grouped(spec, nodes)).to.equal(expected));
});
