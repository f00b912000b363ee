import { setTimeout as delay } from 'node:timers/promises';
import { pathOf } from '../../support/world.ts';
import type { LiveWorld } from './world.ts';

export type Labels = Readonly<Record<string, string>>;

/** Somebody who keeps changing labels of nodes that rules ask for, as feature discovery does. */
export type LabelWriter = {
  /** Pauses until `resume`; returns the labels that it has written, by node. */
  pause(): Promise<ReadonlyMap<string, Labels>>;
  resume(): void;
  /** Resolves when it has written this many more labels. */
  more(count: number): Promise<void>;
  stop(): Promise<{ readonly writes: number }>;
};

const PAUSE_MS = 10;
const CHOICES: readonly (readonly [key: string, values: readonly (string | null)[]])[] = [
  ['churn/a', ['true', 'false', '', null]],
  ['churn/b', ['1', '2', null]],
];

/** Begins with a label or none at one node after the other, over and over. */
export function changeLabels(world: LiveWorld, nodes: readonly string[]): LabelWriter {
  const written = new Map<string, Labels>();
  let [going, resting, writes] = [true, false, 0];
  let turn: Promise<void> = Promise.resolve();

  async function change(node: string): Promise<void> {
    const [key, values] = CHOICES[Math.floor(Math.random() * CHOICES.length)] ?? ['churn/a', []];
    const value = values[Math.floor(Math.random() * values.length)] ?? null;
    const { status } = await world.cluster.request('PATCH', pathOf('Node', '', node), {
      metadata: { labels: { [key]: value } },
    });
    if (status !== 200) throw new Error(`${key}=${value} at ${node}: ${status}`);
    const { [key]: _, ...others } = written.get(node) ?? {};
    written.set(node, value === null ? others : { ...others, [key]: value });
    writes++;
  }

  async function work(): Promise<void> {
    for (let index = 0; going; index++) {
      if (!resting) {
        turn = change(nodes[index % nodes.length] ?? '');
        await turn;
      }
      await delay(PAUSE_MS);
    }
  }
  const worked = work();
  return {
    async pause() {
      resting = true;
      await turn;
      return written;
    },
    resume() {
      resting = false;
    },
    async more(count) {
      for (const enough = writes + count; writes < enough; ) await delay(PAUSE_MS);
    },
    async stop() {
      going = false;
      await worked;
      return { writes };
    },
  };
}
