import { expect } from 'chai';
import { createRefusedCreations } from '../../src/controllers/refused-creations.ts';
import { readFailedCreation, refusedNote } from '../../src/placement/refused-parts.ts';
import { createHandClock } from './hand-clock.ts';

const MINUTE = 60_000;
const owner = (uid = 'rs1', namespace = 'shop') => ({
  ...{ apiVersion: 'apps/v1', kind: 'ReplicaSet', namespace, name: 'web', uid },
});
const event = (given: Record<string, unknown> = {}) => ({
  metadata: { namespace: 'shop', name: 'web.1' },
  reason: 'FailedCreate',
  regarding: owner(),
  note: 'Error creating: no',
  ...given,
});

function memory() {
  const clock = createHandClock();
  const refused = createRefusedCreations(clock);
  return {
    ...refused,
    clock,
    tolerations(uid?: string, isLeftOut = true) {
      const noted = refused.note(owner(uid), ['tolerations'], isLeftOut);
      if (noted === 'say') refused.said(owner(uid));
      return noted;
    },
  };
}

describe('an Event about a pod that could not be created', () => {
  it('is read with its owner, and up to 1024 characters of its message', () => {
    expect(readFailedCreation(event())).to.deep.equal({ owner: owner(), message: 'Error creating: no' });
    expect(readFailedCreation(event({ note: 'x'.repeat(10_000) }))?.message).to.have.length(1024);
  });

  for (const [what, given] of [
    ['another reason', { reason: 'FailedMount' }],
    ['an owner in another namespace', { regarding: owner('rs1', 'kube-system') }],
    ['an owner without a namespace', { regarding: { kind: 'Node', name: 'n', uid: 'u' } }],
    ['an owner without a uid', { regarding: { ...owner(), uid: undefined } }],
    ['a kind with control characters', { regarding: { ...owner(), kind: 'Re\nplica' } }],
    ['a name that is no name', { regarding: { ...owner(), name: 'x'.repeat(300) } }],
    ['no object at all', { regarding: 7 }],
  ] as const) {
    it(`is passed over with ${what}`, () => expect(readFailedCreation(event(given))).to.equal(undefined));
  }
});

describe('the memory of refused creations', () => {
  it('has the parts of the owner that was refused, and of no other', () => {
    const { note, refused } = memory();
    expect(note(owner(), ['tolerations', 'gate'], true)).to.equal('say');
    expect(refused('shop', 'rs1')).to.deep.equal(['tolerations', 'gate']);
    expect([refused('shop', 'rs2'), refused('other', 'rs1')]).to.deep.equal([[], []]);
  });

  it('lets the part be tried again after ten minutes, and twice as long after each later refusal, up to six hours', async () => {
    const { tolerations, refused, clock } = memory();
    for (const minutes of [10, 20, 40, 80, 160, 320, 360, 360]) {
      tolerations();
      await clock.advance(minutes * MINUTE - 1);
      expect(refused('shop', 'rs1'), `before ${minutes} minutes`).to.deep.equal(['tolerations']);
      await clock.advance(1);
      expect(refused('shop', 'rs1'), `after ${minutes} minutes`).to.deep.equal([]);
    }
  });

  it('begins again with ten minutes if nothing was refused for long', async () => {
    const { tolerations, refused, clock } = memory();
    tolerations();
    await clock.advance(21 * MINUTE);
    tolerations();
    await clock.advance(10 * MINUTE);
    expect(refused('shop', 'rs1')).to.deep.equal([]);
  });

  it('says a refusal once, and again after half an hour', async () => {
    const { tolerations, clock } = memory();
    expect(tolerations('rs1', false)).to.equal('say');
    for (let minute = 1; minute < 30; minute++) {
      await clock.advance(MINUTE);
      expect(tolerations('rs1', false), `after ${minute} minutes`).to.equal('known');
    }
    await clock.advance(MINUTE);
    expect(tolerations('rs1', false)).to.equal('say');
  });

  it('wants to say a refusal until it was said, because only the leader can', () => {
    const { note, said } = memory();
    expect([note(owner(), ['gate'], true), note(owner(), ['gate'], true)]).to.deep.equal(['say', 'say']);
    said(owner());
    expect(note(owner(), ['gate'], true)).to.equal('known');
  });

  it("knows that a part is not archaware's if pods are refused although it was left out", async () => {
    const { tolerations, clock } = memory();
    tolerations();
    await clock.advance(20_000);
    expect(tolerations(), 'another replica may not know yet').to.equal('known');
    await clock.advance(20_000);
    expect(tolerations()).to.equal('not-ours');
  });

  it('drops the owners of a namespace that are too many at once, and takes nothing from other namespaces', () => {
    const { note, refused } = memory();
    note(owner('u', 'mine'), ['gate'], true);
    for (let index = 0; index < 64; index++) note(owner(`rs${index}`), ['gate'], true);
    expect(note(owner('one-more'), ['gate'], true)).to.equal('dropped');
    expect([refused('shop', 'rs63'), refused('mine', 'u')]).to.deep.equal([['gate'], ['gate']]);
  });

  it('takes no more than a megabyte, whatever the namespaces write, and leaves room for each namespace', async () => {
    const { note, refused, clock } = memory();
    for (let round = 0; round < 60; round++) {
      for (let namespace = 0; namespace < 40; namespace++) {
        for (let index = 0; index < 5; index++) {
          note(owner(`${round}-${index}-${'x'.repeat(200)}`, `tenant-${namespace}`), ['gate'], true);
        }
      }
      await clock.advance(25_000);
    }
    expect(note(owner('mine', 'quiet'), ['gate'], true)).to.equal('say');
    expect(refused('quiet', 'mine')).to.deep.equal(['gate']);
    expect(refused('tenant-1', `0-0-${'x'.repeat(200)}`), 'the oldest gave way').to.deep.equal([]);
  });
});

describe('the note about refused pods', () => {
  const policy = "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no tolerations";
  const noteOf = (message: string) => refusedNote({ message }, ['tolerations'], 'withdraw', 'example.com/arch');

  it('says what was refused, why, and what to do', () =>
    expect(noteOf(`Error creating: pods "web-x2k4p" is forbidden: ${policy}`)).to.equal(
      `pods cannot be created, and the refusal names tolerations, which archaware adds: pods is forbidden: ${policy}; ` +
        'archaware leaves it out of the next pods for a time, and then tries again. Allow in the policy that refuses it: ' +
        'tolerations of example.com/arch (docs/security.md, "Other admission plug-ins")',
    ));

  it('is the same for each pod and each controller', () => {
    const notes = [
      `Error creating: pods "web-x2k4p" is forbidden: ${policy}`,
      `(combined from similar events): Error creating: pods "web-aaaaa" is forbidden: ${policy}`,
      `create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: ${policy}`,
    ].map(noteOf);
    expect(new Set(notes).size).to.equal(1);
  });

  it('keeps what to do, however long the refusal is, and escapes it', () => {
    const note = noteOf(`\u001b[31m${'x'.repeat(4000)}`);
    expect(Buffer.byteLength(note)).to.be.lessThan(1024);
    expect(note)
      .to.contain('\\u001b[31m')
      .and.to.match(/plug-ins"\)$/);
  });
});
