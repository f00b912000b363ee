import { expect } from 'chai';
import { createAskers } from '../../../src/kit/fairness/asking-namespaces.ts';
import type { Place, Standing } from '../../../src/oci/lookup/health.ts';
import { createLimiter, createStarts, type LimiterOptions } from '../../../src/oci/lookup/limiter.ts';

const MANY = { perNamespace: 1_000, total: 1_000 };
const never = new AbortController().signal;

/**
 * A limiter whose lookups are called `host/namespace` or `host:project/namespace`, with a number at the end if there are
 * several.
 */
function startWorld(options: Partial<LimiterOptions>) {
  const unproven = { ...MANY, perHost: 2, perProject: 2 };
  const silent = new Set<string>();
  /** By `host:project`; `proven` without an entry. */
  const standings = new Map<string, Standing>();
  const standing = ({ project, host }: Place): Standing =>
    standings.get(project.name) ?? (silent.has(host.name) ? 'unknown' : 'proven');
  const limiter = createLimiter({ perHost: 8, proven: MANY, unproven, standing, ...options });
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return {
    silent,
    standings,
    /** The lookups that have a place, in the order in which they got it. */
    started,
    ask(name: string): void {
      const [project = '', namespace = ''] = name.split(/[/#]/);
      const [host = ''] = project.split(':');
      const [ofProject, ofHost] = [
        { key: `project ${project}`, name: project },
        { key: `host ${host}`, name: host },
      ];
      const place = { repository: ofProject, project: ofProject, host: ofHost };
      void limiter.run(place, createAskers(namespace), never, () => {
        started.push(name);
        return new Promise<void>((resolve) => ends.set(name, resolve));
      });
    },
    /** Ends a lookup; returns the names of those that start then. */
    async end(name: string): Promise<string[]> {
      const before = started.length;
      ends.get(name)?.();
      await tick();
      return started.slice(before);
    },
    tick,
  };
}

function several(count: number, name: (index: number) => string): string[] {
  return Array.from({ length: count }, (_, index) => name(index));
}

describe('the limiter', () => {
  it('leaves a place of a host to the other namespaces, even if a flood hangs there', async () => {
    const { ask, end, started, tick } = startWorld({ perHost: 4 });
    for (const name of several(12_800, (index) => `hub/flood#${index}`)) ask(name);
    await tick();
    expect(started).to.deep.equal(['hub/flood#0', 'hub/flood#1']);
    ask('hub/bystander#1');
    ask('hub/bystander#2');
    await tick();
    expect(started.slice(2)).to.deep.equal(['hub/bystander#1']);
    expect(await end('hub/bystander#1')).to.deep.equal(['hub/bystander#2']);
  });

  it('lets namespaces take turns if all places, or those of unproven hosts, are taken', async () => {
    for (const isSilent of [false, true]) {
      const bounds = { perNamespace: 2, total: 3 };
      const { ask, end, started, silent, tick } = startWorld({
        proven: bounds,
        unproven: { ...bounds, perHost: 1, perProject: 2 },
      });
      for (const host of [...several(50, (index) => `h${index}`), 'other']) if (isSilent) silent.add(host);
      for (const name of several(50, (index) => `h${index}/flood`)) ask(name);
      ask('other/second');
      ask('other/bystander');
      await tick();
      expect(started).to.deep.equal(['h0/flood', 'h1/flood', 'other/second']);
      expect(await end('h0/flood')).to.deep.equal(['other/bystander']);
      expect(await end('other/bystander')).to.deep.equal(['h2/flood']);
    }
  });

  it('lets the hosts of one namespace take turns', async () => {
    const { ask, end, started, tick } = startWorld({ perHost: 9, proven: { perNamespace: 3, total: 9 } });
    for (const name of several(100, (index) => `slow/n#${index}`)) ask(name);
    for (const name of ['b/n#1', 'b/n#2', 'c/n']) ask(name);
    await tick();
    expect(started).to.deep.equal(['slow/n#0', 'slow/n#1', 'slow/n#2']);
    expect(await end('slow/n#0')).to.deep.equal(['slow/n#3']);
    expect(await end('slow/n#1')).to.deep.equal(['b/n#1']);
    expect(await end('slow/n#2')).to.deep.equal(['c/n']);
    expect(await end('slow/n#3')).to.deep.equal(['slow/n#4']);
    expect(await end('c/n')).to.deep.equal(['b/n#2']);
  });

  it('gives a host that hangs two places of a namespace, and none of the places for hosts that answer', async () => {
    const { ask, started, silent, tick } = startWorld({
      perHost: 8,
      proven: { perNamespace: 3, total: 3 },
      unproven: { perNamespace: 4, total: 4, perHost: 2, perProject: 2 },
    });
    for (const host of ['hangs', 'stuck', 'new']) silent.add(host);
    for (const name of several(60, (index) => `hangs/n#${index}`)) ask(name);
    for (const name of ['new/n', 'good/n#1', 'good/n#2', 'good/n#3', 'good/n#4', 'stuck/n']) ask(name);
    await tick();
    expect(started).to.deep.equal(['hangs/n#0', 'hangs/n#1', 'new/n', 'good/n#1', 'good/n#2', 'good/n#3', 'stuck/n']);
  });

  it('gives all places to a host that has just answered, namespace by namespace', async () => {
    const { ask, end, started, silent, tick } = startWorld({ perHost: 6 });
    silent.add('hub');
    for (const name of several(9, (index) => `hub/one#${index}`)) ask(name);
    for (const name of several(9, (index) => `hub/two#${index}`)) ask(name);
    await tick();
    expect(started).to.deep.equal(['hub/one#0', 'hub/one#1']);
    silent.delete('hub');
    expect(await end('hub/one#0')).to.deep.equal(['hub/one#2', 'hub/two#0', 'hub/one#3', 'hub/two#1', 'hub/one#4']);
  });

  describe('of a host with several projects', () => {
    const all = several(10, (index) => `n${index}`);
    const flood = (ask: (name: string) => unknown, project: string) => {
      for (const namespace of all)
        for (const name of several(20, (index) => `hub:${project}/${namespace}#${index}`)) ask(name);
    };

    const rows: [standing: Standing, places: number][] = [
      ['proven', 7],
      ['new', 2],
      ['unknown', 2],
      ['failing', 1],
    ];
    for (const [standing, places] of rows) {
      it(`gives a project that is ${standing} ${places} of its 8 places, whatever the number of namespaces`, async () => {
        const { ask, started, standings, tick } = startWorld({});
        standings.set('hub:bad', standing).set('hub:good', 'new');
        flood(ask, 'bad');
        await tick();
        expect(started).to.have.length(places);
        // Also for a namespace whose own lookups fill the places of the other project.
        for (const namespace of ['n0', 'bystander']) ask(`hub:good/${namespace}`);
        await tick();
        expect(started.slice(places)).to.deep.equal(['hub:good/n0', 'hub:good/bystander'].slice(0, 8 - places));
      });
    }

    it('leaves a place to a project that answered, however many others do not', async () => {
      const { ask, started, standings, tick } = startWorld({ unproven: { ...MANY, perHost: 100, perProject: 2 } });
      for (const project of several(9, (index) => `bad${index}`)) {
        standings.set(`hub:${project}`, 'failing');
        flood(ask, project);
      }
      await tick();
      expect(started).to.have.length(7);
      ask('hub:good/bystander');
      await tick();
      expect(started.slice(7)).to.deep.equal(['hub:good/bystander']);
    });

    it('gives a project more places as soon as it has answered, and others as soon as the host has', async () => {
      const { ask, end, started, standings, tick } = startWorld({ unproven: { ...MANY, perHost: 2, perProject: 1 } });
      for (const project of ['one', 'two', 'three']) standings.set(`hub:${project}`, 'unknown');
      for (const project of ['one', 'two', 'three']) {
        for (const name of several(3, (index) => `hub:${project}/n#${index}`)) ask(name);
      }
      await tick();
      expect(started).to.deep.equal(['hub:one/n#0', 'hub:two/n#0']);
      standings.set('hub:one', 'proven').set('hub:two', 'new').set('hub:three', 'new');
      expect(await end('hub:one/n#0')).to.deep.equal(['hub:one/n#1', 'hub:three/n#0', 'hub:one/n#2']);
      standings.set('hub:two', 'proven');
      expect(await end('hub:two/n#0')).to.deep.equal(['hub:two/n#1', 'hub:two/n#2']);
    });
  });

  it('does not keep a project that has answered waiting behind those that have not', async () => {
    const { ask, end, started, standings, tick } = startWorld({ unproven: { ...MANY, perHost: 9, perProject: 2 } });
    const silent = several(7, (index) => `hub:silent${index}`);
    for (const project of silent) standings.set(project, 'failing');
    standings.set('hub:slow', 'failing');
    for (const project of silent.slice(0, 6)) ask(`${project}/n`);
    for (const name of ['hub:slow/one', 'hub:silent6/n', 'hub:slow/two', 'hub:slow/three']) ask(name);
    await tick();
    expect(started.at(-1)).to.equal('hub:slow/one');
    standings.set('hub:slow', 'proven');
    expect(await end('hub:slow/one')).to.deep.equal(['hub:slow/two', 'hub:slow/three']);
    expect(await end('hub:slow/two')).to.deep.equal(['hub:silent6/n']);
  });
});

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
    for (const key of ['n/hub:good/1', 'n/hub:good/2', 'n/hub:new/1', 'n/next:hangs/1']) add(key);
    expect(started).to.deep.equal(['n/hub:hangs/0', 'n/hub:hangs/1', 'n/hub:good/1', 'n/hub:good/2', 'n/next:hangs/1']);
    expect(await end('n/hub:good/1')).to.deep.equal(['n/hub:new/1']);
    expect(await end('n/hub:hangs/0')).to.deep.equal(['n/hub:hangs/2']);
  });

  describe('waits in a room that', () => {
    const keys = (count: number, length: number) =>
      Array.from({ length: count }, (_, at) => `${at}`.padEnd(length, 'x'));
    /** The starts of lookups at one project that end at once, and under a limit of 0 all wait. */
    function startsOf(limit: number, mayStart = true) {
      const starts = createStarts({ perNamespace: limit, perHost: limit, perProject: limit });
      const add = (namespace: string, key: string): boolean =>
        starts.add(
          { namespace, host: 'h', project: 'p' },
          key,
          () => mayStart,
          () => undefined,
        );
      return { starts, add };
    }

    it('is limited in bytes for each namespace, so that others have room', () => {
      const { add } = startsOf(0);
      const entered = keys(20_000, 800).filter((key) => add('flood', key)).length;
      expect(entered).to.be.within(2_000, 3_000);
      expect(add('other', 'app')).to.equal(true);
    });

    it('is free again after lookups that started, that were not wanted, or that may not start', () => {
      for (const [limit, mayStart] of [
        [5_000, true],
        [0, false],
      ] as const) {
        const { starts, add } = startsOf(limit, mayStart);
        for (let round = 0; round < 5; round += 1) {
          for (const key of keys(2_000, 800)) expect(add('flood', key)).to.equal(true);
        }
        expect(starts.size).to.equal(0);
      }
    });
  });
});
