import { expect } from 'chai';
import { type RemovalObstacle, removePod } from '../../src/clean/remove-pod.ts';
import type { CarryingPod } from '../../src/clean/traces.ts';
import type { ApiClient } from '../../src/kube/api-client.ts';
import { ApiError, LeaseLostError } from '../../src/kube/errors.ts';
import { BUDGET } from '../../src/kube/evict.ts';
import { createSetClock } from '../kube/cluster.ts';

const POD: CarryingPod = {
  kind: 'Pod',
  namespace: 'shop',
  name: 'web',
  uid: 'u',
  bound: true,
  owner: undefined,
  templateHash: undefined,
  cleaning: { kind: 'replace' },
};
const budget = { details: { causes: [{ reason: 'DisruptionBudget' }] } };
const busy = new ApiError(429, {}, 'create', 1_000);

/** Returns the result of an eviction and how often it was sent. The server answers with these errors in turn, then with a success. */
async function evicted(...answers: ApiError[]): Promise<{ obstacle: RemovalObstacle | undefined; sent: number }> {
  let sent = 0;
  const nothing = async () => {
    throw new Error('not used');
  };
  const client: ApiClient = {
    host: 'x',
    addresses: () => new Set(),
    watch: nothing,
    close: nothing,
    async request() {
      const error = answers[sent++];
      if (error !== undefined) throw error;
      return {};
    },
  };
  const { signal } = new AbortController();
  const options = { client, clock: createSetClock(), mayWrite: () => true, signal };
  return { obstacle: await removePod(options, POD), sent };
}

describe('a pod that clean evicts', () => {
  it('goes', async () => {
    expect(await evicted()).to.deep.equal({ obstacle: undefined, sent: 1 });
  });

  it('counts as removed if it is gone, or if another pod has its name', async () => {
    for (const status of [404, 409]) {
      expect(await evicted(new ApiError(status, {}, 'create'))).to.deep.equal({ obstacle: undefined, sent: 1 });
    }
  });

  it('is tried again later if a disruption budget blocks it', async () => {
    for (const error of [new ApiError(429, budget, 'create', 10_000), new ApiError(429, {}, 'create')]) {
      expect(await evicted(error)).to.deep.equal({ obstacle: { reason: BUDGET, final: false }, sent: 1 });
    }
  });

  it('is retried at once if the server is busy', async () => {
    expect(await evicted(busy, busy)).to.deep.equal({ obstacle: undefined, sent: 3 });
    const { obstacle, sent } = await evicted(...Array.from({ length: 9 }, () => busy));
    expect(sent).to.equal(5);
    expect(obstacle?.final).to.equal(false);
    expect(obstacle?.reason).to.match(/^create: 429/);
  });

  it('is left if the right to evict it is missing', async () => {
    expect(await evicted(new ApiError(403, {}, 'create'))).to.deep.equal({
      obstacle: { reason: 'these credentials may not evict it; run clean as an administrator', final: true },
      sent: 1,
    });
  });

  it('is reported with both budgets', async () => {
    const { obstacle } = await evicted(new ApiError(500, { message: 'more than one' }, 'create'));
    expect(obstacle?.reason).to.match(/two PodDisruptionBudgets.*more than one/);
  });

  it('ends the work if the lease is lost', async () => {
    const { signal } = new AbortController();
    const request = async () => ({});
    const watch = async () => {
      throw new Error('not used');
    };
    const client: ApiClient = { host: 'x', addresses: () => new Set(), request, watch, close: async () => {} };
    const options = { client, clock: createSetClock(), mayWrite: () => false, signal };
    const error: unknown = await removePod(options, POD).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(LeaseLostError);
  });
});
