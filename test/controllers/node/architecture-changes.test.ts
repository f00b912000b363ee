import { expect } from 'chai';
import { createArchitectureChanges } from '../../../src/controllers/node/architecture-changes.ts';
import { node } from '../../placement/objects.ts';
import { createHandClock } from '../hand-clock.ts';

describe('a node that reports another architecture', () => {
  const arrange = () => {
    const notes: string[] = [];
    const events = {
      emit: ({ reason, note }: { reason: string; note: string }) => notes.push(`${reason}: ${note}`) > 0,
    };
    return { notes, changed: createArchitectureChanges(events, createHandClock()) };
  };

  it('gets one Event for each change, and no other one for the same change within half an hour', () => {
    const { notes, changed } = arrange();
    const [amd, arm] = [node({ architecture: 'amd64' }), node({ architecture: 'arm64' })];
    changed({ now: amd, before: undefined });
    for (let round = 0; round < 5; round++) {
      changed({ now: arm, before: amd });
      changed({ now: amd, before: arm });
    }
    expect(notes).to.have.length(2);
    expect(notes[0]).to.match(/^NodeArchitectureChanged: .*amd64 before and reports arm64 now/);
  });

  it('is another node if its uid is another one', () => {
    const { notes, changed } = arrange();
    changed({ now: node({ uid: 'new', architecture: 'arm64' }), before: node({ uid: 'old', architecture: 'amd64' }) });
    changed({ now: undefined, before: node({ uid: 'new', architecture: 'arm64' }) });
    expect(notes).to.deep.equal([]);
  });
});
