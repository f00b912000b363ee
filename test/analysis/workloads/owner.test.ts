import { expect } from 'chai';
import { workloadOf } from '../../../src/analysis/workloads/overview.ts';
import { readPod } from '../../../src/placement/objects/pod.ts';

const owned = (kind: string, name: string, labels: Readonly<Record<string, string>> = {}, apiVersion = 'apps/v1') =>
  readPod({
    metadata: { name: 'p', namespace: 'shop', labels, ownerReferences: [{ controller: true, apiVersion, kind, name }] },
  });

describe('the workload of a pod', () => {
  const rows: readonly (readonly [what: string, pod: ReturnType<typeof readPod>, expected: string])[] = [
    ['without an owner is the pod', readPod({ metadata: { name: 'p', namespace: 'shop' } }), 'Pod shop/p'],
    ['of a StatefulSet', owned('StatefulSet', 'db'), 'StatefulSet shop/db'],
    [
      "of OpenKruise's DaemonSet has its API group, as kubectl writes it",
      owned('DaemonSet', 'agent', {}, 'apps.kruise.io/v1alpha1'),
      'DaemonSet.apps.kruise.io shop/agent',
    ],
    [
      "of an Argo Rollout is the ReplicaSet: its name does not say the Rollout's",
      owned('ReplicaSet', 'web-6d4cf', { 'rollouts-pod-template-hash': '6d4cf' }),
      'ReplicaSet shop/web-6d4cf',
    ],
    [
      'of a ReplicaSet is its Deployment',
      owned('ReplicaSet', 'web-6d4cf', { 'pod-template-hash': '6d4cf' }),
      'Deployment shop/web',
    ],
    ['of a ReplicaSet without a hash is the ReplicaSet', owned('ReplicaSet', 'web'), 'ReplicaSet shop/web'],
    [
      'of a ReplicaSet with another name is the ReplicaSet',
      owned('ReplicaSet', 'web', { 'pod-template-hash': '6d4cf' }),
      'ReplicaSet shop/web',
    ],
  ];
  for (const [what, pod, expected] of rows) {
    it(what, () => {
      const { kind, namespace, name } = workloadOf(pod);
      expect(`${kind} ${namespace}/${name}`).to.equal(expected);
    });
  }
});
