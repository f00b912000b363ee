/** The API server answers late, in part, not at all, or with refusals. Each replica's proxy does it. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Alteration } from '../../e2e/support/proxy-alterations.ts';
import type { Dice } from '../support/dice.ts';
import type { Fault } from '../support/harness.ts';
import { alterAll, amount, isWatch, often, seconds, whileAltered } from '../support/ways.ts';

const TIMES_OUT = [500, 502, 503, 504] as const;

/** A fault of a part of the requests, which the dice choose. */
const partly = (
  name: string,
  [least, most]: readonly [number, number],
  of: string,
  altered: (dice: Dice) => (method: string) => Alteration | undefined,
): Fault => ({
  name,
  async happen(scene) {
    const { ms, count } = amount(scene);
    const part = scene.dice.number(least, most);
    const alter = altered(scene.dice);
    await whileAltered(scene, ms, count, (method) => (scene.dice.chance(part) ? alter(method) : undefined));
    return `${Math.round(part * 100)} % of the ${of}`;
  },
});

export const answers: readonly Fault[] = [
  {
    name: 'API server slow',
    async happen(scene) {
      const { ms, count } = amount(scene, 6_000, 10_000);
      const delayMs = scene.dice.whole(500, 3_000);
      await whileAltered(scene, ms, count, () => ({ delayMs }));
      return `each answer ${seconds(delayMs)} late`;
    },
  },
  partly('half answers: the connection ends in a body', [0.3, 0.9], 'answers', () => () => ({ cut: true })),
  partly('answers to writes lost: the work is done', [0.3, 0.9], 'writes', () => (method) => {
    return method === 'GET' ? undefined : { loseAnswer: true };
  }),
  partly('storm of 429 with Retry-After', [0.6, 1], 'requests', (dice) => {
    const retryAfter = dice.whole(1, 3);
    return () => ({ status: 429, retryAfter });
  }),
  partly('storm of 500, 502, 503 and 504', [0.6, 1], 'requests', (dice) => () => ({ status: dice.pick(TIMES_OUT) })),
  {
    name: 'watches reset in the middle of an event',
    async happen(scene) {
      const { ms, count } = amount(scene);
      await whileAltered(scene, ms, count, (_method, path) => (isWatch(path) ? { cut: true } : undefined));
      return 'each event';
    },
  },
  {
    name: 'watches and all other connections reset',
    async happen({ lab, load, dice }) {
      const times = dice.whole(2, 5);
      for (let time = 0; time < times; time++) {
        const added = load.add(1);
        for (const { proxy } of lab.replicas.all()) proxy.resetAll();
        await added;
        await delay(dice.whole(0, 800));
      }
      return often(times);
    },
  },
  {
    name: 'history of the API server forgotten (410)',
    on: 'simulator',
    async happen({ lab, load, dice }) {
      const end = alterAll(lab, (_method, path) => (isWatch(path) ? { status: 503 } : undefined));
      for (const { proxy } of lab.replicas.all()) proxy.resetWatches();
      await load.add(dice.whole(2, 6));
      lab.simulated?.faults.compactHistory();
      end();
      await load.add(1);
      lab.simulated?.faults.expireWatches();
      return 'once with an error, once within the stream';
    },
  },
];
