/** The registry is away, slow, overloaded, or lies. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Fault as RegistryFault } from '../../simulator/registry/faults.ts';
import type { Fault, Scene } from '../support/harness.ts';
import { amount, seconds } from '../support/ways.ts';

const CONTENT = /\/(?:manifests|blobs)\//;

/** Lets the registry's answers about images go wrong for a while, and creates pods with images that nobody has asked for. */
async function whileWrong({ lab, load, dice }: Scene, fault: RegistryFault): Promise<string> {
  const { ms, count } = amount({ dice });
  const end = lab.registry.inject(fault, { path: CONTENT });
  try {
    await Promise.all([delay(ms), load.add(count)]);
  } finally {
    end();
  }
  return `for ${seconds(ms)}`;
}

export const registry: readonly Fault[] = [
  {
    name: 'registry down',
    async happen({ lab, load, dice }) {
      const { ms, count } = amount({ dice });
      await lab.registry.down();
      await Promise.all([delay(ms), load.add(count)]);
      await lab.registry.up();
      return `for ${seconds(ms)}`;
    },
  },
  {
    name: 'registry slow',
    async happen(scene) {
      const ms = scene.dice.whole(500, 4_000);
      return `each answer ${seconds(ms)} late, ${await whileWrong(scene, { kind: 'delay', ms })}`;
    },
  },
  {
    name: 'registry sends a byte at a time',
    async happen(scene) {
      const ms = scene.dice.whole(5, 40);
      return `one in ${ms} ms, ${await whileWrong(scene, { kind: 'drip', ms })}`;
    },
  },
  { name: 'registry never answers', happen: (scene) => whileWrong(scene, { kind: 'hang' }) },
  { name: 'registry cuts connections', happen: (scene) => whileWrong(scene, { kind: 'reset' }) },
  { name: 'registry lies: wrong digest', happen: (scene) => whileWrong(scene, { kind: 'wrong-digest' }) },
  { name: 'registry lies: changed content', happen: (scene) => whileWrong(scene, { kind: 'corrupt' }) },
  {
    name: 'registry lies: wrong content type',
    happen: (scene) => whileWrong(scene, { kind: 'content-type', type: scene.dice.pick(['text/html', 'image/png']) }),
  },
  { name: 'registry sends half bodies', happen: (scene) => whileWrong(scene, { kind: 'truncate' }) },
  {
    name: 'registry refuses: 429 with Retry-After',
    happen: (scene) => whileWrong(scene, { kind: 'status', status: 429, retryAfter: String(scene.dice.whole(1, 4)) }),
  },
  {
    name: 'registry refuses: 500, 502 or 503',
    async happen(scene) {
      const status = scene.dice.pick([500, 502, 503]);
      return `${status} ${await whileWrong(scene, { kind: 'status', status })}`;
    },
  },
];
