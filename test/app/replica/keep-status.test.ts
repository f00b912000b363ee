import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import type { LeaderStatus } from '../../../src/app/leader-status.ts';
import { keepStatus } from '../../../src/app/leader-status.ts';
import { objectAt, stringAt } from '../../../src/kit/json.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import { createHandClock } from '../../controllers/hand-clock.ts';

const NOTHING: LeaderStatus = {
  ...{ writer: 'vm-1', version: '1', pods: {}, tooLarge: 0, waiting: { count: 0, oldest: [] } },
  ...{ keepsDaemonSets: undefined, problems: [] },
};
const answer = (status: number) => new ApiError(status, {}, 'patch x');

/** Keeps the status of a leader that can be changed, and records the requests and the warnings. */
function keeping() {
  const clock = createHandClock();
  const over = new AbortController();
  const state = {
    status: NOTHING as LeaderStatus | undefined,
    mayWrite: true,
    fails: undefined as ApiError | undefined,
  };
  const [sent, warned]: [{ verb: string; path: string; tooLarge: number }[], unknown[]] = [[], []];
  let exists = false;
  const ended = keepStatus(
    {
      ...{ clock, namespace: 'archaware', mayWrite: () => state.mayWrite },
      gather: () => Promise.resolve(state.status),
      log: { warn: (...words: unknown[]) => void warned.push(words) },
      client: {
        request(verb, path, options) {
          if (state.fails !== undefined) return Promise.reject(state.fails);
          if (verb === 'patch' && !exists) return Promise.reject(answer(404));
          exists = true;
          const data = objectAt(options?.body as Record<string, unknown>, 'data');
          const { tooLarge } = JSON.parse(stringAt(data, 'status') ?? '') as { tooLarge: number };
          sent.push({ verb, path: path.split('?')[0] ?? '', tooLarge });
          return Promise.resolve({});
        },
      },
    },
    over.signal,
  );
  const pass = async (ms: number) => {
    await clock.advance(ms);
    for (let turns = 0; turns < 5; turns++) await turn();
  };
  const end = () => {
    over.abort();
    return ended;
  };
  return { state, sent, warned, pass, end, clock };
}

const CONFIG_MAPS = '/api/v1/namespaces/archaware/configmaps';

describe('the ConfigMap of the leader', () => {
  it('is created soon, and written again only if something changed, at most once in 30 s', async () => {
    const { state, sent, pass, end, clock } = keeping();
    await pass(1_999);
    expect(sent).to.deep.equal([]);
    await pass(1);
    expect(sent).to.deep.equal([{ verb: 'create', path: CONFIG_MAPS, tooLarge: 0 }]);
    await pass(30_000);
    expect(sent).to.have.lengthOf(1);
    state.status = { ...NOTHING, tooLarge: 1 };
    await pass(29_999);
    expect(sent).to.have.lengthOf(1);
    await pass(1);
    expect(sent.slice(1)).to.deep.equal([
      { verb: 'patch', path: `${CONFIG_MAPS}/archaware-controller-status`, tooLarge: 1 },
    ]);
    await end();
    expect(clock.waiting).to.equal(0);
  });

  it('is not written without a fresh Lease, nor between terms', async () => {
    const { state, sent, pass, end } = keeping();
    state.mayWrite = false;
    await pass(2_000);
    [state.mayWrite, state.status] = [true, undefined];
    await pass(30_000);
    expect(sent).to.deep.equal([]);
    state.status = NOTHING;
    await pass(30_000);
    expect(sent).to.have.lengthOf(1);
    await end();
  });

  it('is tried again after a failure, which is logged once', async () => {
    const { state, sent, warned, pass, end } = keeping();
    state.fails = answer(403);
    await pass(2_000);
    await pass(60_000);
    expect([sent.length, warned.length]).to.deep.equal([0, 1]);
    state.fails = undefined;
    await pass(30_000);
    expect(sent).to.have.lengthOf(1);
    await end();
  });

  it('is not written after the term', async () => {
    const { sent, pass, end } = keeping();
    await end();
    await pass(60_000);
    expect(sent).to.deep.equal([]);
  });
});
