import { expect } from 'chai';
import { createInventory } from '../../../src/analysis/readiness/inventory.ts';
import type { JsonObject } from '../../../src/kit/json.ts';
import { expression, requires } from '../../placement/affinities.ts';
import { object, owned } from './world.ts';

const uid = (value: string) => ({ uid: value });
const deployment = object({ metadata: uid('d1'), spec: { replicas: 2 } });
const replicaSet = object({
  kind: 'ReplicaSet',
  name: 'web-7d4',
  metadata: { ...uid('r1'), ...owned('Deployment', 'web', 'd1') },
  spec: { replicas: 2 },
});
/** A pod of the ReplicaSet `web-7d4`, with the label that the Deployment controller sets. */
const ofTemplate = (hash: string) => ({
  ...owned('ReplicaSet', 'web-7d4', 'r1'),
  labels: { 'pod-template-hash': hash },
});
const podOf = (name: string, owner: JsonObject, images = ['web']) =>
  object({ kind: 'Pod', name, images, metadata: owner });
const rollout = owned('Rollout', 'api', 'x1');
const ofReplicaSet = podOf('web-7d4-a', owned('ReplicaSet', 'web-7d4', 'r1'));
const ofRollout = (revision: number, replicas: number) =>
  object({
    kind: 'ReplicaSet',
    name: `api-${revision}`,
    metadata: { uid: `r${revision}`, ...rollout },
    spec: { replicas },
  });
const daemonOn = (name: string) => {
  const affinity = requires({ matchFields: [expression(`metadata.name In ${name}`)] });
  return object({ kind: 'Pod', name: `agent-${name}`, metadata: owned('DaemonSet', 'agent', 'g1'), pod: { affinity } });
};

function units(objects: readonly JsonObject[]): string[] {
  const inventory = createInventory();
  for (const each of objects) inventory.add(each);
  return inventory.units().map(({ kind, name, parts }) => {
    const replicas = parts.reduce((sum, part) => sum + part.replicas, 0);
    return `${kind} ${name}: ${replicas} in ${parts.length}`;
  });
}

describe('the inventory of the report', () => {
  const rows: readonly (readonly [title: string, objects: readonly JsonObject[], expected: readonly string[]])[] = [
    ['counts a Deployment once, with what is its', [deployment, replicaSet, ofReplicaSet], ['Deployment web: 2 in 1']],
    [
      'counts the pods of a Deployment at the Deployment if its ReplicaSet could not be read',
      [deployment, podOf('web-7d4-a', ofTemplate('7d4')), podOf('web-7d4-b', ofTemplate('7d4'))],
      ['Deployment web: 2 in 1'],
    ],
    [
      'counts them at the ReplicaSet if its name is no name of a Deployment that was read',
      [deployment, podOf('web-7d4-a', ofTemplate('99x')), podOf('web-7d4-b', owned('ReplicaSet', 'web-7d4', 'r1'))],
      ['Deployment web: 2 in 1', 'ReplicaSet web-7d4: 2 in 2'],
    ],
    ['counts the same in any order', [ofReplicaSet, replicaSet, deployment], ['Deployment web: 2 in 1']],
    [
      'counts the Job of a CronJob at the CronJob',
      [
        object({ kind: 'CronJob', name: 'nightly', metadata: uid('c1') }),
        object({ kind: 'Job', name: 'nightly-1', metadata: { ...uid('j1'), ...owned('CronJob', 'nightly', 'c1') } }),
        podOf('nightly-1-a', owned('Job', 'nightly-1', 'j1')),
      ],
      ['CronJob nightly: 1 in 1'],
    ],
    ['names an unread one after the owner of its ReplicaSet', [replicaSet, ofReplicaSet], ['Deployment web: 2 in 1']],
    ['counts ReplicaSets of an unread owner, no old ones', [ofRollout(1, 0), ofRollout(2, 4)], ['Rollout api: 4 in 1']],
    ['takes daemon pods of several nodes for one template', ['a', 'b'].map(daemonOn), ['DaemonSet agent: 2 in 1']],
    [
      'keeps a StatefulSet that an operator owns',
      [object({ kind: 'StatefulSet', name: 'db', metadata: owned('Postgres', 'db', 'p1') })],
      ['StatefulSet db: 1 in 1'],
    ],
    ['keeps a bare pod', [podOf('debug', {})], ['Pod debug: 1 in 1']],
    [
      'leaves out what has finished, is being deleted or mirrors a file',
      [
        object({ kind: 'Pod', name: 'done', status: { phase: 'Succeeded' } }),
        object({ kind: 'Pod', name: 'going', metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }),
        object({ kind: 'Pod', name: 'etcd', annotations: { 'kubernetes.io/config.mirror': 'x' } }),
        object({ kind: 'Job', name: 'once', status: { conditions: [{ type: 'Complete', status: 'True' }] } }),
      ],
      [],
    ],
    ['leaves out other kinds', [{ kind: 'Service', metadata: { name: 'web' } }], []],
  ];
  for (const [title, objects, expected] of rows) it(title, () => expect(units(objects)).to.deep.equal(expected));

  it('counts a pod once where a page of the list is sent again, and names 1,000 that wait', () => {
    const inventory = createInventory();
    const at = (name: string, nodeName?: string) =>
      object({
        kind: 'Pod',
        name,
        metadata: { ...uid(name), ...owned('ReplicaSet', 'web-7d4', 'r1') },
        pod: { nodeName },
      });
    const page = [at('a', 'n1'), at('b', 'n1'), ...Array.from({ length: 1_200 }, (_, index) => at(`w-${index}`))];
    for (const each of [deployment, replicaSet, ...page, ...page]) inventory.add(each);
    expect([...(inventory.units()[0]?.runsOn ?? [])]).to.deep.equal([['n1', 2]]);
    expect(inventory.waiting()).to.have.lengthOf(1_000);
  });
});
