import { expect } from 'chai';
import { createAnnouncer } from '../../src/controllers/announce.ts';
import { createRecords } from '../../src/controllers/memory.ts';
import type { JsonObject } from '../../src/kit/json.ts';
import type { Decision } from '../../src/placement/decide.ts';
import type { ImageAnswer } from '../../src/placement/images.ts';
import { type Problem, preferenceProblems, problemsOf } from '../../src/placement/object-problems.ts';
import type { Settings } from '../../src/placement/settings.ts';
import { decideCase, failed, input, known, settings, template, toleration } from '../placement/objects.ts';
import { createHandClock } from './hand-clock.ts';

describe('the Events for a decision', () => {
  const ARM = known('linux/arm64');
  const AMD = known('linux/amd64');
  const TOLERATIONS = ['amd64', 'arm64'].map((name) => toleration(`supported-arch=${name}:NoSchedule`));
  const failures = (count: number, seconds: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`i${index}`, failed(seconds)]));

  type Given = {
    readonly answers?: Record<string, ImageAnswer>;
    readonly settings?: Partial<Settings>;
    readonly statement?: string;
    readonly tolerations?: typeof TOLERATIONS;
    readonly spec?: JsonObject;
    /** The kind of the pod's owner. */
    readonly owner?: string;
  };
  function notes({ answers = {}, statement, tolerations, owner, spec, ...given }: Given): string[] {
    const all = { ...settings(given.settings), ...given.settings };
    const annotations = statement === undefined ? {} : { 'archaware.dev/architectures': statement };
    const subject = template(Object.keys(answers), { tolerations, ...spec }, { annotations });
    const decision: Decision = decideCase(input(answers, { template: subject, settings: all }));
    const pod = {
      ...subject,
      ...(owner === undefined ? {} : { owner: { kind: owner, name: 'up', apiVersion: 'apps/v1', uid: '' } }),
    };
    return problemsOf(pod, 'shop', decision, all).map(
      ({ reason, action, note, estimate = '' }) => `${reason} ${action}: ${note}${estimate}`,
    );
  }
  const GUESS = 'OpenPlacement Placing: tolerates';
  const UNRESOLVED = 'ImageUnresolvable Resolving: image i0';
  const APART = { a: ARM, b: AMD };
  const STALE = { answers: { a: ARM }, tolerations: TOLERATIONS };
  const TOLERATED = 'StaleToleration Placing: still tolerates amd64, but its images now run on arm64:';
  const NOTHING = 'NoCommonArchitecture Placing: no architecture';
  const REJECTED = 'ConfigurationRejected Placing: annotation archaware.dev/architectures: ';
  const FALLBACK = { unresolvable: 'fallback', fallback: ['amd64'] } as const;

  const rows: [given: string, what: Given, starts: readonly string[]][] = [
    ['nothing, if all images are known', { answers: { a: ARM } }, []],
    ['each image that failed, while the pod waits', { answers: failures(1, 5) }, [UNRESOLVED]],
    [
      'each image that waits for its turn at a limit',
      { answers: { i0: { kind: 'pending', line: { registry: 'r.example', inMs: 42_000 } } } },
      [`${UNRESOLVED} was not looked up yet: waits for its turn at r.example, which limits requests, about 42 s`],
    ],
    ['a guess', { answers: failures(1, 120) }, [UNRESOLVED, `${GUESS} amd64, arm64`]],
    ['a fallback', { answers: failures(1, 120), settings: FALLBACK }, [UNRESOLVED, `${GUESS} amd64`]],
    ['images without an architecture in common', { answers: APART }, [NOTHING]],
    ['the same, released', { answers: APART, settings: { noCommonArchitecture: 'release' } }, [GUESS, NOTHING]],
    ['the policy behind it', { answers: APART, settings: { policy: 'p' } }, [NOTHING.replace(': ', ': policy p: ')]],
    ['an annotation that cannot be read', { answers: { a: ARM }, statement: 'x64!' }, [REJECTED]],
    ['a toleration that the images no longer need', STALE, [`${TOLERATED} delete the pod`]],
    [
      'such a toleration of a pod of a DaemonSet, with advice about its template',
      { ...STALE, owner: 'DaemonSet' },
      [
        `${TOLERATED} they come from the template of ` +
          'DaemonSet up; run kubectl -n shop rollout restart daemonset/up: the controller then decides the template again ' +
          "(with the update strategy OnDelete, delete the pod afterwards). What the template still tolerates then is its author's: " +
          'remove it from the source of the DaemonSet',
      ],
    ],
    ['such a toleration of a pod of another owner', { ...STALE, owner: 'ReplicaSet' }, [`${TOLERATED} delete the pod`]],
    ['such a toleration of a bare pod', STALE, [`${TOLERATED} delete the pod and create it again`]],
    // A Job counts a deleted pod as failed: with backoffLimit 0 it would end.
    ['such a toleration of a pod of a Job', { ...STALE, owner: 'Job' }, [`${TOLERATED} create its Job again`]],
    ['no such toleration in the mode affinity', { ...STALE, settings: { mode: 'affinity' } }, []],
    ['no toleration that a guess does not need', { ...STALE, answers: failures(1, 120) }, [UNRESOLVED, GUESS]],
  ];
  for (const [given, what, starts] of rows) {
    it(`report ${given}`, () => {
      const reported = notes(what);
      expect(reported, reported.join('\n')).to.have.length(starts.length);
      for (const [index, start] of starts.entries()) expect(reported[index]).to.contain(start);
    });
  }

  it('report at most eight of the images that failed', () => {
    expect(notes({ answers: failures(9, 5) })).to.have.length(8);
    expect(notes({ answers: failures(9, 120) })).to.have.length(8 + 1);
  });
});

describe('an announcer', () => {
  const regarding = { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'p', uid: 'u' };
  function arrange() {
    const clock = createHandClock();
    const [records, world, notes] = [createRecords(), { takes: true }, [] as string[]];
    const announcer = createAnnouncer({ emit: ({ note }) => notes.push(note) > 0 && world.takes }, clock);
    const report = (more: Partial<Problem> = {}, key = 'k') =>
      announcer.report(records.of(key, 'u'), regarding, {
        ...{ reason: 'ImageUnresolvable', action: 'Resolving', note: 'n' },
        ...more,
      });
    return { clock, records, world, notes, report };
  }

  it('reports again what could not be written as an Event', () => {
    const { world, notes, report } = arrange();
    for (const takes of [false, true, true]) {
      world.takes = takes;
      report();
    }
    expect(notes).to.deep.equal(['n', 'n']);
  });

  it('reports a problem again after half an hour, or if the object was forgotten', async () => {
    const { clock, records, notes, report } = arrange();
    report({ note: 'a' });
    report({ note: 'b' });
    report({ note: 'a' }, 'other');
    expect(notes.splice(0)).to.deep.equal(['a', 'b', 'a']);
    await clock.advance(30 * 60_000 - 1);
    records.forget('other');
    report({ note: 'a' });
    report({ note: 'a' }, 'other');
    expect(notes.splice(0)).to.deep.equal(['a']);
    await clock.advance(1);
    report({ note: 'a' });
    report({ note: 'a' }, 'other');
    expect(notes).to.deep.equal(['a']);
  });

  it('makes a new Event when the outlook changes, not when it is missing', () => {
    const { notes, report } = arrange();
    for (const outlook of ['', 'at 6', 'at 6', '', 'at 7', '']) report({ outlook });
    expect(notes).to.deep.equal(['n', 'n; at 6', 'n; at 7']);
  });

  it('makes one Event, however the estimate of a wait changes', () => {
    const { notes, report } = arrange();
    for (const estimate of [', about 12 s', ', about 9 s']) report({ estimate });
    expect(notes).to.deep.equal(['n, about 12 s']);
  });

  it('keeps the outlook whole if the note is too long', () => {
    const { notes, report } = arrange();
    report({ note: 'é'.repeat(2_000), outlook: 'at 6' });
    expect(Buffer.byteLength(notes[0] ?? '')).to.be.within(1_000, 1_024);
    expect(notes[0]).to.match(/^é+…; at 6$/);
  });
});

describe('preferences that name an architecture that no node has', () => {
  it('are reported, that of the label before that of the namespace', () => {
    const label = 'archaware.dev/preferred';
    const reported = (preference: string, preferred: string) =>
      preferenceProblems({ namespace: 'shop', labels: { [label]: preference }, preferred }).map(
        ({ reason, note }) => `${reason}: ${note}`,
      );
    expect(reported('arm64', 'arm64=75,s390x=5')).to.deep.equal([]);
    const [ofLabel, ofNamespace, ...more] = reported('x64', 'armv7=5');
    expect(ofLabel).to.match(/^ConfigurationRejected: label archaware\.dev\/preferred: got "x64".* amd64\?$/);
    expect(ofNamespace).to.match(/^ConfigurationRejected: annotation \S+ of namespace shop: .*did you mean arm\?$/);
    expect(more).to.deep.equal([]);
  });
});
