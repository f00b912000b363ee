import { expect } from 'chai';
import { lookAtOwners } from '../../src/clean/owner-pods.ts';
import type { JsonObject } from '../../src/kit/json.ts';
import { ApiError } from '../../src/kube/errors.ts';

const METADATA = { uid: 'u' };
const DELETED = { reason: 'its ReplicaSet was deleted' };

/** Looks at one owner; the server answers with this object or error. */
async function look(kind: string, answer: JsonObject | ApiError) {
  const asked: string[] = [];
  const nothing = async () => undefined;
  const client = {
    host: 'x',
    addresses: () => new Set<string>(),
    watch: nothing,
    close: nothing,
    async request(_verb: string, path: string) {
      if (path.includes('/pods')) return { metadata: {}, items: [] };
      asked.push(path);
      if (answer instanceof ApiError) throw answer;
      return answer;
    },
  };
  const owner = { kind, apiVersion: 'apps/v1', name: 'web', uid: 'u' };
  const states = await lookAtOwners(
    client,
    [{ namespace: 'shop', owner, templateHash: undefined }],
    new AbortController().signal,
  );
  return { wanted: states.get('u')?.wanted, asked };
}

describe('how many pods an owner wants', () => {
  const rows: [what: string, kind: string, answer: JsonObject | ApiError, wanted: unknown][] = [
    ['is in the spec of a ReplicaSet', 'ReplicaSet', { metadata: METADATA, spec: { replicas: 3 } }, 3],
    ['is in the spec of a StatefulSet', 'StatefulSet', { metadata: METADATA, spec: { replicas: 0 } }, 0],
    [
      'is in the spec of a ReplicationController',
      'ReplicationController',
      { metadata: METADATA, spec: { replicas: 2 } },
      2,
    ],
    ['is 1 where nobody says it', 'ReplicaSet', { metadata: METADATA, spec: {} }, 1],
    [
      'is in the status of a DaemonSet, which follows its nodes',
      'DaemonSet',
      { metadata: METADATA, status: { desiredNumberScheduled: 5 } },
      5,
    ],
    ['is nothing if the owner is gone', 'ReplicaSet', new ApiError(404, { reason: 'NotFound' }, 'get'), DELETED],
    ['is nothing if another owner has its name', 'ReplicaSet', { metadata: { uid: 'other' }, spec: {} }, DELETED],
    [
      'is nothing if the owner is being deleted, as it creates no pod any more',
      'ReplicaSet',
      { metadata: { ...METADATA, deletionTimestamp: 'x' }, spec: { replicas: 3 } },
      DELETED,
    ],
    [
      'is not known without the right to read the owner',
      'ReplicaSet',
      new ApiError(403, {}, 'get'),
      {
        reason:
          'these credentials may not read its ReplicaSet, which says how many pods it wants; run clean as an administrator',
      },
    ],
  ];
  for (const [what, kind, answer, expected] of rows) {
    it(what, async () => {
      expect((await look(kind, answer)).wanted).to.deep.equal(expected);
    });
  }

  it('is asked by the path of the kind', async () => {
    const object = { metadata: METADATA, spec: {} };
    expect((await look('StatefulSet', object)).asked).to.deep.equal(['/apis/apps/v1/namespaces/shop/statefulsets/web']);
    expect((await look('ReplicationController', object)).asked).to.deep.equal([
      '/api/v1/namespaces/shop/replicationcontrollers/web',
    ]);
  });

  it('ends the work if the server fails otherwise', async () => {
    const error: unknown = await look('ReplicaSet', new ApiError(500, {}, 'get')).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(ApiError);
  });
});
