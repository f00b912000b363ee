import { expect } from 'chai';
import type { JsonObject } from '../../src/kit/json.ts';
import { obstaclesTo, obstacleText, readDemands } from '../../src/placement/fit.ts';
import { readNode } from '../../src/placement/nodes/node.ts';
import { expression, prefers, requires, term } from './affinities.ts';
import { taint, toleration } from './objects.ts';

type GivenNode = {
  readonly name?: string;
  readonly architecture?: string;
  readonly labels?: JsonObject;
  readonly taints?: readonly string[];
  readonly unschedulable?: boolean;
};

function node({ name = 'n1', architecture = 'amd64', labels = {}, taints = [], ...spec }: GivenNode = {}) {
  return readNode({
    metadata: { name, uid: name, labels },
    spec: { ...spec, ...(taints.length > 0 ? { taints: taints.map((text) => taint(text)) } : {}) },
    status: { nodeInfo: { architecture } },
  });
}

const told = (spec: JsonObject, given?: GivenNode) =>
  obstaclesTo(readDemands(spec), node(given)).map(obstacleText).join('; ') || 'fits';

function check(rows: readonly (readonly [given: string, spec: JsonObject, node: GivenNode, expected: string])[]) {
  for (const [given, spec, on, expected] of rows)
    it(`${given}: ${expected}`, () => expect(told(spec, on)).to.equal(expected));
}

const AFFINITY = "node(s) didn't match Pod's node affinity/selector";
const CORDONED = 'node(s) were unschedulable';
const untolerated = (taint: string) => `node(s) had untolerated taint {${taint}}`;

describe('a pod and the taints of a node', () => {
  const MASTER = 'node-role.kubernetes.io/control-plane';
  const two = { taints: ['b=2:NoSchedule', 'a=1:NoExecute'] };
  const UNTOLERATED = untolerated('supported-arch: amd64');
  const tainted = { taints: ['supported-arch=amd64:NoSchedule'] };
  const tolerating = (...texts: string[]) => ({ tolerations: texts.map(toleration) });
  check([
    ['a taint without a toleration', {}, tainted, UNTOLERATED],
    ['the toleration of it', tolerating('supported-arch=amd64:NoSchedule'), tainted, 'fits'],
    ['of another value', tolerating('supported-arch=arm64:NoSchedule'), tainted, UNTOLERATED],
    ['of another effect', tolerating('supported-arch=amd64:NoExecute'), tainted, UNTOLERATED],
    ['of every taint', { tolerations: [{ operator: 'Exists' }] }, tainted, 'fits'],
    ['a taint without a value', {}, { taints: [`${MASTER}:NoSchedule`] }, untolerated(`${MASTER}: `)],
    ['NoExecute', {}, { taints: ['gone=x:NoExecute'] }, untolerated('gone: x')],
    ['PreferNoSchedule keeps nobody away', {}, { taints: ['supported-arch=amd64:PreferNoSchedule'] }, 'fits'],
    ['two taints, one of them tolerated', tolerating('b=2:NoSchedule'), two, untolerated('a: 1')],
    ['two taints, in the order of the node', {}, two, `${untolerated('b: 2')}; ${untolerated('a: 1')}`],
  ]);
});

describe('a pod and a node that is cordoned', () => {
  const cordoned = { unschedulable: true, taints: ['node.kubernetes.io/unschedulable:NoSchedule'] };
  const tolerated = { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' };
  check([
    ['is reported once', {}, cordoned, CORDONED],
    ['without the taint, which comes a moment later', {}, { unschedulable: true }, CORDONED],
    ['a toleration of its taint', { tolerations: [tolerated] }, cordoned, 'fits'],
    ['before other reasons', { nodeSelector: { a: 'b' } }, cordoned, `${CORDONED}; ${AFFINITY}`],
  ]);
});

describe("a pod's nodeName", () => {
  check([
    ['of this node', { nodeName: 'n1' }, {}, 'fits'],
    ['of another', { nodeName: 'n2' }, {}, "node(s) didn't match the requested node name"],
    ['empty', { nodeName: '' }, {}, 'fits'],
  ]);
});

describe("a pod's nodeSelector", () => {
  const TAINTED = { taints: ['x=y:NoSchedule'] };
  check([
    ['that a label satisfies', { nodeSelector: { disk: 'ssd' } }, { labels: { disk: 'ssd' } }, 'fits'],
    ['of another value', { nodeSelector: { disk: 'ssd' } }, { labels: { disk: 'hdd' } }, AFFINITY],
    ['of a label with an empty value', { nodeSelector: { a: '' } }, {}, AFFINITY],
    ['named like a method of objects', { nodeSelector: { toString: 'x' } }, {}, AFFINITY],
    ['after the taints', { nodeSelector: { a: '1' } }, TAINTED, `${untolerated('x: y')}; ${AFFINITY}`],
  ]);
});

describe("a pod's required node affinity", () => {
  const required = (...terms: readonly JsonObject[]) => ({ affinity: requires(...terms) });
  const field = (text: string) => ({ matchFields: [expression(text)] });
  const labels = { zone: 'a', cores: '16', empty: '' };
  const rows: [given: string, term: JsonObject, matches: boolean][] = [
    ['In with the value', term('zone In b,a'), true],
    ['In without it', term('zone In b'), false],
    ['In of a label that is absent', term('disk In a'), false],
    ['In without values', term('zone In'), false],
    ['NotIn with another value', term('zone NotIn b'), true],
    ['NotIn with the value', term('zone NotIn a'), false],
    ['NotIn of a label that is absent', term('disk NotIn a'), true],
    ['NotIn without values', term('disk NotIn'), false],
    ['Exists of an empty value', term('empty Exists'), true],
    ['Exists of a label that is absent', term('disk Exists'), false],
    ['Exists with a value', term('zone Exists a'), false],
    ['DoesNotExist of a label that is absent', term('disk DoesNotExist'), true],
    ['DoesNotExist of one that is there', term('zone DoesNotExist'), false],
    ['DoesNotExist with a value', term('disk DoesNotExist a'), false],
    ['Gt a smaller number', term('cores Gt 8'), true],
    ['Gt by number, not by text', term('cores Gt 9'), true],
    ['Gt the same number', term('cores Gt 16'), false],
    ['Lt a greater number', term('cores Lt 32'), true],
    ['Lt the same number', term('cores Lt 16'), false],
    ['Lt beyond what a double holds', term('cores Lt 9007199254740993'), true],
    ['Lt beyond 64 bits', term('cores Lt 9223372036854775808'), false],
    ['Gt of a label that is not a number', term('zone Gt 1'), false],
    ['Gt of a label that is absent', term('disk Gt 1'), false],
    ['Gt with two values', term('cores Gt 1,2'), false],
    ['Gt with no number', term('cores Gt many'), false],
    ['an operator that there is not', term('zone Like a'), false],
    ['two expressions, one false', term('zone Exists', 'disk Exists'), false],
    ['the name In', field('metadata.name In n1'), true],
    ['another name In', field('metadata.name In n2'), false],
    ['another name NotIn', field('metadata.name NotIn n2'), true],
    ['the name NotIn', field('metadata.name NotIn n1'), false],
    ['two names In, which is refused', field('metadata.name In n1,n2'), false],
    ['another field', field('spec.nodeName In n1'), false],
    ['a field and an expression', { ...field('metadata.name In n1'), ...term('disk Exists') }, false],
    ['an empty term', {}, false],
    ['a term with empty lists', { matchExpressions: [], matchFields: [] }, false],
  ];
  for (const [given, term, matches] of rows)
    it(`${given}: ${matches ? 'matches' : 'does not match'}`, () =>
      expect(told(required(term), { labels })).to.equal(matches ? 'fits' : AFFINITY));

  check([
    ['without terms matches nothing', required(), { labels }, AFFINITY],
    ['one of two terms is enough', required(term('zone In b'), term('zone Exists')), { labels }, 'fits'],
    ['an empty term beside one that matches', required({}, term('zone Exists')), { labels }, 'fits'],
    ['and the nodeSelector', { nodeSelector: { disk: 'ssd' }, ...required(term('zone Exists')) }, { labels }, AFFINITY],
    ['preferences ask for nothing', { affinity: prefers('disk Exists') }, { labels }, 'fits'],
    ['of no shape at all', { affinity: 'x', nodeSelector: 3, tolerations: {} }, { labels }, 'fits'],
  ]);
});
