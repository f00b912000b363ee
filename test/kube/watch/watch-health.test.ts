import { expect } from 'chai';
import { brokenWatches, createAnswers } from '../../../src/kube/watch/watch-health.ts';

const SECOND = 1_000;

describe('which watches make a replica not ready', () => {
  const rows: [what: string, brokenSince: number | undefined, from: number, to: number, isBroken: boolean][] = [
    ['a watch that works', undefined, 0, 1_000, false],
    ['a watch that is broken for less than two minutes', 881, 0, 1_000, false],
    ['a watch that is broken for two minutes', 880, 0, 1_000, true],
    ['a watch that broke with the last answer, after which nothing answers', 1_000, 0, 1_000, false],
    ['a watch that was broken for long before the API server went away', 100, 0, 220, true],
    ['a watch that broke when the API server went away, which is back for a minute', 0, 940, 1_000, false],
    ['a watch that broke when the API server went away, which is back for two minutes', 0, 880, 1_000, true],
  ];
  for (const [what, since, from, to, isBroken] of rows) {
    it(`${isBroken ? 'names' : 'does not name'} ${what}`, () => {
      const brokenSinceMs = since === undefined ? undefined : since * SECOND;
      const states = [
        { kind: 'pods', brokenSinceMs },
        { kind: 'nodes', brokenSinceMs: undefined },
      ];
      const answering = { sinceMs: from * SECOND, lastMs: to * SECOND };
      expect(brokenWatches(states, answering)).to.deep.equal(isBroken ? ['watch of pods'] : []);
    });
  }

  it('names none before the first answer', () => {
    expect(brokenWatches([{ kind: 'pods', brokenSinceMs: 0 }], undefined)).to.deep.equal([]);
  });

  it('counts successful answers and lines of other watches, and starts over after a gap', () => {
    let now = 0;
    const answers = createAnswers({ monotonic: () => now });
    const at = (second: number) => {
      now = second * SECOND;
    };
    const read = { verb: 'get', resource: 'pods' };
    for (const code of ['403', '429', '500', 'error']) answers.finished({ ...read, code });
    expect(answers.period()).to.equal(undefined);
    answers.finished({ ...read, code: '200' });
    at(60);
    answers.heard();
    at(150);
    answers.finished({ ...read, code: '201' });
    expect(answers.period()).to.deep.equal({ sinceMs: 0, lastMs: 150 * SECOND });
    at(241);
    answers.heard();
    expect(answers.period()).to.deep.equal({ sinceMs: 241 * SECOND, lastMs: 241 * SECOND });
  });
});

describe('the proof that the API server stores writes', () => {
  for (const [verb, resource, code, expected] of [
    ['update', 'leases', '200', true],
    ['patch', 'pods', '200', true],
    ['create', 'pods/eviction', '201', true],
    ['get', 'leases', '200', false],
    ['watch', 'pods', '200', false],
    ['patch', 'pods', '500', false],
    ['patch', 'pods', 'error', false],
    ['create', 'events', '201', false],
  ] as const) {
    it(`${verb} ${resource} answered with ${code}: ${expected ? 'is one' : 'is none'}`, () => {
      const { finished, lastWriteMs } = createAnswers({ monotonic: () => 7 });
      finished({ verb, resource, code });
      expect(lastWriteMs()).to.equal(expected ? 7 : undefined);
    });
  }
});
