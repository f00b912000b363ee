import { expect } from 'chai';
import { createRecords, note } from '../../src/controllers/memory.ts';
import { createRefusals } from '../../src/controllers/refusals.ts';
import { ApiError } from '../../src/kube/errors.ts';
import type { Problem } from '../../src/placement/object-problems.ts';
import { createHandClock } from './hand-clock.ts';

const POD = { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'web-1', uid: 'u1' };

const refusal = (status: number, message: string, more: object = {}) =>
  new ApiError(status, { message, ...more }, 'patch');
const CAUSES = { reason: 'Invalid', details: { causes: [{ field: 'spec.affinity', message: 'no' }] } };
const invalid = refusal(422, 'spec.affinity: no', CAUSES);
const ownPolicy = refusal(422, "ValidatingAdmissionPolicy 'archaware-guard-pods' denied request: no", CAUSES);
const tooCostly = refusal(
  422,
  "pods \"web-1\" is forbidden: ValidatingAdmissionPolicy 'archaware-guard-pods' with binding 'archaware-guard-pods' " +
    "denied request: expression 'x' resulted in error: operation cancelled: actual cost limit exceeded",
  CAUSES,
);
const forbidden = refusal(403, 'cannot patch resource "pods"', { reason: 'Forbidden' });
const busy = refusal(429, 'later', { reason: 'TooManyRequests' });
const broken = refusal(500, 'etcd', { reason: 'InternalError' });
const whitelist = refusal(500, 'pod tolerations conflict with its namespace whitelist');
const awayWebhook = refusal(500, 'Internal error occurred: failed calling webhook "a.b": connection refused');
const awayStore = refusal(500, 'etcdserver: leader changed');
const unavailable = refusal(503, 'pod tolerations conflict with its namespace whitelist');

/** `lastWriteAge`: milliseconds since another write last succeeded. */
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
  for (const [what, error, lastWriteAge, expected] of [
    ['a field that may not be so', invalid, undefined, true],
    ['a missing right, as of an API server that starts', forbidden, undefined, false],
    ['a policy of our own that does not fit', ownPolicy, undefined, false],
    ['a policy of our own that costs too much for this pod', tooCostly, undefined, false],
    ['a server that has too much to do', busy, undefined, false],
    ['a server that fails', broken, undefined, false],
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
    expect(await notes(refusal(500, 'something else'), 1, 0)).to.equal(false);
  });

  for (const [what, times, everyMs] of [
    ['within a minute, however often it is tried', 59, 1_000],
    ['after two attempts with a long pause between them', 2, 120_000],
  ] as const) {
    it(`is never permanent ${what}`, async () => expect(await refuse().notes(invalid, times, everyMs)).to.equal(false));
  }

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
