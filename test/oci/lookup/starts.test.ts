import { expect } from 'chai';
import { createStarts } from '../../../src/oci/lookup/starts.ts';

describe('the start of lookups', () => {
  /** Keys are `namespace/host/number`, or `namespace/host:project/number`. */
  function create(perNamespace: number, perHost: number, perProject = perHost) {
    const starts = createStarts({ perNamespace, perHost, perProject });
    const started: string[] = [];
    const ends = new Map<string, (succeeds: boolean) => void>();
    const spotOf = (key: string) => {
      const [namespace = '', host = '', project = ''] = key.split(/[/:]/);
      return { namespace, host, project: key.includes(':') ? project : '' };
    };
    return {
      starts,
      started,
      add(key: string) {
        const start = () => {
          started.push(key);
          return new Promise((resolve, reject) => ends.set(key, (succeeds) => (succeeds ? resolve(key) : reject(key))));
        };
        return starts.add(spotOf(key), key, () => true, start);
      },
      /** Ends one lookup; returns those that start then. */
      async end(key: string, succeeds = true): Promise<string[]> {
        const before = started.length;
        ends.get(key)?.(succeeds);
        await new Promise((resolve) => setImmediate(resolve));
        return started.slice(before);
      },
      /** Whether a lookup waits: then it may not start a second time. */
      has(key: string): boolean {
        let isAsked = false;
        const mayStart = () => {
          isAsked = true;
          return false;
        };
        starts.add(spotOf(key), key, mayStart, () => undefined);
        return !isAsked;
      },
    };
  }

  it('is immediate up to the limits, and later as others end, successful or not', async () => {
    const { starts, started, add, end, has } = create(9, 2);
    for (const key of ['n/h/1', 'n/h/2', 'n/h/3', 'n/h/4']) add(key);
    expect(started).to.deep.equal(['n/h/1', 'n/h/2']);
    expect([starts.size, has('n/h/2'), has('n/h/3')]).to.deep.equal([2, false, true]);
    expect(await end('n/h/1', false)).to.deep.equal(['n/h/3']);
    expect(await end('n/h/3')).to.deep.equal(['n/h/4']);
    expect(await end('n/h/2')).to.deep.equal([]);
    expect([starts.size, has('n/h/4')]).to.deep.equal([0, false]);
  });

  it('goes from host to host, and does not affect another namespace', async () => {
    const { started, add, end } = create(3, 2);
    for (let index = 0; index < 100; index += 1) add(`n/hangs/${index}`);
    for (const key of ['n/good/1', 'n/good/2', 'n/new/1', 'other/hangs/1']) add(key);
    expect(started).to.deep.equal(['n/hangs/0', 'n/hangs/1', 'n/good/1', 'other/hangs/1']);
    expect(await end('n/good/1')).to.deep.equal(['n/good/2']);
    expect(await end('n/good/2')).to.deep.equal(['n/new/1']);
    expect(await end('n/hangs/0')).to.deep.equal(['n/hangs/2']);
  });

  it('goes from project to project of a host, and leaves some starts of the host to the others', async () => {
    const { started, add, end } = create(9, 4, 2);
    for (let index = 0; index < 100; index += 1) add(`n/hub:hangs/${index}`);
    for (const key of ['n/hub:good/1', 'n/hub:good/2', 'n/hub:new/1', 'n/other:hangs/1']) add(key);
    expect(started).to.deep.equal([
      'n/hub:hangs/0',
      'n/hub:hangs/1',
      'n/hub:good/1',
      'n/hub:good/2',
      'n/other:hangs/1',
    ]);
    expect(await end('n/hub:good/1')).to.deep.equal(['n/hub:new/1']);
    expect(await end('n/hub:hangs/0')).to.deep.equal(['n/hub:hangs/2']);
  });

  describe('waits in a room that', () => {
    const keys = (count: number, length: number) =>
      Array.from({ length: count }, (_, at) => `${at}`.padEnd(length, 'x'));
    /** Limits under which every lookup waits. Each has a namespace of its own. */
    function waiting() {
      const starts = createStarts({ perNamespace: 0, perHost: 0, perProject: 0 });
      return (namespace: string, key: string) =>
        starts.add(
          { namespace, host: 'h', project: 'p' },
          key,
          () => true,
          () => undefined,
        );
    }

    it('is limited in bytes for each namespace, so that others have room', () => {
      const add = waiting();
      const entered = keys(20_000, 800).filter((key) => add('flood', key)).length;
      expect(entered).to.be.within(2_000, 3_000);
      expect(add('other', 'app')).to.equal(true);
    });

    it('is enough for 10,000 ordinary images of one namespace', () => {
      const add = waiting();
      for (const key of keys(10_000, 100)) expect(add('shop', key)).to.equal(true);
    });

    it('is free again after lookups that started, that were not wanted, or that may not start', () => {
      for (const [limit, mayStart] of [
        [5_000, true],
        [0, false],
      ] as const) {
        const starts = createStarts({ perNamespace: limit, perHost: limit, perProject: limit });
        for (let round = 0; round < 5; round += 1) {
          for (const key of keys(2_000, 800)) {
            const isThere = starts.add(
              { namespace: 'flood', host: 'h', project: 'p' },
              key,
              () => mayStart,
              () => undefined,
            );
            expect(isThere).to.equal(true);
          }
        }
        expect(starts.size).to.equal(0);
      }
    });
  });
});
