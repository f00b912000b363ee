import { expect } from 'chai';
import { createRecords, note } from '../../src/controllers/memory.ts';
import { createRefusals } from '../../src/controllers/refusals.ts';
import { ApiError } from '../../src/kube/errors.ts';
import type { Problem } from '../../src/placement/object-problems.ts';
import { createHandClock } from './hand-clock.ts';

const POD = { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'web-1', uid: 'u1' };

const CAUSES = { details: { causes: [{ field: 'spec.affinity', message: 'no' }] } };
const invalid = new ApiError(422, { reason: 'Invalid', message: 'spec.affinity: no', ...CAUSES }, 'patch');
const ownPolicy = new ApiError(
  422,
  { reason: 'Invalid', message: "ValidatingAdmissionPolicy 'archaware-guard-pods' denied request: no", ...CAUSES },
  'patch',
);
const tooCostly = new ApiError(
  422,
  {
    reason: 'Invalid',
    message:
      "pods \"web-1\" is forbidden: ValidatingAdmissionPolicy 'archaware-guard-pods' with binding 'archaware-guard-pods' " +
      "denied request: expression 'x' resulted in error: operation cancelled: actual cost limit exceeded",
    ...CAUSES,
  },
  'patch',
);
const forbidden = new ApiError(403, { reason: 'Forbidden', message: 'cannot patch resource "pods"' }, 'patch');
const busy = new ApiError(429, { reason: 'TooManyRequests', message: 'later' }, 'patch');
const broken = new ApiError(500, { reason: 'InternalError', message: 'etcd' }, 'patch');

const whitelist = new ApiError(500, { message: 'pod tolerations conflict with its namespace whitelist' }, 'patch');
const awayWebhook = new ApiError(
  500,
  { reason: 'InternalError', message: 'Internal error occurred: failed calling webhook "a.b": connection refused' },
  'patch',
);
const awayStore = new ApiError(500, { message: 'etcdserver: leader changed' }, 'patch');
const unavailable = new ApiError(503, { message: 'pod tolerations conflict with its namespace whitelist' }, 'patch');

/** `lastWriteAt`: when another write last succeeded, as an age in milliseconds. */
function refuse(lastWriteAge?: number) {
  const clock = createHandClock();
  const reported: Problem[] = [];
  const record = createRecords().of('shop/web-1', 'u1');
  let counted = 0;
  const noteRefusal = createRefusals({
    clock,
    announcer: { report: (_record, _regarding, problem) => void reported.push(problem) },
    onRefused: () => void counted++,
    lastWriteMs: () => (lastWriteAge === undefined ? undefined : clock.monotonic() - lastWriteAge),
  });
  /** Records the same refusal this often, at this interval. Returns the result of the last call. */
  async function notes(error: ApiError, times: number, everyMs: number): Promise<boolean> {
    let verdict = false;
    for (let time = 0; time < times; time++) {
      verdict = noteRefusal(record, POD, error);
      await clock.advance(everyMs);
    }
    return verdict;
  }
  return { record, clock, reported, notes, counted: () => counted };
}

describe('a refused write', () => {
  for (const [what, error, expected] of [
    ['a field that may not be so', invalid, true],
    ['a missing right, as of an API server that starts', forbidden, false],
    ['a policy of our own that does not fit', ownPolicy, false],
    ['a policy of our own that costs too much for this pod', tooCostly, false],
    ['a server that has too much to do', busy, false],
    ['a server that fails', broken, false],
  ] as const) {
    it(`for ${what}, for over a minute: ${expected ? 'is permanent' : 'is retried'}`, async () => {
      const { notes } = refuse();
      expect(await notes(error, 7, 10_000)).to.equal(expected);
    });
  }

  for (const [what, error, lastWriteAge, expected] of [
    ['a 500 with the same message, while other writes succeed', whitelist, 1_000, true],
    ['a 500 with the same message, while no other write succeeds', whitelist, undefined, false],
    ['a 500 with the same message, since before the last write that succeeded', whitelist, 65_000, false],
    ['a 500 of a webhook of others that does not answer', awayWebhook, 1_000, false],
    ['a 500 of an etcd that elects a leader', awayStore, 1_000, false],
    ['another status than 500', unavailable, 1_000, false],
  ] as const) {
    it(`for ${what}, for over a minute: ${expected ? 'is permanent' : 'is retried'}`, async () => {
      const { notes } = refuse(lastWriteAge);
      expect(await notes(error, 7, 10_000)).to.equal(expected);
    });
  }

  it('begins again if the message of a 500 changes', async () => {
    const { notes } = refuse(1_000);
    await notes(whitelist, 6, 10_000);
    expect(await notes(new ApiError(500, { message: 'something else' }, 'patch'), 1, 0)).to.equal(false);
  });

  it('is never permanent within a minute, however often it is tried', async () => {
    const { notes } = refuse();
    expect(await notes(invalid, 59, 1_000)).to.equal(false);
  });

  it('is never permanent after two attempts with a long pause between them', async () => {
    const { notes } = refuse();
    expect(await notes(invalid, 2, 120_000)).to.equal(false);
  });

  it('begins again if the reason changes, and after a successful write', async () => {
    const { notes, record } = refuse();
    await notes(invalid, 7, 10_000);
    expect(await notes(forbidden, 1, 0)).to.equal(false);
    expect(await notes(invalid, 1, 0)).to.equal(false);
    await notes(invalid, 7, 10_000);
    note(record, 'refused', undefined);
    expect(await notes(invalid, 1, 0)).to.equal(false);
  });

  it('is counted each time, and causes an Event if it lasts longer than the start of a server', async () => {
    const { notes, reported, counted } = refuse();
    await notes(forbidden, 4, 1_000);
    expect(reported).to.have.length(0);
    await notes(forbidden, 3, 1_000);
    expect(reported[0]).to.include({ reason: 'WriteRefused' });
    expect(reported[0]?.note).to.contain('cannot patch resource "pods"');
    expect(counted()).to.equal(7);
  });
});
