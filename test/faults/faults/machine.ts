/** The machine of the replicas: clocks and names. */
import { setTimeout as delay } from 'node:timers/promises';
import { changeKubeconfig } from '../../e2e/support/kubeconfig.ts';
import type { ReplicaOptions } from '../../e2e/support/replicas.ts';
import { type Control, createControl } from '../support/control.ts';
import type { Fault, Scene } from '../support/harness.ts';
import type { Lab } from '../support/lab.ts';
import { amount, seconds } from '../support/ways.ts';

const API = 'api.faults.test';
const REGISTRY = 'registry.faults.test';
const NAMES = { [API]: '127.0.0.1', [REGISTRY]: '127.0.0.1' };
const MINUTE_MS = 60_000;

/** Two replicas whose clock and names can be moved; the returned function ends them. */
async function movable(lab: Lab, options: ReplicaOptions): Promise<{ control: Control; undo: () => Promise<void> }> {
  const control = await createControl({ names: NAMES });
  await lab.replicas.keep(0);
  const given = { ...options, environment: control.environment };
  await Promise.all([lab.replicas.start(given), lab.replicas.start(given)]);
  const undo = async () => {
    await lab.replicas.keep(0);
    await control.remove();
  };
  return { control, undo };
}

/** A fault whose replicas are movable. */
function moving(
  name: string,
  options: ReplicaOptions & { readonly more?: (lab: Lab) => ReplicaOptions; readonly host?: Fault['host'] },
  happen: (scene: Scene, control: Control) => Promise<string>,
): Fault {
  let control: Control | undefined;
  return {
    name,
    ...(options.host ? { host: options.host } : {}),
    async prepare(lab) {
      const made = await movable(lab, { ...options, ...options.more?.(lab) });
      control = made.control;
      return made.undo;
    },
    async happen(scene) {
      if (control === undefined) throw new Error('nothing was prepared');
      return happen(scene, control);
    },
  };
}

function clock(name: string, sign: 1 | -1): Fault {
  return moving(name, {}, async ({ lab, load, dice }, control) => {
    const minutes = dice.pick([1, 10, 60, 24 * 60, 365 * 24 * 60]);
    const all = lab.replicas.all();
    const leader = await lab.eventually('one leader', () => lab.replicas.leader());
    const victims = dice.pick([[leader], all]);
    const added = load.add(dice.whole(2, 6));
    await control.move(lab, victims, { names: NAMES, clockMs: sign * minutes * MINUTE_MS });
    await added;
    await load.add(1);
    return `by ${minutes} min, ${victims.length === 1 ? 'of the leader' : 'of both replicas'}`;
  });
}

/** The kubeconfig with another server. */
const withServer = (file: string, server: string) =>
  changeKubeconfig(file, { cluster: (before) => ({ ...before, server }) });

const portOf = (host: string) => host.split(':')[1] ?? '';

export const machine: readonly Fault[] = [
  clock('wall clock jumps forward', 1),
  clock('wall clock jumps back', -1),
  moving(
    'DNS gone: the name of the API server',
    { kubeconfig: (file, { host }) => withServer(file, `http://${API}:${portOf(host)}`) },
    async ({ lab, load, dice }, control) => {
      const { ms, count } = amount({ dice });
      await control.move(lab, lab.replicas.all(), { names: {} });
      for (const { proxy } of lab.replicas.all()) proxy.resetAll();
      await Promise.all([delay(ms), load.add(count)]);
      await control.move(lab, lab.replicas.all(), { names: NAMES });
      return `for ${seconds(ms)}`;
    },
  ),
  moving(
    'DNS gone: the name of the registry',
    {
      host: ({ registry }) => `${REGISTRY}:${portOf(registry.host)}`,
      more: ({ registry }) => ({
        flags: ['--registries.insecure', `${registry.host},${REGISTRY}:${portOf(registry.host)}`],
      }),
    },
    async ({ lab, load, dice }, control) => {
      const { ms, count } = amount({ dice });
      await control.move(lab, lab.replicas.all(), { names: {} });
      // Connections that are kept need no name.
      await lab.registry.down();
      await lab.registry.up();
      await Promise.all([delay(ms), load.add(count)]);
      await control.move(lab, lab.replicas.all(), { names: NAMES });
      return `for ${seconds(ms)}`;
    },
  ),
];
