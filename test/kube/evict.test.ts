import { expect } from 'chai';
import { ApiError, LeaseLostError } from '../../src/kube/errors.ts';
import { createEvictor } from '../../src/kube/writer.ts';
import { at, text } from '../simulator/json.ts';
import { type Server, startServer } from './cluster.ts';

const NEVER = new AbortController().signal;
const EVICTIONS = /\/eviction$/;

describe('an eviction', () => {
  let server: Server;
  let pod: { namespace: string; name: string; uid: string };
  beforeEach(async () => {
    server = await startServer();
    const created = await server.cluster.createPod({ name: 'a' });
    pod = { namespace: 'default', name: 'a', uid: text(at(created, 'metadata', 'uid')) };
  });
  afterEach(() => server.stop());

  const evict = (leads = true, which = pod) => createEvictor(server.client, () => leads).evict(which, NEVER);
  const failure = (promise: Promise<unknown>) =>
    promise.then(
      () => expect.fail('it succeeded'),
      (error: unknown) => error,
    );

  it('removes the pod, and finds it gone the next time', async () => {
    const evictor = createEvictor(server.client, () => true);
    expect(at(await evictor.fetch(pod, NEVER), 'metadata', 'uid')).to.equal(pod.uid);
    expect(await evict()).to.deep.equal({ kind: 'evicted' });
    expect(await evict()).to.deep.equal({ kind: 'gone' });
    expect(await evictor.fetch(pod, NEVER)).to.equal(undefined);
  });

  it('leaves another pod of the same name alone', async () => {
    expect(await evict(true, { ...pod, uid: 'another' })).to.deep.equal({ kind: 'gone' });
    expect(await createEvictor(server.client, () => true).fetch(pod, NEVER)).not.to.equal(undefined);
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
      server.cluster.faults.inject({ method: 'POST', path: EVICTIONS, status, headers });
      if (expected === 'thrown') expect(await failure(evict())).to.be.instanceOf(ApiError);
      else {
        const eviction = await evict();
        expect(eviction.kind === 'blocked' && eviction.reason).to.match(expected);
      }
    });
  }
});
