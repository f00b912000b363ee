import { getEventListeners } from 'node:events';
import { expect } from 'chai';
import { createAskers } from '../../../src/kit/fairness/asking-namespaces.ts';
import { createTurns, type Need } from '../../../src/kit/fairness/turns.ts';

const never = new AbortController().signal;

/** Work is called `group/line#number`. It begins as soon as it may, and ends when the test says so. */
function arrange(needsOf: (line: string, group: string) => readonly Need[] = () => [['all', 1]]) {
  const turns = createTurns();
  const begun: string[] = [];
  const ends = new Map<string, (error?: Error) => void>();
  const unwanted = new Set<string>();
  const tick = () => new Promise((resolve) => setImmediate(resolve));
  const work = (name: string) => {
    begun.push(name);
    return new Promise<string>((resolve, reject) => {
      ends.set(name, (error) => (error === undefined ? resolve(name) : reject(error)));
    });
  };
  const spotOf = (name: string) => {
    const [, line = ''] = name.split(/[/#]/);
    return { line, needs: (group: string) => needsOf(line, group), marks: [line] };
  };
  return {
    ...{ turns, begun, unwanted, tick, spotOf, work },
    add(...names: readonly string[]) {
      for (const name of names) {
        turns.add(name.split('/', 1)[0] ?? '', spotOf(name), () => (unwanted.has(name) ? undefined : work(name)));
      }
    },
    /** Ends work; returns what begins then. */
    async end(name: string, error?: Error): Promise<string[]> {
      const before = begun.length;
      ends.get(name)?.(error);
      ends.delete(name);
      await tick();
      return begun.slice(before);
    },
  };
}

const several = (count: number, name: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => name(index));

describe('turns', () => {
  /** What is added, of each resource how many places there are, what begins, and what begins at the end of each of those. */
  const rows: [
    what: string,
    needs: (line: string, group: string) => Need[],
    added: string,
    begun: string,
    ends: string,
  ][] = [
    [
      'keep to the places of a resource, and to the order of a line',
      () => [['all', 2]],
      'a/x#1 a/x#2 a/x#3 a/x#4',
      'a/x#1 a/x#2',
      'a/x#2>a/x#3 a/x#1>a/x#4 a/x#3> a/x#4>',
    ],
    [
      'come to one group after the other, and within a group to one line after the other',
      () => [['all', 1]],
      'a/x#1 a/x#2 a/x#3 a/y#1 b/x#1 c/z#1',
      'a/x#1',
      'a/x#1>a/x#2 a/x#2>b/x#1 b/x#1>c/z#1 c/z#1>a/y#1 a/y#1>a/x#3',
    ],
    [
      'keep nobody waiting who needs something else',
      (line) => [[line, 1]],
      'a/hangs#1 a/hangs#2 a/x#1 b/hangs#1 b/x#1',
      'a/hangs#1 a/x#1',
      'a/x#1>b/x#1',
    ],
    [
      'take no place of one resource for who waits for another one',
      (line) => Object.entries({ all: 2, [line]: 1 }),
      'a/hangs#1 a/hangs#2 a/hangs#3 a/x#1 b/y#1',
      'a/hangs#1 a/x#1',
      'a/x#1>b/y#1 b/y#1> a/hangs#1>a/hangs#2',
    ],
    [
      'come to groups in turn where several resources are full',
      (line, group) => Object.entries({ all: 3, [group]: 2, [line]: 2 }),
      'flood/x#1 flood/x#2 flood/y#1 b/x#1 c/y#1 c/y#2',
      'flood/x#1 flood/x#2 c/y#1',
      'flood/x#1>c/y#2 c/y#1>flood/y#1 flood/x#2>b/x#1',
    ],
  ];
  for (const [what, needs, added, begun, ends] of rows) {
    it(what, async () => {
      const world = arrange(needs);
      world.add(...added.split(' '));
      expect(world.begun.join(' ')).to.equal(begun);
      for (const [name = '', next] of ends.split(' ').map((each) => each.split('>'))) {
        expect((await world.end(name)).join(), `after ${name}`).to.equal(next);
      }
    });
  }

  it('go on after work that fails, and after work that is not wanted any more', async () => {
    const { add, begun, end, unwanted } = arrange();
    add('a/x#1', 'a/x#2', 'a/x#3', 'a/x#4', 'b/y#1');
    for (const name of ['a/x#2', 'a/x#3', 'b/y#1']) unwanted.add(name);
    expect(await end('a/x#1', new Error('failed'))).to.deep.equal(['a/x#4']);
    expect(await end('a/x#4')).to.deep.equal([]);
    unwanted.add('c/x#1');
    add('c/x#1', 'c/x#2');
    expect(begun.slice(2)).to.deep.equal(['c/x#2']);
  });

  it('come once to work for several groups, with the first turn of one of them', async () => {
    const { turns, add, begun, end, spotOf, work, tick } = arrange();
    const askers = createAskers('flood');
    add(...several(100, (index) => `flood/x#${index}`));
    const found = turns.run(askers, spotOf('flood/x#shared'), never, async () => work('shared'));
    add(...several(100, (index) => `flood/x#${index + 100}`));
    expect(await end('flood/x#0')).to.deep.equal(['flood/x#1']);
    askers.join('bystander');
    expect(await end('flood/x#1')).to.deep.equal(['flood/x#2']);
    expect(await end('flood/x#2')).to.deep.equal(['shared']);
    askers.join('third');
    expect(await end('shared')).to.deep.equal(['flood/x#3']);
    expect(await found).to.equal('shared');
    for (let index = 3; index < 200; index += 1) await end(`flood/x#${index}`);
    await tick();
    expect(begun).to.have.length(201);
  });

  it('return what the work does, and end the wait with the signal, of which they keep nothing', async () => {
    const { turns, add, begun, end } = arrange();
    const run = (signal: AbortSignal, work: () => Promise<string>) =>
      turns.run('a', [['all', 1]], signal, work).catch((error: unknown) => String(error));
    expect(await run(never, async () => 'done')).to.equal('done');
    expect(await run(never, async () => Promise.reject(new Error('no')))).to.equal('Error: no');
    add('a/x#1');
    const leaving = new AbortController();
    const gone = run(leaving.signal, async () => 'never');
    add('b/x#1');
    expect(turns.waiting('a', 'all')).to.equal(1);
    leaving.abort(new Error('too late'));
    expect(await gone).to.equal('Error: too late');
    expect(turns.waiting('a', 'all')).to.equal(0);
    expect(getEventListeners(leaving.signal, 'abort')).to.have.length(0);
    expect(await run(leaving.signal, async () => 'never')).to.equal('Error: too late');
    expect(await end('a/x#1')).to.deep.equal(['b/x#1']);
    expect(begun).to.deep.equal(['a/x#1', 'b/x#1']);
    const ending = new AbortController();
    await end('b/x#1');
    const running = run(ending.signal, async () => {
      ending.abort();
      return 'goes on';
    });
    expect(await running).to.equal('goes on');
  });

  it('come at once when what is needed has become less', async () => {
    const few = new Set(['x']);
    const { turns, add, begun, end } = arrange((line) => (few.has(line) ? [['few', 1]] : [['many', 4]]));
    add(...['a', 'b'].flatMap((group) => several(4, (index) => `${group}/x#${index}`)));
    expect(begun).to.deep.equal(['a/x#0']);
    few.clear();
    turns.again('other');
    expect(begun).to.have.length(1);
    turns.again('x');
    expect(begun.slice(1)).to.deep.equal(['a/x#1', 'b/x#0', 'a/x#2', 'b/x#1']);
    expect(await end('a/x#1')).to.deep.equal(['a/x#3']);
    expect(await end('b/x#0')).to.deep.equal(['b/x#2']);
  });

  it('serve everybody and hold every limit, whatever the order, with failures and callers that leave', async () => {
    let seed = 1;
    const random = (below: number): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    const strict = new Set<string>();
    const most = { all: 6, group: 3, line: 2, strict: 1 };
    const running = new Map<string, readonly Need[]>();
    const needsOf = (line: string, group: string): readonly Need[] => [
      ['all', most.all],
      [`group ${group}`, most.group],
      [`line ${line}`, most.line],
      ...(strict.has(line) ? [['strict', most.strict] as const] : []),
    ];
    const { turns, begun, spotOf, work, end, tick } = arrange(needsOf);
    let left = 0;
    const all = several(900, (index) => `g${random(5)}/l${random(7)}#${index}`);
    const ask = (name: string) => {
      const [group = ''] = name.split('/');
      const spot = spotOf(name);
      const leaving = new AbortController();
      const isLeaving = random(10) === 0;
      const asked = turns.run(group, spot, leaving.signal, () => {
        running.set(name, needsOf(spot.line, group));
        return work(name);
      });
      asked.catch((error: unknown) => {
        if (error === 'left') left += 1;
      });
      if (isLeaving) void tick().then(() => leaving.abort('left'));
    };
    for (const name of all.slice(0, 400)) ask(name);
    let next = 400;
    for (await tick(), await tick(); running.size > 0; await tick()) {
      const used = new Map<string, number>();
      for (const [resource] of [...running.values()].flat()) used.set(resource, (used.get(resource) ?? 0) + 1);
      for (const [resource, count] of used) {
        expect(count, resource).to.be.at.most(most[(resource.split(' ')[0] ?? '') as keyof typeof most]);
      }
      const line = `l${random(7)}`;
      if (!strict.delete(line) && random(2) === 0) strict.add(line);
      turns.again(line);
      const [name = ''] = [...running.keys()].slice(random(running.size));
      running.delete(name);
      const another = all[next++];
      if (another !== undefined) ask(another);
      await end(name, random(4) === 0 ? new Error('failed') : undefined);
    }
    expect(left).to.be.above(0);
    expect(begun.length + left).to.equal(900);
  });

  it('cost a few tries for each of those who wait, however many there are', async () => {
    let tries = 0;
    let done = 0;
    const { turns } = arrange();
    const spot = (line: string) => ({
      line,
      needs(group: string): readonly Need[] {
        tries += 1;
        return Object.entries({ all: 4, [group]: 2 });
      },
    });
    const work = async () => {
      done += 1;
    };
    const flood = several(10_000, (index) => `x${index % 2_500}`).map((line) =>
      turns.run('flood', spot(line), never, work),
    );
    const doneBefore = await turns.run('bystander', spot('x'), never, async () => done);
    expect(doneBefore).to.be.at.most(2);
    await Promise.all(flood);
    expect(done).to.equal(10_000);
    expect(tries).to.be.below(3 * 10_000);
  });
});
