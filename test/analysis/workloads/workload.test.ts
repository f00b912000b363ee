import { expect } from 'chai';
import { readWorkload, readWorkloadSubject, wantedReplicas } from '../../../src/analysis/workloads/workload.ts';
import type { JsonObject } from '../../../src/kit/json.ts';
import { settings } from '../../placement/objects.ts';

const template = { metadata: { labels: { app: 'x' } }, spec: { containers: [{ image: 'nginx' }], nodeName: 'n1' } };

function object(kind: string, spec: JsonObject = { template }, metadata: JsonObject = {}): JsonObject {
  return { kind, metadata: { name: 'w', namespace: 'shop', ...metadata }, spec };
}

describe('what can be explained', () => {
  const rows: [kind: string, object: JsonObject, images: readonly string[] | undefined][] = [
    ['a Pod', { ...object('Pod', template.spec), metadata: template.metadata }, ['nginx']],
    ['a Deployment', object('Deployment'), ['nginx']],
    ['a ReplicaSet', object('ReplicaSet'), ['nginx']],
    ['a StatefulSet', object('StatefulSet'), ['nginx']],
    ['a DaemonSet', object('DaemonSet'), ['nginx']],
    ['a Job', object('Job'), ['nginx']],
    ['a CronJob', object('CronJob', { jobTemplate: { spec: { template } } }), ['nginx']],
    ['a CronJob as if it were a Job', object('CronJob'), []],
    ['a Deployment without anything in it', { kind: 'Deployment' }, []],
    ["OpenKruise's DaemonSet", { ...object('DaemonSet'), apiVersion: 'apps.kruise.io/v1alpha1' }, ['nginx']],
    ["Volcano's Job: other templates", { ...object('Job', {}), apiVersion: 'batch.volcano.sh/v1alpha1' }, undefined],
    ['a Service', object('Service'), undefined],
    ['an object without a kind', {}, undefined],
    ['a kind named like a method of objects', object('toString'), undefined],
  ];
  for (const [given, read, images] of rows) {
    it(`${given}: ${images?.join(', ') ?? 'no'}`, () => {
      const workload = readWorkload(read);
      expect(workload?.template.images.map(({ image }) => image)).to.deep.equal(images);
      if (images?.length) {
        expect(workload?.template.labels).to.deep.equal({ app: 'x' });
        expect(workload?.demands.nodeName).to.equal('n1');
      }
    });
  }

  it('names the API group of a kind that only has the name of a kind of Kubernetes, and does not take it for the latter', () => {
    const kruise = readWorkload({ ...object('DaemonSet'), apiVersion: 'apps.kruise.io/v1alpha1' });
    expect(kruise).to.deep.include({ kind: 'DaemonSet.apps.kruise.io', daemonSet: undefined });
    expect(readWorkload({ ...object('DaemonSet'), apiVersion: 'apps/v1' })?.kind).to.equal('DaemonSet');
  });

  it('adds the tolerations that the DaemonSet controller gives its pods', () => {
    const keys = (spec: JsonObject) =>
      readWorkload(object('DaemonSet', { template: { spec } }))?.demands.tolerations.map(({ key }) => String(key)) ??
      [];
    expect(keys({}))
      .to.include('node.kubernetes.io/unschedulable')
      .and.not.include('node.kubernetes.io/network-unavailable');
    expect(keys({ hostNetwork: true, tolerations: [{ key: 'own' }] })).to.include.members([
      'own',
      'node.kubernetes.io/network-unavailable',
    ]);
    expect(readWorkload(object('DaemonSet'))?.template.tolerations).to.equal(undefined);
  });

  it("has a pod's gates and the scheduler's last message", () => {
    const conditions = [{ type: 'PodScheduled', status: 'False', message: '0/2 nodes are available' }];
    const pod = { ...object('Pod', { schedulingGates: [{ name: 'a.example.com/g' }] }), status: { conditions } };
    expect(readWorkload(pod)).to.deep.include({ gates: ['a.example.com/g'], scheduler: '0/2 nodes are available' });
    const bound = { ...pod, status: { conditions: [{ type: 'PodScheduled', status: 'True', message: 'x' }] } };
    expect(readWorkload(bound)).to.deep.include({ scheduler: undefined });
  });
});

const NAMESPACE = { name: 'shop', labels: {}, preferred: undefined };

describe('what can be explained is skipped', () => {
  const ignore = { labels: { 'archaware.dev/ignore': 'true' } };
  const rows: [given: string, object: JsonObject, expected: string | undefined][] = [
    ['a Deployment', object('Deployment'), undefined],
    ['its own label says nothing of its pods', object('Deployment', { template }, ignore), undefined],
    ["its template's label does", object('Deployment', { template: { metadata: ignore } }), 'ignored'],
    ["a DaemonSet's own label", object('DaemonSet', { template }, ignore), 'ignored'],
    ['a pod that has finished', { ...object('Pod'), status: { phase: 'Succeeded' } }, 'terminal'],
  ];
  for (const [given, read, expected] of rows) {
    it(`${given}: ${expected ?? 'no'}`, () => {
      const workload = readWorkload(read);
      expect(workload && readWorkloadSubject(workload, NAMESPACE, settings()).skipped).to.equal(expected);
    });
  }
  it('a DaemonSet where pods.daemonSets is ignore: daemonsets-ignored', () => {
    const workload = readWorkload(object('DaemonSet'));
    const subject = workload && readWorkloadSubject(workload, NAMESPACE, settings({ daemonSets: 'ignore' }));
    expect(subject?.skipped).to.equal('daemonsets-ignored');
  });
});

describe('the wanted number of pods', () => {
  const rows: readonly (readonly [title: string, kind: string, object: JsonObject, expected: number | undefined])[] = [
    ['a Deployment', 'Deployment', { spec: { replicas: 3 } }, 3],
    ['a Deployment in a file that names no number', 'Deployment', { spec: {} }, 1],
    ['a StatefulSet that is scaled to zero', 'StatefulSet', { spec: { replicas: 0 } }, 0],
    ['a DaemonSet', 'DaemonSet', { status: { desiredNumberScheduled: 7 } }, 7],
    ['a DaemonSet in a file', 'DaemonSet', {}, 1],
    ['a Job', 'Job', { spec: { parallelism: 4, completions: 10 } }, 4],
    ['the rest of a Job', 'Job', { spec: { parallelism: 4, completions: 10 }, status: { succeeded: 8 } }, 2],
    ['a suspended Job', 'Job', { spec: { parallelism: 4, suspend: true } }, 0],
    ['a finished Job', 'Job', { status: { conditions: [{ type: 'Complete', status: 'True' }] } }, undefined],
    ['a failed Job', 'Job', { status: { conditions: [{ type: 'Failed', status: 'True' }] } }, undefined],
    ['a CronJob, as one run', 'CronJob', { spec: { jobTemplate: { spec: { parallelism: 2 } } } }, 2],
    ['a suspended CronJob', 'CronJob', { spec: { suspend: true } }, 0],
    ['a pod', 'Pod', {}, 1],
  ];
  for (const [title, kind, object, expected] of rows)
    it(`of ${title} is ${expected}`, () => expect(wantedReplicas(kind, object)).to.equal(expected));
});
