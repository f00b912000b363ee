import { expect } from 'chai';
import { createAskers } from '../../../src/kit/fairness/asking-namespaces.ts';
import { ImageError } from '../../../src/oci/errors.ts';
import type { Credential } from '../../../src/oci/http/transport.ts';
import { createLogins } from '../../../src/oci/lookup/logins.ts';
import {
  createPaces,
  isProgressing,
  type LeftOfLimit,
  type PacesState,
  paceOf,
  paceRefusal,
  startTry,
  type Try,
  turnOf,
  waitAt,
} from '../../../src/oci/lookup/pace.ts';
import { targetFor } from './target.ts';

const LOGIN: Credential = { username: 'u', password: 'p', fingerprint: 'one', shared: false };

describe('the pace of an account', () => {
  let time: number;
  /** In the order of their times. */
  let timers: { at: number; act: (() => void) | undefined }[];
  let paces: PacesState;
  const signal = new AbortController().signal;

  beforeEach(() => {
    time = 1_000_000;
    timers = [];
    paces = createPaces({
      logins: createLogins({ refusedMs: 0, now: () => time }),
      now: () => time,
      after(ms, act) {
        const timer: (typeof timers)[number] = { at: time + ms, act };
        timers.splice(timers.findLastIndex((each) => each.at <= timer.at) + 1, 0, timer);
        return () => {
          timer.act = undefined;
        };
      },
    });
  });

  const at = (image: string) => targetFor(`r.example.com/${image}`);

  const pass = () => new Promise((resolve) => setImmediate(resolve));

  /** Lets the time pass, timer by timer. */
  async function go(ms: number): Promise<void> {
    const until = time + ms;
    for (;;) {
      const [next] = timers;
      if (next === undefined || next.at > until) break;
      timers.shift();
      if (next.act === undefined) continue;
      time = Math.max(time, next.at);
      next.act();
      await pass();
    }
    time = until;
    await pass();
  }

  const begin = (image = 'a/x', login?: Credential): Try => startTry(paceOf(paces, at(image), login)) ?? expect.fail();
  /** Waits for a turn, also where no other endpoint is left. */
  const turn = (namespace = 'n', image = 'a/x', login?: Credential, more: object = {}): Promise<Try> =>
    turnOf(paceOf(paces, at(image), login), createAskers(namespace), { since: time, isLast: true, ...more }, signal);
  const refuse = (retryAfterMs?: number, image?: string) => begin(image).end({ kind: 'limited', retryAfterMs });
  const isFree = (image = 'a/x', login?: Credential): boolean => {
    const trial = startTry(paceOf(paces, at(image), login));
    trial?.end();
    return trial !== undefined;
  };

  it('is free until a registry refuses, and then stands still for as long as it asks, at most five minutes', async () => {
    for (const [asked, waits] of [
      [undefined, 1000],
      [7000, 7000],
      [3_600_000, 300_000],
    ] as const) {
      expect(isFree(), 'before').to.equal(true);
      refuse(asked);
      time += waits - 1;
      expect(isFree(), `${asked} too early`).to.equal(false);
      time += 1;
      expect(isFree(), `${asked}`).to.equal(true);
      time += 600_000;
    }
  });

  it('doubles the pause while refusals go on, up to a minute, and begins again after an answer', () => {
    const pauses: number[] = [];
    for (let count = 0; count < 8; count += 1) {
      refuse();
      const from = time;
      while (!isFree()) time += 500;
      pauses.push(time - from);
    }
    expect(pauses).to.deep.equal([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
    begin().end({ kind: 'answered', hasWorked: true });
    time += 60_000;
    refuse();
    time += 1000;
    expect(isFree()).to.equal(true);
  });

  it('lets one try go first after a pause, and the next one after its answer', () => {
    refuse();
    time += 10_000;
    const first = begin();
    time += 4000;
    expect(isFree()).to.equal(false);
    first.end({ kind: 'answered', hasWorked: true });
    time += 1000;
    expect(isFree()).to.equal(true);
  });

  it('lets the next try go after five seconds, though one that began before does not end', () => {
    refuse();
    time += 1000;
    begin();
    time += 5000;
    expect(isFree()).to.equal(false);
    time += 1;
    expect(isFree()).to.equal(true);
  });

  it('learns nothing new from tries that were under way at a refusal', () => {
    const all = [begin(), begin(), begin()];
    time += 10;
    for (const each of all) each.end({ kind: 'limited', retryAfterMs: undefined });
    time += 1000;
    expect(isFree()).to.equal(true);
  });

  it('is that of a login at the projects that met a limit, and of nobody else', () => {
    refuse();
    expect([isFree('a/y'), isFree('b/x'), isFree('a/x', LOGIN)]).to.deep.equal([false, true, true]);
    time += 1000;
    const first = begin('a/x');
    refuse(undefined, 'b/x');
    first.end({ kind: 'answered', hasWorked: true });
    expect([isFree('a/y'), isFree('b/x'), isFree('c/x')], 'two that met it').to.deep.equal([false, false, true]);
  });

  it('pauses no longer because projects that had met no limit are refused, too', () => {
    refuse();
    for (let index = 0; index < 100; index += 1) refuse(60_000, `new${index}/x`);
    time += 1000;
    expect([isFree('a/x'), isFree('new7/x')]).to.deep.equal([true, true]);
  });

  it('waits for an account that asks for a minute after it answered, and says to come back in time', async () => {
    begin().end({ kind: 'answered', hasWorked: true });
    refuse(60_000);
    const pace = paceOf(paces, at('a/x'), undefined);
    const first = turn('n', 'a/x', undefined, { isLast: false });
    await go(59_999);
    expect(isProgressing(paces, pace.account)).to.equal(true);
    await go(1);
    (await first).end({ kind: 'answered', hasWorked: true });
    await go(10_000);
    refuse();
    const many = Array.from({ length: 500 }, () => turn().catch(() => undefined));
    expect(paceRefusal(pace).retryAfterMs).to.be.at.most(60_000);
    await go(1_000_000);
    for (const each of await Promise.all(many)) each?.end();
  });

  it('becomes that of one project where the others are answered while it is refused', async () => {
    refuse(undefined, 'a/x');
    refuse(undefined, 'b/x');
    for (let count = 0; count < 4; count += 1) {
      while (!isFree('a/x')) time += 500;
      begin('a/x').end({ kind: 'answered', hasWorked: true });
      while (!isFree('b/x')) time += 500;
      begin('b/x').end({ kind: 'limited', retryAfterMs: 300_000 });
      if (count < 2) time += 300_000;
    }
    expect([isFree('a/x'), isFree('b/x')]).to.deep.equal([true, false]);
  });

  describe('where a registry says how much is left', () => {
    const rows: readonly (readonly [left: LeftOfLimit, waitsMs: number])[] = [
      [{ limit: 100, remaining: 11, windowSeconds: 21_600 }, 0],
      [{ limit: 100, remaining: 10, windowSeconds: 21_600 }, 5000],
      [{ limit: 100, remaining: 0, windowSeconds: 21_600 }, 5000],
      [{ limit: 100, remaining: 0 }, 5000],
      [{ limit: 600, remaining: 60 }, 1000],
      [{ limit: 600, remaining: 60, windowSeconds: 30 }, 500],
      [{ limit: 600, remaining: 60, windowSeconds: 0 }, 1000],
      [{ limit: 0, remaining: 0, windowSeconds: 999_999_999 }, 5000],
    ];
    for (const [left, waitsMs] of rows) {
      it(`lets ${waitsMs} ms pass between tries with ${JSON.stringify(left)}`, () => {
        begin().end({ kind: 'answered', hasWorked: false, left });
        for (let count = 0; count < 3; count += 1) {
          time += waitsMs - 1;
          expect(isFree(), 'too early').to.equal(waitsMs === 0);
          time += 1;
          begin().end({ kind: 'answered', hasWorked: false, left });
        }
      });
    }

    const few = { limit: 100, remaining: 3, windowSeconds: 21_600 };

    it('slows nobody but the account, and only the projects that got such an answer', () => {
      begin('a/x').end({ kind: 'answered', hasWorked: false, left: few });
      expect([isFree('a/y'), isFree('b/x'), isFree('a/x', LOGIN)]).to.deep.equal([false, true, true]);
      begin('b/x').end({ kind: 'answered', hasWorked: false, left: few });
      time += 5000;
      begin('b/x');
      expect(isFree('a/x')).to.equal(false);
      expect(startTry(paceOf(paces, targetFor('s.example.com/a/x'), undefined))).not.to.equal(undefined);
    });

    it('is free again once more is left', () => {
      begin().end({ kind: 'answered', hasWorked: false, left: few });
      time += 5000;
      begin().end({ kind: 'answered', hasWorked: false, left: { ...few, remaining: 100 } });
      expect(isFree()).to.equal(true);
    });

    it('stands still at a refusal all the same, which a word of the registry does not end', () => {
      begin().end({ kind: 'answered', hasWorked: false, left: few });
      time += 5000;
      const under = begin();
      time += 5000;
      refuse(60_000);
      under.end({ kind: 'answered', hasWorked: false, left: { ...few, remaining: 100 } });
      time += 59_999;
      expect(isFree()).to.equal(false);
    });

    it('says so to who waits, and they have their turn', async () => {
      begin().end({ kind: 'answered', hasWorked: false, left: few });
      const pace = paceOf(paces, at('a/x'), undefined);
      expect(paceRefusal(pace).message).to.equal(
        'waits for its turn at r.example.com, about 5 s: few requests are left',
      );
      const next = turn('n', 'a/x', undefined, { isLast: false });
      await go(5000);
      (await next).end();
    });
  });

  it('lets namespaces take turns', async () => {
    begin().end({ kind: 'answered', hasWorked: true });
    refuse();
    const order: string[] = [];
    const waits = ['flood', 'flood', 'flood', 'flood', 'shop'].map(async (namespace) => {
      const own = await turn(namespace);
      order.push(namespace);
      own.end({ kind: 'answered', hasWorked: true });
    });
    await go(20_000);
    await Promise.all(waits);
    expect(order.indexOf('shop')).to.equal(1);
  });

  /** Sends each image once to a registry that allows so many requests a second; returns how long that took, and the refusals. */
  async function drain(images: number, perSecond: number, burst: number, retryAfterMs?: number) {
    let tokens = burst;
    let filledAt = time;
    let refused = 0;
    let done = 0;
    const from = time;
    const one = async (namespace: string): Promise<void> => {
      const since = time;
      for (let trial = startTry(paceOf(paces, at('a/x'), undefined)); ; trial = undefined) {
        trial ??= await turn(namespace, 'a/x', undefined, { since });
        tokens = Math.min(burst, tokens + ((time - filledAt) * perSecond) / 1000);
        filledAt = time;
        if (tokens >= 1) {
          tokens -= 1;
          done += 1;
          return trial.end({ kind: 'answered', hasWorked: true });
        }
        refused += 1;
        trial.end({ kind: 'limited', retryAfterMs });
      }
    };
    const all = Promise.all(Array.from({ length: images }, (_, index) => one(`n${index % 7}`)));
    while (done < images && time - from < 1_000_000) await go(100);
    await all;
    return { seconds: (time - from) / 1000, refused };
  }

  for (const [perSecond, burst, retryAfterMs, images = 750] of [
    [10, 5, undefined],
    [10, 50, undefined],
    [10, 5, 1000],
    [2, 1, undefined],
    [100, 20, undefined, 1500],
  ] as const) {
    it(`finds ${perSecond} a second, burst ${burst}, in 1.5 times the least time and with 1.3 tries for each image${retryAfterMs === undefined ? '' : ', with Retry-After'}`, async () => {
      const { seconds, refused } = await drain(images, perSecond, burst, retryAfterMs);
      expect(seconds).to.be.at.most(1.5 * (images / perSecond));
      expect(refused).to.be.at.most(0.3 * images);
    });
  }

  it('says how long it takes until everybody had a turn', async () => {
    begin().end({ kind: 'answered', hasWorked: true });
    expect(waitAt(paces, 'r.example.com')).to.equal(undefined);
    refuse();
    const waiting = turn();
    expect(waitAt(paces, 'r.example.com')).to.be.within(1000, 5000);
    expect(waitAt(paces, 's.example.com')).to.equal(undefined);
    await go(1000);
    (await waiting).end();
    expect(waitAt(paces, 'r.example.com')).to.equal(undefined);
  });

  const hopeless: [what: string, isLast: boolean, isAnswering: boolean, afterMs: number][] = [
    ['at once where it never answered and there is another endpoint', false, false, 0],
    ['after 30 seconds without an answer', true, false, 30_000],
    ['30 seconds after its last answer, though there is another endpoint', false, true, 30_000],
  ];
  for (const [what, isLast, isAnswering, afterMs] of hopeless) {
    it(`refuses who waits ${what}`, async () => {
      if (isAnswering) begin().end({ kind: 'answered', hasWorked: true });
      refuse();
      const patience = { since: time, isLast };
      let error: unknown;
      // A refused turn is followed by the next, as in a lookup.
      const wait = async (): Promise<void> => {
        for (;;) (await turn('n', 'a/x', undefined, patience)).end({ kind: 'limited', retryAfterMs: undefined });
      };
      void wait().catch((reason: unknown) => {
        error = reason;
      });
      await pass();
      if (afterMs > 0) {
        expect(error, 'too early').to.equal(undefined);
        // The first pause is a second.
        await go(afterMs + 1000);
      }
      expect(error).to.be.instanceOf(ImageError);
      expect(error).to.include({ code: 'rate-limited', isUnasked: true, temporary: true });
    });
  }

  it('lets one try at a time go with a login that has not worked at the host, and any number once it has', () => {
    const one = begin('a/x', LOGIN);
    expect([isFree('c/x', LOGIN), isFree('c/x')]).to.deep.equal([false, true]);
    one.end({ kind: 'answered', hasWorked: false });
    const two = begin('c/x', LOGIN);
    time += 5001;
    expect(isFree('a/x', LOGIN), 'one that hangs').to.equal(true);
    two.end({ kind: 'answered', hasWorked: true });
    const many = [1, 2, 3, 4].map(() => begin('c/x', LOGIN));
    for (const each of many) each.end();
  });

  it('lets namespaces take turns with such a login, whatever their projects, and all go once it has worked', async () => {
    const first = begin('a/x', LOGIN);
    const order: string[] = [];
    const waits = ['flood', 'flood', 'flood', 'shop', 'flood'].map(async (namespace, index) => {
      const own = await turn(namespace, `p${index}/x`, LOGIN, { isLast: false });
      order.push(namespace);
      await pass();
      own.end({ kind: 'answered', hasWorked: namespace === 'shop' });
    });
    first.end({ kind: 'answered', hasWorked: false });
    await Promise.all(waits);
    expect(order.slice(0, 2)).to.deep.equal(['flood', 'shop']);
  });

  it('ends all waits where commands have no more time, and lets nobody begin one', async () => {
    const end = new AbortController();
    paces = createPaces({
      logins: createLogins({ refusedMs: 0, now: () => time }),
      now: () => time,
      after: () => () => undefined,
      waitsUntil: end.signal,
    });
    begin().end({ kind: 'answered', hasWorked: true });
    refuse();
    const wait = () => turn().catch((error: unknown) => error);
    const waiting = wait();
    end.abort();
    for (const error of [await waiting, await wait()])
      expect(error).to.include({ code: 'rate-limited', isUnasked: true });
  });

  it('ends a wait after a quarter of an hour', async () => {
    begin('a/x', LOGIN);
    let count = 0;
    // Tries that do not end let the next go after 5 s.
    const blocks = Array.from({ length: 200 }, () =>
      turn('n', 'a/x', LOGIN, { since: time + 600_000 }).catch(() => undefined),
    );
    const late = turn('n', 'a/x', LOGIN).catch(() => {
      count += 1;
    });
    await go(899_999);
    expect(count).to.equal(0);
    await go(1);
    expect(count).to.equal(1);
    await late;
    await go(2_000_000);
    await Promise.all(blocks);
  });

  it('forgets no limit because of a flood of names', () => {
    begin().end({ kind: 'answered', hasWorked: true });
    refuse();
    for (let index = 0; index < 6000; index += 1) begin(`p${index}/x`).end({ kind: 'answered', hasWorked: true });
    expect(isFree()).to.equal(false);
  });

  it('gives the time of a try back that was not made, and not of one that failed', () => {
    refuse();
    time += 1000;
    begin().end({ kind: 'answered', hasWorked: false });
    time += 10_000;
    begin().end();
    expect(isFree()).to.equal(true);
    begin().end({ kind: 'failed' });
    expect(isFree()).to.equal(false);
  });
});
