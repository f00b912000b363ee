import { createFairQueue, type FairQueue } from '../../kit/fairness/fair-queue.ts';

/**
 * The gates that a lane must pass, each with the number of its slots, the widest first: a lane that waits at a wide gate must not
 * starve behind a narrow one.
 */
export type Way = readonly (readonly [gate: string, slots: number])[];

/**
 * Work that passes the same gates one by one. A lane is parked at one gate that is full. So a returned slot wakes only the lanes
 * that wait for such a slot, and costs the same however many wait.
 */
export type Lane = {
  /** Groups take turns at a gate, and within a group its lanes do. */
  readonly group: string;
  /** Takes the lane from the gate where it is parked; absent in lanes that never leave. */
  unpark?: () => void;
};

/** Slots, and the lanes that wait for one of them. */
export type Gates<L extends Lane> = {
  /** Takes a slot at each gate. If one is full, takes none, parks the lane there, and returns false. */
  pass(lane: L, way: Way): boolean;
  /** Gives the slots back. Lanes that were parked for them go on with `wake`. */
  give(way: Way): void;
  wake(way: Way): void;
};

type Gate<L> = { used: number; readonly slots: number; readonly parked: FairQueue<L> };

/** Creates gates. `advance` lets a lane pass once if it can; it returns whether the lane has passed and wants to pass again. */
export function createGates<L extends Lane>(advance: (lane: L) => boolean): Gates<L> {
  /** A gate without used slots and without parked lanes is removed. */
  const gates = new Map<string, Gate<L>>();

  function gateOf(key: string, slots: number): Gate<L> {
    const gate = gates.get(key) ?? { used: 0, slots, parked: createFairQueue<L>() };
    gates.set(key, gate);
    return gate;
  }

  function park(lane: L, key: string, slots: number): void {
    const unpark = gateOf(key, slots).parked.add(lane.group, lane);
    if (lane.unpark !== undefined) lane.unpark = unpark;
  }

  function dropIfUnused(key: string): void {
    const gate = gates.get(key);
    if (gate?.used === 0 && gate.parked.size === 0) gates.delete(key);
  }

  function wakeAt(key: string): void {
    for (let gate = gates.get(key); gate !== undefined && gate.used < gate.slots; gate = gates.get(key)) {
      const lane = gate.parked.take();
      if (lane === undefined) break;
      // A lane that wants more goes to the end of the line.
      if (advance(lane)) park(lane, key, gate.slots);
    }
    dropIfUnused(key);
  }

  return {
    pass(lane, way) {
      const full = way.find(([key, slots]) => (gates.get(key)?.used ?? 0) >= slots);
      if (full === undefined) for (const [key, slots] of way) gateOf(key, slots).used += 1;
      else park(lane, ...full);
      return full === undefined;
    },
    give(way) {
      for (const [key, slots] of way) {
        gateOf(key, slots).used -= 1;
        dropIfUnused(key);
      }
    },
    wake(way) {
      for (const [key] of way) wakeAt(key);
    },
  };
}
