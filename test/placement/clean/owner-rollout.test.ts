import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import { type RolledKind, readOwnerRollout } from '../../../src/placement/clean/owner-rollout.ts';

const DONE: JsonObject = {
  observedGeneration: 2,
  replicas: 3,
  updatedReplicas: 3,
  availableReplicas: 3,
  readyReplicas: 3,
};

describe("an owner's rollout, as clean reads it", () => {
  const rows: [what: string, kind: RolledKind, spec: JsonObject, status: JsonObject, expected: string][] = [
    ['a Deployment that is whole', 'Deployment', { replicas: 3 }, DONE, 'whole: 3 of 3 up to date, 3 available'],
    [
      'one that lacks a pod',
      'Deployment',
      { replicas: 3 },
      { ...DONE, availableReplicas: 2 },
      'not whole: 3 of 3 up to date, 2 available',
    ],
    [
      'one with an old pod',
      'Deployment',
      { replicas: 3 },
      { ...DONE, updatedReplicas: 2 },
      'not whole: 2 of 3 up to date, 3 available',
    ],
    [
      'one with a pod too many',
      'Deployment',
      { replicas: 3 },
      { ...DONE, replicas: 4 },
      'not whole: 3 of 3 up to date, 3 available',
    ],
    [
      'one whose controller has not seen it',
      'Deployment',
      { replicas: 3 },
      { ...DONE, observedGeneration: 1 },
      'not whole: 3 of 3 up to date, 3 available',
    ],
    ['one without a status', 'Deployment', {}, {}, 'not whole: 0 of 1 up to date, 0 available'],
    ['one that is paused', 'Deployment', { replicas: 3, paused: true }, DONE, 'its Deployment is paused'],
    ['a StatefulSet that is whole', 'StatefulSet', { replicas: 3 }, DONE, 'whole: 3 of 3 up to date, 3 available'],
    [
      'one that lacks a ready pod',
      'StatefulSet',
      { replicas: 3 },
      { ...DONE, readyReplicas: 2 },
      'not whole: 3 of 3 up to date, 2 available',
    ],
    [
      'one with an old pod',
      'StatefulSet',
      { replicas: 3 },
      { ...DONE, updatedReplicas: 2 },
      'not whole: 2 of 3 up to date, 3 available',
    ],
    [
      'one that waits for a person',
      'StatefulSet',
      { replicas: 3, updateStrategy: { type: 'OnDelete' } },
      DONE,
      'its StatefulSet replaces pods only when they are deleted',
    ],
    [
      'one with a partition',
      'StatefulSet',
      { replicas: 3, updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 2 } } },
      DONE,
      'its StatefulSet updates only the pods from number 2 on',
    ],
    [
      'one with the partition 0',
      'StatefulSet',
      { replicas: 3, updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } } },
      DONE,
      'whole: 3 of 3 up to date, 3 available',
    ],
    [
      'a DaemonSet that rolls',
      'DaemonSet',
      {},
      { observedGeneration: 2, desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2 },
      'not whole: 1 of 2 up to date, 2 available',
    ],
    [
      'a DaemonSet that has rolled',
      'DaemonSet',
      {},
      { observedGeneration: 2, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2 },
      'whole: 2 of 2 up to date, 2 available',
    ],
  ];
  for (const [what, kind, spec, status, expected] of rows) {
    it(`${what}: ${expected}`, () => {
      const { obstacle, isWhole, progress } = readOwnerRollout(kind, { metadata: { generation: 2 }, spec, status });
      expect(obstacle ?? `${isWhole ? 'whole' : 'not whole'}: ${progress}`).to.equal(expected);
    });
  }
});
