import { type Askers, createAskers, waitForTurn } from './asking-namespaces.ts';
import { createFairQueue, type FairQueue } from './fair-queue.ts';

/** A resource of which a piece of work takes a place while it runs, and its number of places, which is the same for all. */
export type Need = readonly [resource: string, most: number];

/** What waits for its turn. Work of one group in one line begins in order, and needs the same. */
type Spot = {
  readonly line: string;
  /**
   * What the work needs for a group, asked at each try, because it may change. The resource for which most work waits comes first:
   * who waits for it must not starve behind another one.
   */
  needs(group: string): readonly Need[];
  /** For {@link QueueTurns.again}. */
  readonly marks?: readonly string[];
};

/**
 * Places for work, and the queue of those who wait for one. Where a resource is full, groups take turns, within a group its lines
 * do, and a line keeps its order. Who waits takes no place of anything, and waits for one resource at a time: so a place that
 * becomes free wakes only who can use it, and costs the same however many wait.
 */
export type QueueTurns = {
  /**
   * Does the work in the first turn of one of the groups.
   *
   * @param signal ends the wait, not the work
   * @throws what the work throws, or the signal's reason
   */
  run<T>(
    askers: string | Pick<Askers, 'each'>,
    spot: Spot | readonly Need[],
    signal: AbortSignal,
    work: () => Promise<T>,
  ): Promise<T>;
  /**
   * The same for work of which very much may wait: it takes little memory. `start`, a function of its own each time, begins the work,
   * or returns undefined if it is not wanted any more. Returns a function that takes it out of its line, which has no effect later.
   */
  add(group: string, spot: Spot, start: Waiter): () => void;
  /** How many of a group wait in a line. */
  waiting(group: string, line: string): number;
  /** Tries everything with a mark that waits: its needs have changed. */
  again(mark: string): void;
};

/** A function of its own for each piece of work. */
type Waiter = () => Promise<unknown> | undefined;

/** Never without a waiter, while it can be found. */
type TurnLine = Spot & {
  readonly group: string;
  readonly waiters: Set<Waiter>;
  /** Goes on where it was: a new iterator would step over every waiter that has left. */
  readonly order: Iterator<Waiter, undefined>;
  first: Waiter | undefined;
  /** Takes the line out of the queue of the resource for which it waits. */
  unpark(): void;
};

/** Never without a place in use or a line, while it can be found. */
type Resource = { used: number; readonly most: number; readonly lines: FairQueue<TurnLine> };

const nothing = (): void => {};

/** The resources that are in use or waited for, and the lines, by the group and the name of each, and by its marks. */
type TurnsState = {
  readonly resources: Map<string, Resource>;
  readonly lines: Map<string, TurnLine>;
  readonly marked: Map<string, Set<TurnLine>>;
};

/** Creates the places; all are free. */
export function createTurns(): QueueTurns {
  const turns: TurnsState = { resources: new Map(), lines: new Map(), marked: new Map() };
  return {
    add: (group, spot, start) => add(turns, group, spot, start),
    async run(askers, spot, signal, work) {
      const where = 'needs' in spot ? spot : { line: spot.map(([name]) => name).join(' '), needs: () => spot };
      return waitForTurn(typeof askers === 'string' ? createAskers(askers) : askers, signal, (group, start) =>
        add(turns, group, where, () => {
          const done = Promise.resolve().then(work);
          start(done);
          return done;
        }),
      );
    },
    waiting: (group, line) => turns.lines.get(keyOf(group, line))?.waiters.size ?? 0,
    again(mark) {
      // One piece of work of each line, then the next of each.
      for (let left = [...(turns.marked.get(mark) ?? [])]; left.length > 0; )
        left = left.filter((line) => advance(turns, line));
    },
  };
}

function add(turns: TurnsState, group: string, spot: Spot, start: Waiter): () => void {
  const others = turns.lines.get(keyOf(group, spot.line));
  const line = others ?? enter(turns, group, spot);
  line.waiters.add(start);
  // It stands in the queue of a resource otherwise.
  if (others === undefined) advance(turns, line);
  return () => leave(turns, line, start);
}

function enter({ lines, marked }: TurnsState, group: string, { line: name, needs, marks = [] }: Spot): TurnLine {
  const waiters = new Set<Waiter>();
  const line: TurnLine = {
    ...{ group, line: name, needs, marks, waiters },
    order: waiters.values(),
    first: undefined,
    unpark: nothing,
  };
  lines.set(keyOf(group, name), line);
  for (const mark of marks) marked.set(mark, (marked.get(mark) ?? new Set()).add(line));
  return line;
}

function leave({ lines, marked }: TurnsState, line: TurnLine, waiter: Waiter): void {
  if (!line.waiters.delete(waiter) || line.waiters.size > 0) return;
  line.unpark();
  lines.delete(keyOf(line.group, line.line));
  for (const mark of line.marks ?? []) {
    const all = marked.get(mark);
    all?.delete(line);
    if (all?.size === 0) marked.delete(mark);
  }
}

/** Begins the first work of a line, or parks the line where it has to wait. Returns whether it began some and has more. */
function advance(turns: TurnsState, line: TurnLine): boolean {
  for (let waiter = firstOf(line); waiter !== undefined; waiter = firstOf(line)) {
    const needs = line.needs(line.group);
    const full = needs.find(([name, most]) => (turns.resources.get(name)?.used ?? 0) >= most);
    if (full !== undefined) {
      park(turns, line, full);
      return false;
    }
    leave(turns, line, waiter);
    for (const need of needs) resourceOf(turns, need).used += 1;
    const running = waiter();
    if (running === undefined) {
      give(turns, needs);
      continue;
    }
    const end = (): void => {
      give(turns, needs);
      for (const [name] of needs) wake(turns, name);
    };
    running.then(end, end);
    return line.waiters.size > 0;
  }
  return false;
}

function firstOf(line: TurnLine): Waiter | undefined {
  while (line.first === undefined || !line.waiters.has(line.first)) {
    const next = line.order.next();
    if (next.done) return undefined;
    line.first = next.value;
  }
  return line.first;
}

function park(turns: TurnsState, line: TurnLine, need: Need): void {
  line.unpark();
  line.unpark = resourceOf(turns, need).lines.add(line.group, line);
}

function resourceOf({ resources }: TurnsState, [name, most]: Need): Resource {
  const resource = resources.get(name) ?? { used: 0, most, lines: createFairQueue<TurnLine>() };
  resources.set(name, resource);
  return resource;
}

function give(turns: TurnsState, needs: readonly Need[]): void {
  for (const need of needs) {
    resourceOf(turns, need).used -= 1;
    dropUnused(turns, need[0]);
  }
}

function wake(turns: TurnsState, name: string): void {
  const { resources } = turns;
  for (let resource = resources.get(name); resource !== undefined; resource = resources.get(name)) {
    const line = resource.used < resource.most ? resource.lines.take() : undefined;
    if (line === undefined) break;
    // A line that has more goes to the end.
    if (advance(turns, line)) park(turns, line, [name, resource.most]);
  }
  dropUnused(turns, name);
}

function dropUnused({ resources }: TurnsState, name: string): void {
  const resource = resources.get(name);
  if (resource?.used === 0 && resource.lines.size === 0) resources.delete(name);
}

/** No group contains a space. */
function keyOf(group: string, line: string): string {
  return `${group} ${line}`;
}
