import { expect } from 'chai';
import { createUndone } from '../../../src/controllers/pod/undone.ts';
import type { Occurrence } from '../../../src/kube/events.ts';
import { standing } from '../../../src/placement/decide.ts';
import { readPod } from '../../../src/placement/objects/pod.ts';
import { settings, toleration } from '../../placement/objects.ts';
import { createHandClock } from '../hand-clock.ts';

const MINUTE = 60_000;
const WROTE = [toleration('supported-arch=arm64:NoSchedule')];
const pod = (tolerations: readonly object[]) =>
  readPod({
    metadata: { namespace: 'shop', name: 'web-1', uid: 'u1' },
    spec: { containers: [{ image: 'a' }], tolerations },
  });
const STATE = {
  uid: 'u1',
  read: '',
  final: true,
  at: 0,
  settings: settings(),
  decision: standing(['arm64'], undefined),
  wrote: WROTE,
};

function setUp() {
  const clock = createHandClock();
  const reported: Occurrence[] = [];
  const announcer = { report: (_key: string, occurrence: Occurrence) => void reported.push(occurrence), forget() {} };
  const undone = createUndone({ announcer, clock });
  const check = (tolerations: readonly object[] = []) => undone.check('shop/web-1', pod(tolerations), STATE, WROTE);
  return { clock, reported, undone, check };
}

describe('tolerations that another webhook removes from a pod', () => {
  it('are not contested if the pod has them', () => {
    const { check, reported } = setUp();
    for (let time = 0; time < 10; time++) expect(check(WROTE)).to.equal(0);
    expect(reported).to.deep.equal([]);
  });

  it('are written again three times, then left alone for ten minutes, with an Event', () => {
    const { check, reported, undone } = setUp();
    expect([check(), check(), check()]).to.deep.equal([0, 0, 0]);
    expect(reported).to.deep.equal([]);
    expect(check()).to.equal(10 * MINUTE);
    expect(reported.map(({ reason }) => reason)).to.deep.equal(['WriteContested']);
    expect(undone.count()).to.equal(1);
  });

  it('are left alone for twice as long each time after that', async () => {
    const { check, clock } = setUp();
    for (let time = 0; time < 4; time++) check();
    await clock.advance(10 * MINUTE);
    expect(check()).to.equal(0);
    expect(check()).to.equal(20 * MINUTE);
  });

  it('are not contested for another pod of the same name', () => {
    const { undone, clock: _clock } = setUp();
    for (let time = 0; time < 6; time++) {
      expect(undone.check('shop/web-1', { ...pod([]), uid: 'u2' }, STATE, WROTE)).to.equal(0);
    }
  });

  it('are forgotten when the pod is gone', () => {
    const { check, undone } = setUp();
    for (let time = 0; time < 4; time++) check();
    undone.forget('shop/web-1');
    expect(check()).to.equal(0);
    expect(undone.count()).to.equal(0);
  });
});
