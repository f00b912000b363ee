import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import { readDemands } from '../../../src/placement/fit.ts';
import { isFact, unmetBy } from '../../../src/placement/readiness/unmet.ts';
import { expression, requires, term } from '../affinities.ts';

const required = (...terms: readonly JsonObject[]) => ({ affinity: requires(...terms) });

describe('labels that state facts', () => {
  const kubernetes = ['arch', 'os', 'hostname'].map((name) => `kubernetes.io/${name}`);
  const beta = ['arch', 'os', 'instance-type'].map((name) => `beta.kubernetes.io/${name}`);
  const node = ['instance-type', 'windows-build'].map((name) => `node.kubernetes.io/${name}`);
  const places = ['topology', 'failure-domain.beta'].flatMap((name) => [
    `${name}.kubernetes.io/zone`,
    `${name}.kubernetes.io/region`,
  ]);
  const others = ['topology.ebs.csi.aws.com/zone', 'feature.node.kubernetes.io/cpu-cpuid.AVX2'];
  for (const label of [...kubernetes, ...beta, ...node, ...places, ...others])
    it(`${label} does`, () => expect(isFact(label)).to.equal(true));
  for (const label of 'disk example.com/pool node-role.kubernetes.io/gpu kubernetes.io/arches xtopology.a'.split(' '))
    it(`${label} does not`, () => expect(isFact(label)).to.equal(false));
});

describe('the demands that a node does not meet', () => {
  const node = { name: 'n', labels: { disk: 'hdd', cores: '4', 'kubernetes.io/arch': 'amd64' } };
  const rows: [given: string, spec: JsonObject, expected: readonly string[]][] = [
    ['nothing is asked', {}, []],
    ['all is met', { nodeSelector: { disk: 'hdd' }, ...required(term('cores Exists')) }, []],
    ['of node selectors', { nodeSelector: { disk: 'ssd', cores: '4', zone: 'a' } }, ['disk=ssd', 'zone=a']],
    ['of a term, its part', required(term('disk In ssd,nvme', 'cores Exists')), ['disk In (ssd, nvme)']],
    [
      'of two terms, that with fewer facts',
      required(term('kubernetes.io/arch In arm64'), term('disk In ssd', 'gpu Exists')),
      ['disk In (ssd)', 'gpu Exists'],
    ],
    ['an empty term', required({}), ['an empty term, which no node matches']],
    ['an empty term beside another', required({}, term('disk In ssd')), ['disk In (ssd)']],
    ['a field', required({ matchFields: [expression('metadata.name In other')] }), ['metadata.name In (other)']],
    [
      'a field that is met, beside a label that is not',
      required({ matchFields: [expression('metadata.name In n')], ...term('disk In ssd') }),
      ['disk In (ssd)'],
    ],
  ];
  for (const [given, spec, expected] of rows)
    it(`${given}: ${expected.join('; ') || 'nothing'}`, () =>
      expect(unmetBy(readDemands(spec), node).map(({ text }) => text)).to.deep.equal(expected));
});
