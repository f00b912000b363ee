import { expect } from 'chai';
import { ApiError, ConnectionError, isConflict, LeaseLostError } from '../../src/kube/errors.ts';
import { createWriter, pathOf } from '../../src/kube/writer.ts';
import { at } from '../simulator/json.ts';
import { type Server, startServer } from './cluster.ts';

const never = new AbortController().signal;
const POD = { kind: 'Pod', namespace: 'default', name: 'p', action: 'tolerate' } as const;
const OURS = { key: 'k', operator: 'Equal', value: 'v', effect: 'NoSchedule' } as const;
const ADD = { op: 'add', path: '/spec/tolerations/-', value: OURS } as const;
const test = (value: unknown) => ({ op: 'test', path: '/metadata/uid', value }) as const;

describe('the writer', () => {
  let server: Server;
  beforeEach(async () => {
    server = await startServer();
  });
  afterEach(() => server.stop());

  const failure = async (promise: Promise<unknown>): Promise<unknown> => promise.catch((error: unknown) => error);

  it('sends a JSON Patch as its field manager, and returns the result', async () => {
    const pod = await server.cluster.createPod({ name: 'p' });
    const write = createWriter(server.client, () => true);
    const written = await write(POD, [test(at(pod, 'metadata', 'uid')), ADD], never);
    expect(written.kind).to.equal('written');
    expect(at(written, 'object', 'metadata', 'name')).to.equal('p');
    expect(server.asked('/pods/p')).to.deep.equal([
      'PATCH /api/v1/namespaces/default/pods/p?fieldManager=archaware-controller',
    ]);
  });

  it('reports a failed test as a conflict, and a missing object as gone', async () => {
    await server.cluster.createPod({ name: 'p' });
    const write = createWriter(server.client, () => true);
    expect(await write(POD, [test('another'), ADD], never)).to.deep.equal({ kind: 'conflict' });
    expect(await write({ ...POD, name: 'q' }, [ADD], never)).to.deep.equal({ kind: 'gone' });
  });

  it('sends nothing if the Lease is not fresh', async () => {
    const write = createWriter(server.client, () => false);
    expect(await failure(write(POD, [ADD], never))).to.be.instanceOf(LeaseLostError);
    expect(server.asked('')).to.deep.equal([]);
  });

  it('throws for anything else: a refusal, a field that may not be changed, a lost connection', async () => {
    await server.cluster.createPod({ name: 'p' });
    const write = createWriter(server.client, () => true);
    const rename = { op: 'replace', path: '/spec/containers/0/name', value: OURS } as const;
    expect(await failure(write(POD, [rename], never))).to.be.instanceOf(ApiError);
    server.cluster.faults.inject({ method: 'PATCH', times: 1, status: 403 });
    expect(await failure(write(POD, [ADD], never)))
      .to.be.instanceOf(ApiError)
      .and.to.have.property('status', 403);
    server.cluster.faults.inject({ method: 'PATCH', times: 1, loseAnswer: true });
    expect(await failure(write(POD, [ADD], never))).to.be.instanceOf(ConnectionError);
  });

  it('knows the paths of what it writes', () => {
    expect(pathOf({ kind: 'Node', name: 'n' })).to.equal('/api/v1/nodes/n');
    expect(pathOf({ kind: 'DaemonSet', namespace: 'a', name: 'b' })).to.equal(
      '/apis/apps/v1/namespaces/a/daemonsets/b',
    );
  });
});

describe('a 422', () => {
  const TEST_FAILED = 'the server rejected our request due to an error in our request';
  const rows = [
    ['a failed test', { message: TEST_FAILED, details: {} }, true],
    ["a policy's denial", { message: `denied: ${TEST_FAILED}`, details: { causes: [{ message: 'no' }] } }, false],
    ['a field error', { message: 'spec: Forbidden', details: { causes: [{ field: 'spec' }] } }, false],
  ] as const;
  for (const [what, body, conflict] of rows) {
    it(`of ${what} is ${conflict ? 'a' : 'not a'} conflict`, () => {
      expect(isConflict(new ApiError(422, body, 'patch p'))).to.equal(conflict);
    });
  }
});
