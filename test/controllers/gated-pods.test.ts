import { expect } from 'chai';
import { createGatedPods } from '../../src/controllers/gated-pods.ts';
import type { ApiClient } from '../../src/kube/api-client.ts';
import { ApiError } from '../../src/kube/errors.ts';
import { createHandClock } from './hand-clock.ts';

describe('the search for gated pods without the pod controller', () => {
  const pod = (name: string, ...gates: readonly string[]) => ({
    metadata: { namespace: 'shop', name },
    spec: { schedulingGates: gates.map((gate) => ({ name: gate })) },
  });

  /** Answers each list request with the next of these, and then always with the last. */
  function arrange(...answers: readonly (readonly unknown[] | Error)[]) {
    const clock = createHandClock();
    const asked: string[] = [];
    const found: (readonly string[])[] = [];
    const errors: unknown[] = [];
    const end = new AbortController();
    const client: Pick<ApiClient, 'request'> = {
      async request(verb, path) {
        const answer = answers[Math.min(asked.length, answers.length - 1)] ?? [];
        asked.push(`${verb} ${path}`);
        if (answer instanceof Error) throw answer;
        return { items: answer };
      },
    };
    const gated = createGatedPods({
      ...{ client, clock },
      onChange: (keys) => found.push(keys),
      onError: (error) => errors.push(error),
    });
    const running = gated.watch(end.signal);
    const minute = async () => {
      while (clock.waiting === 0) await new Promise(setImmediate);
      await clock.advance(60_000);
    };
    return { asked, found, errors, end, running, minute, gated };
  }

  it('lists Pending pods once, and reports nothing if none has the gate', async () => {
    const { asked, found, running } = arrange([pod('a'), pod('b', 'example.com/quota')]);
    await running;
    expect(asked).to.deep.equal(['list /api/v1/pods?fieldSelector=status.phase%3DPending&limit=500']);
    expect(found).to.deep.equal([]);
  });

  it('reports gated pods, and checks each minute until there are none', async () => {
    const gated = [pod('a', 'archaware.dev/architecture'), pod('b', 'x', 'archaware.dev/architecture'), pod('c')];
    const { found, running, minute } = arrange(gated, gated, gated.slice(0, 1), []);
    for (let minutes = 0; minutes < 3; minutes += 1) await minute();
    await running;
    expect(found).to.deep.equal([['shop/a', 'shop/b'], ['shop/a'], []]);
  });

  it('ends if it may not list pods', async () => {
    const { found, errors, running } = arrange(new ApiError(403, {}, 'list /api/v1/pods', undefined));
    await running;
    expect([found, errors]).to.deep.equal([[], []]);
  });

  const GATED = [pod('a', 'archaware.dev/architecture')];

  it('checks again after a failure', async () => {
    const { found, errors, running, minute } = arrange(new Error('no route'), GATED, []);
    for (let minutes = 0; minutes < 2; minutes += 1) await minute();
    await running;
    expect([errors.length, found]).to.deep.equal([1, [['shop/a'], []]]);
  });

  it('counts what the present term has found, and nothing of an earlier term', async () => {
    const { gated, end, running, minute } = arrange(GATED, []);
    await minute();
    expect(gated.count()).to.equal(1);
    end.abort();
    await running;
    expect(gated.count(), 'between the terms').to.equal(0);
    await gated.watch(new AbortController().signal);
    expect(gated.count(), 'in a term that found none').to.equal(0);
  });

  it('takes no answer that arrives after the end of the term', async () => {
    const { gated, end, found, running } = arrange(GATED);
    // The first request is under way.
    end.abort();
    await running;
    expect([gated.count(), found]).to.deep.equal([0, []]);
  });
});
