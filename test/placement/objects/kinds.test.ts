import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import {
  isDaemonSet,
  isDaemonSetOfAnyGroup,
  isForOneNode,
  isOtherDaemonSet,
  shownKind,
} from '../../../src/placement/objects/kinds.ts';
import { expression, requires, term } from '../affinities.ts';

const KRUISE = 'apps.kruise.io/v1alpha1';
const nodes = (...names: readonly string[]) => ({ matchFields: [expression(`metadata.name In ${names}`)] });
const IN_ZONE = term('zone In a');
const required = (...terms: readonly JsonObject[]): JsonObject => ({ affinity: requires(...terms) });

describe('the kind of an owner', () => {
  type Row = readonly [kind: string, apiVersion: string, shown: string, is: 'served' | 'other' | 'none'];
  const rows: readonly Row[] = [
    ['DaemonSet', 'apps/v1', 'DaemonSet', 'served'],
    ['DaemonSet', 'apps/v1beta2', 'DaemonSet', 'served'],
    ['DaemonSet', '', 'DaemonSet', 'served'],
    ['DaemonSet', KRUISE, 'DaemonSet.apps.kruise.io', 'other'],
    ['DaemonSet', 'v1', 'DaemonSet.', 'other'],
    ['ExtendedDaemonSetReplicaSet', 'datadoghq.com/v1alpha1', 'ExtendedDaemonSetReplicaSet', 'other'],
    ['StatefulSet', KRUISE, 'StatefulSet.apps.kruise.io', 'none'],
    ['CloneSet', KRUISE, 'CloneSet', 'none'],
    ['Job', 'batch.volcano.sh/v1alpha1', 'Job.batch.volcano.sh', 'none'],
    ['Job', 'batch/v1', 'Job', 'none'],
    ['Rollout', 'argoproj.io/v1alpha1', 'Rollout', 'none'],
    ['Node', 'v1', 'Node', 'none'],
    ['toString', 'v1', 'toString', 'none'],
  ];
  for (const [kind, apiVersion, shown, is] of rows) {
    it(`${kind} of ${apiVersion || 'a list'} is shown as ${shown}; a DaemonSet: ${is}`, () => {
      const owner = { kind, apiVersion };
      expect(shownKind(owner)).to.equal(shown);
      expect([isDaemonSet(owner), isOtherDaemonSet(owner)]).to.deep.equal([is === 'served', is === 'other']);
    });
  }
});

describe('a kind as it is shown', () => {
  for (const [kind, expected] of [
    ['DaemonSet', true],
    ['DaemonSet.apps.kruise.io', true],
    ['DaemonSets', false],
    ['StatefulSet.apps.kruise.io', false],
  ] as const) {
    it(`${kind} is${expected ? '' : ' not'} a DaemonSet of any API group`, () =>
      expect(isDaemonSetOfAnyGroup(kind)).to.equal(expected));
  }
});

describe('a pod for one node', () => {
  type Row = readonly [
    given: string,
    kind: string | undefined,
    apiVersion: string,
    spec: JsonObject,
    expected: boolean,
  ];
  const rows: readonly Row[] = [
    ['of a DaemonSet', 'DaemonSet', 'apps/v1', {}, true],
    ["of OpenKruise's DaemonSet", 'DaemonSet', KRUISE, required(nodes('n1')), true],
    ['of another controller that names its node', 'NodeAgent', 'example.com/v1', required(nodes('n1')), true],
    ['of one that names it in each term', 'NodeAgent', 'example.com/v1', required(nodes('n1'), nodes('n1')), true],
    ['of one that names it in some terms', 'NodeAgent', 'example.com/v1', required(nodes('n1'), IN_ZONE), false],
    ['of one that names several nodes', 'NodeAgent', 'example.com/v1', required(nodes('n1', 'n2')), false],
    ['of one that has no term', 'NodeAgent', 'example.com/v1', required(), false],
    ['of a CloneSet', 'CloneSet', KRUISE, required(IN_ZONE), false],
    ['of a ReplicaSet whose author names a node', 'ReplicaSet', 'apps/v1', required(nodes('n1')), false],
    ['without an owner', undefined, '', required(nodes('n1')), false],
  ];
  for (const [given, kind, apiVersion, spec, expected] of rows) {
    it(`${given}: ${expected}`, () => {
      const owner = kind === undefined ? undefined : { kind, apiVersion };
      expect(isForOneNode(owner, spec)).to.equal(expected);
    });
  }
});
