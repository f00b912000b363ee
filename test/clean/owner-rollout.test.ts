import { expect } from 'chai';
import { type RolledKind, readOwnerRollout } from '../../src/clean/owner-rollout.ts';
import type { JsonObject } from '../../src/kit/json.ts';

const DONE = { observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 3, readyReplicas: 3 };

const THREE = { replicas: 3 };
const partitioned = (partition: number) => ({
  replicas: 3,
  updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition } },
});
const daemons = (updatedNumberScheduled: number) => ({
  ...{ observedGeneration: 2, desiredNumberScheduled: 2, updatedNumberScheduled, numberAvailable: 2 },
});

describe("an owner's rollout, as clean reads it", () => {
  /** `expected`: how many of how many are up to date, and how many are available: `whole: 3/3, 3`. */
  const rows: [what: string, kind: RolledKind, spec: JsonObject, status: JsonObject, expected: string][] = [
    ['a Deployment that is whole', 'Deployment', THREE, DONE, 'whole: 3/3, 3'],
    ['one that lacks a pod', 'Deployment', THREE, { ...DONE, availableReplicas: 2 }, 'not whole: 3/3, 2'],
    ['one with an old pod', 'Deployment', THREE, { ...DONE, updatedReplicas: 2 }, 'not whole: 2/3, 3'],
    ['one with a pod too many', 'Deployment', THREE, { ...DONE, replicas: 4 }, 'not whole: 3/3, 3'],
    ['one its controller has not seen', 'Deployment', THREE, { ...DONE, observedGeneration: 1 }, 'not whole: 3/3, 3'],
    ['one without a status', 'Deployment', {}, {}, 'not whole: 0/1, 0'],
    ['one that is paused', 'Deployment', { replicas: 3, paused: true }, DONE, 'its Deployment is paused'],
    ['a StatefulSet that is whole', 'StatefulSet', THREE, DONE, 'whole: 3/3, 3'],
    ['one that lacks a ready pod', 'StatefulSet', THREE, { ...DONE, readyReplicas: 2 }, 'not whole: 3/3, 2'],
    ['one with an old pod', 'StatefulSet', THREE, { ...DONE, updatedReplicas: 2 }, 'not whole: 2/3, 3'],
    [
      'one that waits for a person',
      'StatefulSet',
      { replicas: 3, updateStrategy: { type: 'OnDelete' } },
      DONE,
      'its StatefulSet replaces pods only when they are deleted',
    ],
    ['a partition', 'StatefulSet', partitioned(2), DONE, 'its StatefulSet updates only the pods from number 2 on'],
    ['one with the partition 0', 'StatefulSet', partitioned(0), DONE, 'whole: 3/3, 3'],
    ['a DaemonSet that rolls', 'DaemonSet', {}, daemons(1), 'not whole: 1/2, 2'],
    ['a DaemonSet that has rolled', 'DaemonSet', {}, daemons(2), 'whole: 2/2, 2'],
  ];
  for (const [what, kind, spec, status, expected] of rows) {
    it(`${what}: ${expected}`, () => {
      const { obstacle, isWhole, progress } = readOwnerRollout(kind, { metadata: { generation: 2 }, spec, status });
      const told = expected.replace(/(\d)\/(\d), (\d)/, '$1 of $2 up to date, $3 available');
      expect(obstacle ?? `${isWhole ? 'whole' : 'not whole'}: ${progress}`).to.equal(told);
    });
  }
});
