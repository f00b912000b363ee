import { expect } from 'chai';
import { announcePreferred, createAnnouncer } from '../../src/controllers/announce.ts';
import type { Occurrence } from '../../src/kube/events.ts';
import { createHandClock } from './hand-clock.ts';

describe('preferences that name an architecture that no node has', () => {
  const label = 'archaware.dev/preferred';
  const regarding = { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'p', uid: 'u' };
  const rows: [given: string, labels: Record<string, string>, annotation: string | undefined, notes: RegExp[]][] = [
    ['none', {}, undefined, []],
    ['good ones', { [label]: 'arm64' }, 'arm64=75,s390x=5', []],
    ['a label', { [label]: 'x64' }, undefined, [/^label archaware\.dev\/preferred: got "x64".*did you mean amd64\?$/]],
    [
      'an annotation',
      {},
      'armv7=5',
      [/^annotation archaware\.dev\/preferred of namespace shop: .*did you mean arm\?$/],
    ],
    ['both', { [label]: 'x86' }, 'arm64', [/^label .*, or 386 for 32 bits\?$/, /^annotation .*got "arm64"/]],
  ];
  for (const [given, labels, preferred, notes] of rows) {
    it(`are reported once: ${given}`, () => {
      const events: Occurrence[] = [];
      const announcer = createAnnouncer({ emit: (occurrence) => events.push(occurrence) > 0 }, createHandClock());
      const namespace = { name: 'shop', preferred };
      for (let time = 0; time < 2; time++) announcePreferred('shop/p', regarding, { labels }, namespace, announcer);
      expect(events.map(({ reason }) => reason)).to.deep.equal(notes.map(() => 'ConfigurationRejected'));
      for (const [index, note] of notes.entries()) expect(events[index]?.note).to.match(note);
    });
  }
});
