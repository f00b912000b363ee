import type { LookupFunction } from 'node:net';
import { expect } from 'chai';
import { createDns, libuvThreads } from '../../../src/kit/network/dns.ts';

type Settle = Parameters<LookupFunction>[2];

/** A DNS server whose answers and whose time the test controls. */
function startDns(threads: number) {
  const ending = new AbortController();
  /** Names that hold a thread, with the function that answers for them. */
  const asked = new Map<string, Settle>();
  const log: string[] = [];
  const timers = new Map<() => void, number>();
  let time = 1000;
  const lookup = createDns({
    threads,
    signal: ending.signal,
    now: () => time,
    later: (milliseconds, run) => {
      timers.set(run, time + milliseconds);
      return () => void timers.delete(run);
    },
    lookup: (name, _options, callback) => {
      log.push(name);
      asked.set(name, callback);
    },
  });
  const settle = (name: string, ...answer: Parameters<Settle>): void => {
    const callback = asked.get(name);
    asked.delete(name);
    callback?.(...answer);
  };
  return {
    asked: log,
    /** Resolves to the address, or to the code of the failure. */
    ask: (name: string): Promise<string> =>
      new Promise((resolve) =>
        lookup(name, { all: true }, (error, addresses) =>
          resolve(error?.code ?? error?.message ?? String(typeof addresses === 'string' || addresses[0]?.address)),
        ),
      ),
    answer: (name: string): void => settle(name, null, [{ address: '192.0.2.1', family: 4 }]),
    fail: (name: string, code: string): void => settle(name, Object.assign(new Error(code), { code }), []),
    advance: (milliseconds: number): void => {
      time += milliseconds;
      for (const [run, at] of [...timers]) {
        if (at > time || !timers.delete(run)) continue;
        run();
      }
    },
    timers,
    end: () => ending.abort(),
  };
}

describe('the DNS', () => {
  it('is asked once at a time for a name, and all callers get the answer', async () => {
    const dns = startDns(4);
    const waiting = [dns.ask('a'), dns.ask('a'), dns.ask('a')];
    expect(dns.asked).to.deep.equal(['a']);
    dns.answer('a');
    expect(await Promise.all(waiting)).to.deep.equal(Array(3).fill('192.0.2.1'));
    expect(dns.timers.size).to.equal(0);
    void dns.ask('a');
    expect(dns.asked).to.deep.equal(['a', 'a']);
  });

  for (const [code, milliseconds] of Object.entries({ ENOTFOUND: 30_000, EAI_AGAIN: 5000, EAI_FAIL: 0 })) {
    it(`is not asked again for ${milliseconds / 1000} s after ${code}`, async () => {
      const dns = startDns(4);
      const first = dns.ask('a');
      dns.fail('a', code);
      expect(await first).to.equal(code);
      if (milliseconds > 0) {
        dns.advance(milliseconds - 1);
        expect(await dns.ask('a')).to.equal(code);
        expect(dns.asked).to.have.length(1);
        dns.advance(1);
      }
      const again = dns.ask('a');
      dns.answer('a');
      expect(await again).to.equal('192.0.2.1');
      expect(dns.asked).to.have.length(2);
    });
  }

  it('has five seconds, and is not asked again before it has answered', async () => {
    const dns = startDns(4);
    const first = dns.ask('a');
    dns.advance(4999);
    const joined = dns.ask('a');
    dns.advance(1);
    expect(await Promise.all([first, joined])).to.deep.equal(['ETIMEOUT', 'ETIMEOUT']);
    dns.advance(4999);
    expect(await dns.ask('a')).to.equal('ETIMEOUT');
    dns.advance(1);
    const late = dns.ask('a');
    dns.advance(4999);
    dns.answer('a');
    expect(await late).to.equal('192.0.2.1');
    expect(dns.asked).to.deep.equal(['a']);
  });

  it("leaves half of libuv's lookup threads free of names that have never resolved", async () => {
    const dns = startDns(8);
    const known = dns.ask('known-1');
    dns.answer('known-1');
    await known;
    const dead = ['dead-1', 'dead-2', 'dead-3'].map((name) => dns.ask(name));
    void dns.ask('known-1');
    expect(dns.asked).to.deep.equal(['known-1', 'dead-1', 'dead-2', 'known-1']);
    dns.answer('known-1');
    // The callers have their answer; the threads still hang.
    dns.advance(5000);
    expect(await Promise.all(dead)).to.deep.equal(Array(3).fill('ETIMEOUT'));
    void dns.ask('dead-4');
    expect(dns.asked).to.have.length(4);
    dns.fail('dead-1', 'EAI_AGAIN');
    expect(dns.asked.slice(4)).to.deep.equal(['dead-4']);
  });

  it('is asked for waiting names in their order, and the wait counts', async () => {
    const dns = startDns(4);
    void dns.ask('dead');
    const first = dns.ask('first');
    dns.advance(3000);
    const second = dns.ask('second');
    const third = dns.ask('third');
    dns.advance(2000);
    expect(await first).to.equal('ETIMEOUT');
    dns.fail('dead', 'ENOTFOUND');
    dns.answer('second');
    expect(await second).to.equal('192.0.2.1');
    dns.answer('third');
    expect(await third).to.equal('192.0.2.1');
    expect(dns.asked).to.deep.equal(['dead', 'second', 'third']);
    // It was never looked up, so nothing bad is known about it.
    const again = dns.ask('first');
    dns.answer('first');
    expect(await again).to.equal('192.0.2.1');
  });

  it('that no longer answers for a name makes that one of the names that may not hold all threads', async () => {
    const dns = startDns(4);
    const good = dns.ask('a');
    dns.answer('a');
    await good;
    void dns.ask('a');
    dns.advance(5000);
    void dns.ask('b');
    expect(dns.asked).to.deep.equal(['a', 'a']);
    dns.answer('a');
    expect(dns.asked).to.deep.equal(['a', 'a', 'b']);
  });

  it('is not waited for when everything ends', async () => {
    const dns = startDns(4);
    const waiting = [dns.ask('a'), dns.ask('b')];
    dns.end();
    expect(await Promise.all(waiting)).to.deep.equal(['stopped', 'stopped']);
    expect(await dns.ask('c')).to.equal('stopped');
    expect(dns.timers.size).to.equal(0);
  });
});

describe("libuv's threads", () => {
  it('are as many as UV_THREADPOOL_SIZE says', () => {
    const sizes = [undefined, '64', '0', '', 'x', '-3', '9999'];
    expect(sizes.map(libuvThreads)).to.deep.equal([4, 64, 1, 1, 1, 1, 1024]);
  });
});
