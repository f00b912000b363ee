/** What every fault is put through: a load, the fault, the right state again, and nothing of others changed. */
import { expect } from 'chai';
import { createDice, type Dice } from './dice.ts';
import { differences } from './foreign.ts';
import { ABSENT, DEADLINE_MS, type Lab } from './lab.ts';
import type { Load } from './load.ts';
import type { Row } from './table.ts';

/** What a fault has to work with. */
export type Scene = { readonly lab: Lab; readonly load: Load; readonly dice: Dice };

export type Fault = {
  /** As the table names it. */
  readonly name: string;
  /** Runs only on the real control plane, or only on the simulator. Default: on the real one, if that is there. */
  readonly on?: 'control plane' | 'simulator';
  /** The name under which images have the registry, where that is not its address. */
  readonly host?: (lab: Lab) => string;
  /** Before the load: replicas of its own, for example. Returns what is undone at the end. */
  readonly prepare?: (lab: Lab, dice: Dice) => Promise<() => Promise<void>>;
  /** Lets it happen, and ends it. Returns what the dice chose, in a few words. */
  readonly happen: (scene: Scene) => Promise<string>;
  /** Objects that the fault itself removes. */
  readonly removes?: (key: string, load: Load) => boolean;
  /** What else must be so at the end. */
  readonly check?: (scene: Scene) => Promise<void>;
};

/**
 * Waits until all is as the rules say; throws with what is not, and with the ends of the logs. Returns when all pods were
 * there, and when all was right.
 */
async function becomeRight(lab: Lab, load?: Load): Promise<{ readonly there: number; readonly right: number }> {
  let there = performance.now();
  await lab.cluster
    .waitFor(
      'the state that the rules say',
      async () => {
        const wrong = await lab.wrong(load);
        if (wrong.some((problem) => problem.startsWith(ABSENT))) there = performance.now();
        if (wrong.length > 0) throw new Error(wrong.slice(0, 5).join('; '));
        return true;
      },
      DEADLINE_MS,
    )
    .catch((error: unknown) => {
      const logs = lab.replicas.all().map(({ controller }) => controller.logs().slice(-12).join('\n'));
      throw new Error(`${error instanceof Error ? error.message : error}\n${logs.join('\n---\n')}`);
    });
  return { there, right: performance.now() };
}

/** Puts the replicas through one fault and returns its row of the table. Throws where something is not right after it. */
export async function suffer(lab: Lab, fault: Fault, seed: number): Promise<Row> {
  const dice = createDice(seed, fault.name);
  const undo = (await fault.prepare?.(lab, dice)) ?? (async () => undefined);
  const load = await lab.load(dice, fault.host?.(lab));
  try {
    if (fault.prepare === undefined) await lab.replicas.keep(2);
    await becomeRight(lab);
    await load.add(dice.whole(2, 6));
    if (dice.chance(0.5)) await becomeRight(lab, load);
    const before = new Map([...(await lab.foreign()), ...load.created()]);
    const pids = lab.replicas.all().map(({ controller }) => controller.pid);
    const began = performance.now();
    const chosen = await fault.happen({ lab, load, dice });
    const over = performance.now();
    const { there, right } = await becomeRight(lab, load);
    await fault.check?.({ lab, load, dice });
    const mayGo = (key: string) => fault.removes?.(key, load) ?? false;
    const expected = new Map([...before, ...load.created()]);
    expect(differences(expected, await lab.foreign(), mayGo), 'objects of others').to.deep.equal([]);
    expect(await lab.strangers(), 'objects that archaware made').to.deep.equal([]);
    const ended = lab.replicas.all().filter(({ controller }) => pids.includes(controller.pid) && !runs(controller.pid));
    expect(ended.length, 'replicas that ended by themselves').to.equal(0);
    const { pods } = load;
    const on = lab.real ? 'real' : 'simulated';
    return {
      fault: fault.name,
      on,
      chosen,
      pods,
      lastedMs: over - began,
      thereMs: there - over,
      rightMs: right - over,
    };
  } finally {
    await lab.finish(load);
    await undo();
  }
}

function runs(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
