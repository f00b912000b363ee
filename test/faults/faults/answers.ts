/** The API server answers late, in part, not at all, or with refusals. Each replica's proxy does it. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Fault } from '../support/harness.ts';
import { alterAll, amount, isWatch, often, seconds, whileAltered } from '../support/ways.ts';

const TIMES_OUT = [500, 502, 503, 504] as const;

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
  {
    name: 'half answers: the connection ends in a body',
    async happen(scene) {
      const { ms, count } = amount(scene);
      const part = scene.dice.number(0.3, 0.9);
      await whileAltered(scene, ms, count, () => (scene.dice.chance(part) ? { cut: true } : undefined));
      return `${Math.round(part * 100)} % of the answers`;
    },
  },
  {
    name: 'answers to writes lost: the work is done',
    async happen(scene) {
      const { ms, count } = amount(scene);
      const part = scene.dice.number(0.3, 0.9);
      await whileAltered(scene, ms, count, (method) =>
        method !== 'GET' && scene.dice.chance(part) ? { loseAnswer: true } : undefined,
      );
      return `${Math.round(part * 100)} % of the writes`;
    },
  },
  {
    name: 'storm of 429 with Retry-After',
    async happen(scene) {
      const { ms, count } = amount(scene);
      const [part, retryAfter] = [scene.dice.number(0.6, 1), scene.dice.whole(1, 3)];
      const alteration = { status: 429, retryAfter };
      await whileAltered(scene, ms, count, () => (scene.dice.chance(part) ? alteration : undefined));
      return `${Math.round(part * 100)} % of the requests, Retry-After ${retryAfter}`;
    },
  },
  {
    name: 'storm of 500, 502, 503 and 504',
    async happen(scene) {
      const { ms, count } = amount(scene);
      const part = scene.dice.number(0.6, 1);
      await whileAltered(scene, ms, count, () =>
        scene.dice.chance(part) ? { status: scene.dice.pick(TIMES_OUT) } : undefined,
      );
      return `${Math.round(part * 100)} % of the requests`;
    },
  },
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
