import { expect } from 'chai';
import { createProblemLog } from '../../src/app/start-webhook.ts';
import { createHandClock } from '../controllers/hand-clock.ts';

const SECOND = 1_000;

function arrange({ reason }: { reason: 'CertificateInvalid' | undefined } = { reason: 'CertificateInvalid' }) {
  const clock = createHandClock();
  const world = { leads: false };
  const logged: string[] = [];
  const notes: string[] = [];
  const end = new AbortController();
  const report = createProblemLog({
    what: 'certificate',
    reason,
    log: {
      info: (message: unknown) => void logged.push(String(message)),
      error: (_: unknown, message?: unknown) => void logged.push(String(message)),
    },
    events: { emit: ({ note }) => notes.push(note) > 0 },
    regarding: { apiVersion: 'v1', kind: 'Lease', namespace: 'a', name: 'b', uid: 'u' },
    mayWrite: () => world.leads,
    clock,
    signal: end.signal,
  });
  return { clock, world, logged, notes, end, report };
}

describe('the report of a problem of the webhook', () => {
  it('is logged at once, and its end too', () => {
    const { report, logged } = arrange();
    report('expired');
    report(undefined);
    expect(logged).to.deep.equal([
      "problem with the webhook's certificate",
      "the problem with the webhook's certificate is solved",
    ]);
  });

  it('becomes an Event when the replica leads: the latest problem, once', async () => {
    const { report, clock, world, notes } = arrange();
    for (let time = 0; time < 100; time++) {
      report(`problem ${time}`);
      await clock.advance(SECOND);
    }
    expect(clock.waiting, 'waits of a replica whose certificate flaps').to.equal(1);
    world.leads = true;
    await clock.advance(SECOND);
    expect(notes).to.deep.equal(['problem 99']);
    expect(clock.waiting).to.equal(0);
    report('another');
    await clock.advance(0);
    expect(notes).to.deep.equal(['problem 99', 'another']);
  });

  it('stops waiting when the problem is solved, if there is no reason for an Event, and after the end', async () => {
    const solved = arrange();
    solved.report('expired');
    solved.report(undefined);
    await solved.clock.advance(SECOND);
    expect(solved.clock.waiting).to.equal(0);

    const silent = arrange({ reason: undefined });
    silent.report('expired');
    expect(silent.clock.waiting).to.equal(0);

    const ended = arrange();
    ended.report('expired');
    ended.end.abort();
    await ended.clock.advance(SECOND);
    expect([ended.clock.waiting, ended.notes]).to.deep.equal([0, []]);
  });
});
