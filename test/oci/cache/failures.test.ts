import { expect } from 'chai';
import { createFailures } from '../../../src/oci/cache.ts';
import { ImageError } from '../../../src/oci/errors.ts';

describe('remembered failures', () => {
  const error = new ImageError('it is away', { code: 'unavailable', temporary: true });
  let time: number;
  const create = (maxEntries: number) => createFailures({ maxEntries, now: () => time, random: () => 0.5 });
  beforeEach(() => {
    time = 1_000;
  });

  it('are tried again later each time, or when the place that failed may be asked, and count only the former', () => {
    const failures = create(10);
    const waits = [undefined, 7_000, undefined, undefined].map((retryAfterMs) => {
      const details = { code: 'unavailable', temporary: true, retryAfterMs } as const;
      return failures.add('a', new ImageError('it is away', details), 0, 'one').retryAt - time;
    });
    expect(waits).to.deep.equal([1_000, 7_500, 2_000, 4_000]);
  });

  it('are known by the place for which they wait now', () => {
    const failures = create(10);
    const at = (waitsFor: string | undefined) =>
      new ImageError('it is away', { code: 'unavailable', temporary: true, waitsFor });
    for (const [key, place] of [
      ['a', 'x'],
      ['b', 'x'],
      ['c', undefined],
      ['a', 'y'],
    ] as const) {
      failures.add(key, at(place), 0, 'one');
    }
    expect(['x', 'y', 'z'].map((place) => failures.waitingFor(place))).to.deep.equal([['b'], ['a'], []]);
    failures.remove('b');
    expect(failures.waitingFor('x')).to.deep.equal([]);
  });

  it('stay known if another namespace has far too many', () => {
    const failures = create(100);
    failures.add('bystander', error, 0, 'theirs');
    for (let round = 0; round < 5; round += 1) {
      time += 1_000;
      for (let index = 0; index < 300; index += 1) failures.add(`flood-${index}`, error, 0, 'flood');
    }
    expect(failures.add('bystander', error, 0, 'theirs')).to.include({ firstFailedAt: 1_000, attempts: 2 });
    expect(failures.keys()).to.have.length(100);
  });

  it('keep what the registry answered about the image itself while it is not asked, and its next time', () => {
    const failures = create(10);
    const details = { code: 'unavailable', temporary: true, isUnasked: true } as const;
    const unasked = new ImageError('it answers 502 for its project', { ...details, retryAfterMs: 30_000 });
    expect(failures.add('never', unasked, 0, 'one').error).to.equal(unasked);
    failures.add('asked', error, 0, 'one');
    expect(failures.add('asked', unasked, 0, 'one')).to.include({ error, retryAt: 31_500, attempts: 1 });
    expect(failures.add('never', error, 0, 'one').error).to.equal(error);
  });

  it('take no more bytes however often an image is not asked for', () => {
    const failures = create(100);
    const message = `it answers 502 for its project ${'x'.repeat(100_000)}`;
    const unasked = new ImageError(message, { code: 'unavailable', temporary: true, isUnasked: true });
    failures.add('asked', error, 0, 'one');
    for (let round = 0; round < 1_000; round += 1) {
      time += 1_000;
      failures.add('asked', unasked, 0, 'one');
    }
    expect(failures.get('asked')).to.include({ error, firstFailedAt: 1_000, attempts: 1_001 });
  });

  it('are forgotten when they are removed, and start over', () => {
    const failures = create(2);
    failures.add('a', error, 0, 'one');
    failures.remove('a');
    failures.remove('never-there');
    time = 2_000;
    expect(failures.add('a', error, 0, 'two')).to.include({ firstFailedAt: 2_000, attempts: 1 });
    failures.add('b', error, 0, 'two');
    failures.add('c', error, 0, 'two');
    expect(failures.keys()).to.deep.equal(['b', 'c']);
  });

  it('take a bounded number of bytes, of the namespace that has the longest names', () => {
    const failures = create(1_000_000);
    failures.add('bystander', error, 0, 'theirs');
    for (let index = 0; index < 20_000; index += 1) failures.add(`${index}`.padEnd(1_500, 'x'), error, 0, 'flood');
    expect(failures.keys().reduce((sum, key) => sum + key.length, 0)).to.be.below(16 * 1024 * 1024);
    expect(failures.keys().length).to.be.above(4_000);
    expect(failures.get('bystander')).not.to.equal(undefined);
  });
});
