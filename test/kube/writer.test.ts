import { expect } from 'chai';
import { ApiError, ConnectionError, isConflict, LeaseLostError } from '../../src/kube/errors.ts';
import { createEvictor, createWriter, pathOf } from '../../src/kube/writer.ts';
import { at, text } from '../simulator/json.ts';
import { type Server, startServer } from './cluster.ts';

const never = new AbortController().signal;
const POD = { kind: 'Pod', namespace: 'default', name: 'p', action: 'tolerate' } as const;
const OURS = { key: 'k', operator: 'Equal', value: 'v', effect: 'NoSchedule' } as const;
const ADD = { op: 'add', path: '/spec/tolerations/-', value: OURS } as const;
const test = (value: unknown) => ({ op: 'test', path: '/metadata/uid', value }) as const;

let server: Server;
function serve(): void {
  beforeEach(async () => {
    server = await startServer();
  });
  afterEach(() => server.stop());
}
const failure = async (promise: Promise<unknown>): Promise<unknown> => promise.catch((error: unknown) => error);

describe('the writer', () => {
  serve();

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

describe('an eviction', () => {
  serve();
  let pod: { namespace: string; name: string; uid: string };
  beforeEach(async () => {
    const created = await server.cluster.createPod({ name: 'a' });
    pod = { namespace: 'default', name: 'a', uid: text(at(created, 'metadata', 'uid')) };
  });

  const evict = (leads = true, which = pod) => createEvictor(server.client, () => leads).evict(which, never);
  const fetch = () => createEvictor(server.client, () => true).fetch(pod, never);

  it('removes the pod, and finds it gone the next time', async () => {
    expect(at(await fetch(), 'metadata', 'uid')).to.equal(pod.uid);
    expect([await evict(), await evict()]).to.deep.equal([{ kind: 'evicted' }, { kind: 'gone' }]);
    expect(await fetch()).to.equal(undefined);
  });

  it('leaves another pod of the same name alone', async () => {
    expect(await evict(true, { ...pod, uid: 'another' })).to.deep.equal({ kind: 'gone' });
    expect(await fetch()).not.to.equal(undefined);
  });

  it('is not sent if the Lease is not fresh', async () => {
    expect(await failure(evict(false))).to.be.instanceOf(LeaseLostError);
    expect(server.asked('/eviction')).to.deep.equal([]);
  });

  const rows: [given: string, status: number, headers: Record<string, string>, expected: RegExp | 'thrown'][] = [
    ['a budget that does not allow it', 429, {}, /a PodDisruptionBudget does not allow it/],
    ['a server that is overloaded', 429, { 'retry-after': '7' }, 'thrown'],
    ['two budgets', 500, {}, /two PodDisruptionBudgets/],
    ['a webhook that forbids it', 403, {}, /the API server refuses it \(403\)/],
    ['a server that is shutting down', 503, {}, 'thrown'],
  ];
  for (const [given, status, headers, expected] of rows) {
    it(`handles ${given}`, async () => {
      server.cluster.faults.inject({ method: 'POST', path: /\/eviction$/, status, headers });
      const ended = await evict().catch((error: unknown) => (error instanceof ApiError ? 'thrown' : error));
      expect(at(ended, 'reason') ?? ended).to.match(expected === 'thrown' ? /^thrown$/ : expected);
    });
  }
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
