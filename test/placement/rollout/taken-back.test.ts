import { expect } from 'chai';
import { GUESSED, writeRecord } from '../../../src/placement/objects/template-record.ts';
import { takenBackNote } from '../../../src/placement/rollout/template.ts';

const daemonSet = (name: string, rollout: string | undefined, generation = 3) => {
  return { namespace: 'shop', name, generation, recorded: writeRecord([], [], { ...GUESSED, rollout }) };
};

describe('the note about changes of templates that were taken back', () => {
  it('names their DaemonSets, and says what to do', () => {
    expect(takenBackNote([daemonSet('b', 'back 3'), daemonSet('c', undefined), daemonSet('a', 'back 3')])).to.match(
      /^2 DaemonSets stay without .* \(shop\/a, shop\/b\); allow the tolerations, then run kubectl rollout restart/,
    );
  });

  it('is absent without any, and once their authors have changed them', () => {
    expect(takenBackNote([daemonSet('a', 'awaited 3'), daemonSet('b', 'back 3', 4)])).to.equal(undefined);
  });
});
