import { expect } from 'chai';
import type { RequestOptions } from '../../src/kube/api-client.ts';
import { ApiError, ConnectionError } from '../../src/kube/errors.ts';
import { createReflector, type Reflector } from '../../src/kube/watch/reflector.ts';
import { type Pod, readPod } from '../../src/placement/objects/pod.ts';
import { clientOf } from '../support/client-of.ts';
import { watchOver } from '../support/watch-over.ts';
import { createSetClock, type SetClock } from './cluster.ts';

const LIST = 'list?limit=500';

/** The behaviour of a watch: it fails to begin, or it gives these lines and then ends, breaks or stays open. */
type Watch = Error | { readonly lines?: readonly unknown[]; readonly ending: Error | 'end' | 'open' };

describe('a reflector whose requests fail', () => {
  let clock: SetClock;
  let planned: { ms: number; act: () => void }[];
  let end: AbortController;
  let lists: (Error | object)[];
  let watches: Watch[];
  let asked: string[];
  let sent: RequestOptions[];
  let told: string[];
  let running: Promise<unknown>;
  beforeEach(() => {
    [planned, end, lists, watches, asked, sent, told] = [[], new AbortController(), [], [], [], [], []];
    const still = createSetClock();
    clock = {
      ...still,
      // A wait ends at once.
      async delay(ms, signal) {
        clock.now.monotonic += ms;
        await still.delay(ms, signal);
      },
      after(ms, act) {
        const entry = { ms, act };
        planned.push(entry);
        return () => {
          planned = planned.filter((other) => other !== entry);
        };
      },
    };
  });
  afterEach(async () => {
    end.abort();
    await running;
  });

  const page = (next = '', version = '10') => ({ metadata: { resourceVersion: version, continue: next }, items: [] });
  const bookmark = { type: 'BOOKMARK', object: { metadata: { resourceVersion: '11' } } };
  const refusal = (status: number, retryAfterMs?: number) =>
    new ApiError(status, { message: `no ${status}` }, 'watch /api/v1/pods', retryAfterMs);

  /** Runs until all answers are used; then the last watch stays open. */
  function start(): Reflector<Pod> {
    const client = clientOf({
      async request(_verb, path, options = {}) {
        asked.push(path.replace('/api/v1/pods', 'list'));
        sent.push(options);
        const answer = lists.shift() ?? page();
        if (answer instanceof Error) throw answer;
        return answer;
      },
      watch: watchOver(async (path, signal) => {
        asked.push(`watch ${new URLSearchParams(path.split('?')[1]).get('resourceVersion')}`);
        const watch = watches.shift() ?? { ending: 'open' };
        if (watch instanceof Error) throw watch;
        return (async function* () {
          for (const line of watch.lines ?? []) yield Buffer.from(`${JSON.stringify(line)}\n`);
          if (watch.ending instanceof Error) throw watch.ending;
          if (watch.ending === 'end') return;
          await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
        })();
      }),
    });
    const reflector = createReflector({
      client,
      path: '/api/v1/pods',
      read: (object) => readPod(object),
      keyOf: ({ namespace, name }) => `${namespace}/${name}`,
      onChange: () => undefined,
      clock,
      onTrouble: (attempt, reason) => void told.push(`${attempt}: ${reason}`),
      onWorking: () => void told.push('works'),
      idleMs: 90_000,
    });
    running = reflector.run(end.signal).catch((error: unknown) => error);
    return reflector;
  }
  const until = async (condition: () => boolean) => {
    while (!condition()) await new Promise((resolve) => setImmediate(resolve));
  };
  const listed = () => asked.filter((line) => line.startsWith('list'));
  const open = () =>
    until(() => watches.length === 0 && planned.length > 0 && asked.at(-1)?.startsWith('watch') === true);

  for (const status of [403, 429, 500, 503]) {
    it(`never lists again if a watch is refused with ${status}, reports it once, and waits longer each time`, async () => {
      watches = [...Array.from({ length: 20 }, () => refusal(status)), { lines: [bookmark], ending: 'open' }];
      const reflector = start();
      await until(() => told.includes('works'));
      expect(listed()).to.deep.equal([LIST]);
      expect(asked.filter((line) => line === 'watch 10')).to.have.lengthOf(21);
      expect(told).to.deep.equal([`watch: watch /api/v1/pods: ${status} no ${status}`, 'works']);
      expect(clock.delays.slice(0, 9)).to.deep.equal([250, 500, 1_000, 2_000, 3_000, 3_000, 3_000, 3_000, 3_000]);
      expect(reflector.health().brokenSinceMs).to.equal(undefined);
    });
  }

  it('waits for as long as the server asks, for a list and for a watch', async () => {
    lists = [refusal(429, 7_000)];
    watches = [refusal(503, 10_000)];
    start();
    await open();
    expect(clock.delays).to.deep.equal([7_000, 10_000]);
  });

  it('waits longer after each list that fails, however long it takes to fail', async () => {
    lists = [refusal(503), refusal(503), refusal(503), refusal(503)];
    const { monotonic } = clock;
    clock.monotonic = () => {
      clock.now.monotonic += 29_000;
      return monotonic();
    };
    start();
    await open();
    expect(clock.delays).to.deep.equal([250, 500, 1_000, 2_000]);
  });

  it('goes on with the page that failed', async () => {
    lists = [page('b'), page('c'), refusal(500), new ConnectionError('reset'), page()];
    const reflector = start();
    await reflector.whenSynced;
    const [b, c] = [`${LIST}&continue=b`, `${LIST}&continue=c`];
    expect(asked.slice(0, 5)).to.deep.equal([LIST, b, c, c, c]);
  });

  it('lists in one piece once its pages have expired twice, with enough time for that', async () => {
    lists = [page('b'), refusal(410), page('b'), refusal(410), page()];
    const reflector = start();
    await reflector.whenSynced;
    const b = `${LIST}&continue=b`;
    expect(asked.slice(0, 5)).to.deep.equal([LIST, b, LIST, b, 'list']);
    expect(sent.map(({ completeMs = 0 }) => completeMs)).to.deep.equal([0, 0, 0, 0, 600_000]);
  });

  it('lists in one piece after the version expired twice before it could be watched, but not for ever', async () => {
    const works: Watch = { lines: [bookmark], ending: new Error('reset') };
    watches = [refusal(410), refusal(410), works, refusal(410), { ending: 'open' }];
    start();
    await open();
    expect(listed()).to.deep.equal([LIST, LIST, 'list', LIST]);
  });

  it('lists again after five watches that gave nothing, but not if some of them gave something', async () => {
    const nothing: Watch = { ending: new Error('reset') };
    const something: Watch = { ...nothing, lines: [bookmark] };
    const empty: Watch = { ending: 'end' };
    const error: Watch = { lines: [{ type: 'ERROR', object: { code: 500, message: 'etcd' } }], ending: 'end' };
    watches = [nothing, nothing, nothing, nothing, something, nothing, empty, error, new ConnectionError('x'), nothing];
    lists = [page(), page('', '12')];
    start();
    await open();
    const wholes = asked.filter((line) => !line.endsWith('limit=1'));
    const verbs = wholes.map((line) => line.split(/[ ?]/)[0]);
    expect(verbs).to.deep.equal(['list', ...Array.from({ length: 10 }, () => 'watch'), 'list', 'watch']);
    expect(asked.length - wholes.length, 'questions for the version, after the one that was not answered').to.equal(1);
  });

  it('lists again if its version is ahead of the server: etcd was restored', async () => {
    const message = 'Too large resource version: 10, current: 5';
    watches = [new ApiError(504, { message }, 'watch'), { ending: 'open' }];
    lists = [page(), page('', '5')];
    start();
    await open();
    expect(asked).to.deep.equal([LIST, 'watch 10', LIST, 'watch 5']);
  });

  it('asks for the version once when the server was away, and lists again if etcd was restored meanwhile', async () => {
    const away = new ConnectionError('cannot reach the API server');
    watches = [away, away, { ending: 'open' }];
    lists = [page(), away, page('', '12'), page('', '5'), page('', '5')];
    start();
    await open();
    const probe = 'list?limit=1';
    expect(asked).to.deep.equal([LIST, 'watch 10', probe, probe, 'watch 10', probe, LIST, 'watch 5']);
  });

  it('lists at once when a server that was away for long has forgotten the version, but not again and again', async () => {
    const away = new ConnectionError('cannot reach the API server');
    watches = [away, refusal(410), refusal(410), { ending: 'open' }];
    lists = [page(), away, away, away, away];
    start();
    await open();
    // Five attempts in vain: 0.25, 0.5, 1, 2, 3 s. The first 410 waits for nothing, the second one for 3 s.
    expect(clock.now.monotonic).to.equal(9_750);
    expect(asked.slice(-5)).to.deep.equal(['watch 10', LIST, 'watch 10', 'list', 'watch 10']);
  });

  it('does not report one broken connection, but a second one', async () => {
    const works: Watch = { lines: [bookmark], ending: new Error('reset') };
    watches = [works, works, { ending: new Error('reset') }, { lines: [bookmark], ending: 'open' }];
    start();
    await until(() => told.includes('works'));
    expect(told).to.deep.equal(['watch: reset', 'works']);
  });

  /** Lets the open watch be silent for too long; resolves when the next watch is open. */
  async function fallSilent(): Promise<void> {
    clock.now.monotonic += 100_000;
    const before = asked.length;
    planned.find(({ ms }) => ms === 90_000)?.act();
    await until(() => asked.length > before + 1);
    await open();
  }
  const object = (name: string, resourceVersion: string) => ({
    metadata: { namespace: 'default', name, uid: name, resourceVersion },
  });
  const holding = (...items: readonly object[]) => ({ metadata: { resourceVersion: '12' }, items });

  it('counts a watch that stays open as working', async () => {
    watches = [refusal(403), { ending: 'open' }];
    const reflector = start();
    await open();
    expect(reflector.health()).to.deep.equal({ brokenSinceMs: 0 });
    planned.find(({ ms }) => ms === 10_000)?.act();
    expect(reflector.health()).to.deep.equal({ brokenSinceMs: undefined });
  });

  it('counts silent watches as working if a list finds nothing that they missed: a server need not send bookmarks', async () => {
    lists = [holding(object('a', '5'))];
    const reflector = start();
    await open();
    for (let time = 0; time < 10; time++) {
      lists = [holding(object('a', '5'))];
      await fallSilent();
      expect(reflector.health()).to.deep.equal({ brokenSinceMs: undefined });
    }
    expect([told, clock.delays]).to.deep.equal([[], []]);
    expect(asked.slice(0, 5)).to.deep.equal([LIST, 'watch 12', LIST, 'watch 12', LIST]);
  });

  const missed: readonly [what: string, found: readonly object[]][] = [
    ['a new object', [object('a', '5'), object('b', '11')]],
    ['a changed object', [object('a', '11')]],
    ['another object of the same name', [{ metadata: { ...object('a', '5').metadata, uid: 'other' } }]],
    ['a deletion', []],
  ];
  for (const [what, found] of missed) {
    it(`counts a silent watch as broken that missed ${what}`, async () => {
      lists = [holding(object('a', '5'))];
      const reflector = start();
      await open();
      lists = [holding(...found)];
      await fallSilent();
      expect(reflector.health()).to.deep.equal({ brokenSinceMs: 100_000 });
      const timers = planned.map(({ ms }) => ms);
      expect(timers, 'an open watch alone proves nothing now').to.deep.equal([90_000]);
      lists = [holding(...found)];
      await fallSilent();
      expect(reflector.health(), 'the next one missed nothing').to.deep.equal({ brokenSinceMs: undefined });
      expect(clock.delays).to.deep.equal([]);
    });
  }

  it('says once that changes are missed, and that a watch works again when something arrives', async () => {
    const reflector = start();
    await open();
    for (let time = 0; time < 3; time++) {
      lists = [holding(object('a', String(time)))];
      if (time === 2) watches = [{ lines: [bookmark], ending: 'open' }];
      await fallSilent();
    }
    await until(() => told.includes('works'));
    expect(told).to.deep.equal(['watch: silent', 'works']);
    expect(reflector.health()).to.deep.equal({ brokenSinceMs: undefined });
  });

  for (const status of [401, 403, 404]) {
    it(`retries a first list that is refused with ${status}: the server may have just started`, async () => {
      lists = Array.from({ length: 12 }, () => refusal(status));
      const reflector = start();
      await reflector.whenSynced;
      expect(clock.now.monotonic).to.be.within(25_000, 30_000);
    });

    it(`rejects if a first list is refused with ${status} for half a minute`, async () => {
      lists = Array.from({ length: 100 }, () => refusal(status));
      start();
      expect(await running).to.include({ status });
      expect(clock.now.monotonic).to.be.within(30_000, 35_000);
    });
  }

  it('goes on if a later list is refused', async () => {
    watches = [refusal(410), { ending: 'open' }];
    lists = [page(), ...Array.from({ length: 20 }, () => refusal(403))];
    start();
    await open();
    expect(listed()).to.have.lengthOf(22);
  });
});
