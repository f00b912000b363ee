import { expect } from 'chai';
import { createLimit, createPatientResolver, type PatientWaiting } from '../../src/cli/lookups/patient.ts';
import { type Clock, systemClock } from '../../src/kit/clock.ts';
import { ImageError, type ImageErrorDetails } from '../../src/oci/errors.ts';
import type { Resolution, TagResolver } from '../../src/oci/resolver.ts';
import { createHandClock } from '../controllers/hand-clock.ts';

const ACCESS = { namespace: 'shop', pullSecrets: [], always: false };
const FOUND: Resolution = {
  platforms: [{ os: 'linux', architecture: 'arm64' }],
  skipped: [],
  isIndex: true,
  source: 'r.example',
};
const IMAGE = 'r.example/web:1';

/** The answers of a registry, in order; the last one stays. `hang`: none. */
type Answer = Resolution | 'hang' | Partial<ImageErrorDetails>;

const SOON: Answer = { code: 'unavailable', temporary: true };
const LIMITED = (seconds: number): Answer => ({ code: 'rate-limited', temporary: true, retryAfterMs: seconds * 1_000 });
const SILENT: Answer = { code: 'timeout', temporary: true };
const BUSY = (seconds: number): Answer => ({ code: 'unavailable', temporary: true, retryAfterMs: seconds * 1_000 });
/** Nothing is asked, because of what was answered before. */
const UNASKED: Answer = { code: 'rate-limited', temporary: true, retryAfterMs: 3_000, isUnasked: true };
const MISSING: Answer = { code: 'not-found', temporary: false };
/** What a mirror lacks may come later: the controller waits for it. */
const NOT_YET: Answer = { code: 'not-found', temporary: true };

/** A world in which waiting takes no time: who waits moves the clock. */
function world(answers: readonly Answer[], limitMs: number | undefined, ownClock?: Clock) {
  const time = { now: 0 };
  const timers: { readonly at: number; readonly action: () => void }[] = [];
  const pass = (ms: number) => {
    time.now += ms;
    for (const timer of timers.filter(({ at }) => at <= time.now)) {
      timers.splice(timers.indexOf(timer), 1);
      timer.action();
    }
  };
  const clock: Clock = ownClock ?? {
    ...systemClock,
    steady: () => time.now,
    random: () => 0.5,
    delay: async (ms) => pass(ms),
    after(ms, action) {
      const timer = { at: time.now + ms, action };
      timers.push(timer);
      return () => void timers.splice(timers.indexOf(timer), 1);
    },
  };
  const end = new AbortController();
  const askedAt: number[] = [];
  const waits: PatientWaiting[] = [];
  const next = async (): Promise<Resolution> => {
    const answer = answers[Math.min(askedAt.length, answers.length - 1)] ?? 'hang';
    askedAt.push(time.now);
    if (answer === 'hang') return new Promise(() => pass(limitMs ?? 120_000));
    if ('platforms' in answer) return answer;
    // A silent registry takes its time.
    if (answer === SILENT) pass(15_000);
    throw new ImageError('failed', { code: 'unavailable', temporary: true, endpoint: 'r.example', ...answer });
  };
  const inner: TagResolver = {
    look: () => ({
      kind: 'failed',
      error: new ImageError('failed', { code: 'unavailable', temporary: true }),
      isPlanned: true,
      sinceMs: time.now,
      retryInMs: Number.POSITIVE_INFINITY,
    }),
    onSettled: () => {},
    resolve: next,
    pending: () => 0,
    failing: () => 0,
    forgive: () => {},
    tags: async () => [],
    reach: () => Promise.reject(new Error('no registry is reached')),
  };
  const resolver = createPatientResolver(inner, {
    clock,
    limit: createLimit(clock, limitMs, end.signal),
    signal: end.signal,
    onWait: (each) => waits.push(each),
    counts: { done: 0, total: 0 },
  });
  return { resolver, askedAt, waits, time, end };
}

describe('lookups of commands', () => {
  const rows: readonly (readonly [
    title: string,
    answers: readonly Answer[],
    limit: number,
    askedAt: readonly number[],
    outcome: string,
  ])[] = [
    ['ask once where there is an answer', [FOUND], 120, [0], 'known'],
    ['ask again after a failure that may pass', [SOON, SOON, FOUND], 120, [0, 1, 3], 'known'],
    ['wait as long as the registry asks for', [LIMITED(10), FOUND], 120, [0, 10.2], 'known'],
    ['do not ask again after a failure that lasts', [MISSING, FOUND], 120, [0], 'not-found'],
    ['do not ask again for what a mirror does not have', [NOT_YET, FOUND], 120, [0], 'not-found'],
    ['do not ask again without a time for it', [SOON, FOUND], 0, [0], 'unavailable'],
    ['do not wait for longer than there is time', [LIMITED(600), FOUND], 120, [0], 'rate-limited'],
    ['end with the limit', [SOON], 12, [0, 1, 3, 7], 'unavailable'],
    ['give up a registry that answers for no image for 15 s', [SOON], 120, [0, 1, 3, 7], 'unavailable'],
    ['give up a registry that cannot be reached for as long', [SOON], 120, [0, 1, 3, 7], 'unavailable'],
    [
      'give up a registry whatever times it names',
      [SOON, BUSY(4), UNASKED, BUSY(4), BUSY(4), FOUND],
      120,
      [0, 1, 5.2, 8.4, 12.6],
      'unavailable',
    ],
    ['do not wait for longer than that at all', [LIMITED(15), FOUND], 120, [0], 'rate-limited'],
    ['do not ask a registry again that has been silent until its time-out', [SILENT, FOUND], 120, [0], 'timeout'],
    ['end with the limit where a later try hangs', [LIMITED(1), 'hang'], 20, [0, 1.2], 'rate-limited'],
  ];
  for (const [title, answers, limit, askedAt, outcome] of rows) {
    it(title, async () => {
      const { resolver, end, ...found } = world(answers, limit * 1_000);
      const result = await resolver.resolve(IMAGE, ACCESS, end.signal).then(
        () => 'known',
        (error: unknown) => (error instanceof ImageError ? error.code : String(error)),
      );
      end.abort();
      expect([result, found.askedAt.map((ms) => Math.round(ms) / 1_000)]).to.deep.equal([outcome, askedAt]);
    });
  }

  it('of an image that is asked for in the background count as pending until they have ended for good', async () => {
    const { resolver, end, waits } = world([SOON, LIMITED(2), FOUND], 60_000);
    const settled = new Promise<string>((resolve) => resolver.onSettled(resolve));
    resolver.look(IMAGE, ACCESS);
    resolver.look(IMAGE, ACCESS);
    expect([resolver.pending(), resolver.look(IMAGE, ACCESS).kind]).to.deep.equal([1, 'pending']);
    expect(await settled).to.equal('r.example/web:1');
    expect(resolver.pending()).to.equal(0);
    expect(waits.map(({ registry, code, done, total }) => [registry, code, done, total])).to.deep.equal([
      ['r.example', 'unavailable', 0, 1],
      ['r.example', 'rate-limited', 0, 1],
    ]);
    end.abort();
  });

  it('go on while the registry answers for other images', async () => {
    const clock = createHandClock();
    const { resolver, end, askedAt } = world([LIMITED(10), FOUND, LIMITED(10), FOUND], 60_000, clock);
    const limited = resolver.resolve(IMAGE, ACCESS, end.signal);
    while (clock.waiting === 0) await new Promise(setImmediate);
    await clock.advance(9_000);
    await resolver.resolve('r.example/other:1', ACCESS, end.signal);
    await clock.advance(2_000);
    while (clock.waiting === 0) await new Promise(setImmediate);
    await clock.advance(11_000);
    expect(await limited).to.equal(FOUND);
    expect(askedAt.length).to.equal(4);
    end.abort();
  });

  for (const [title, ms, progress, end] of [
    ['two minutes', undefined, [], 120],
    ['two minutes, and on while images become known', undefined, [100, 110, 124], 139],
    ['15 minutes at most', undefined, Array.from({ length: 100 }, (_, index) => index * 10), 900],
    ['exactly as long as was said', 120_000, [100, 110], 120],
  ] as const) {
    it(`last ${title}`, async () => {
      const clock = createHandClock();
      const limit = createLimit(clock, ms, new AbortController().signal);
      limit.start();
      let now = 0;
      for (; !limit.signal.aborted; now += 1) {
        if (progress.includes(now as never)) limit.progressed();
        await clock.advance(1_000);
      }
      expect(now).to.equal(end);
    });
  }

  it('say nothing about how long the controller has tried', async () => {
    const { resolver, end, time } = world([MISSING], 60_000);
    await resolver.resolve(IMAGE, ACCESS, end.signal).catch(() => undefined);
    time.now = 300_000;
    expect(resolver.look(IMAGE, ACCESS, () => false)).to.include({ kind: 'failed', sinceMs: 0 });
    end.abort();
  });

  it('leave the places of a registry to others while they wait', async () => {
    const clock = createHandClock();
    const { resolver, end, askedAt } = world([LIMITED(1)], 60_000, clock);
    const all = Array.from({ length: 200 }, (_, index) =>
      resolver.resolve(`r.example/web:${index}`, ACCESS, end.signal),
    );
    while (clock.waiting < all.length) await new Promise(setImmediate);
    expect(askedAt.length).to.equal(200);
    end.abort();
    await Promise.allSettled(all);
  });
});
