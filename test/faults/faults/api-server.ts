/** The API server and etcd end, come back, and come back older. */
import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Fault, Scene } from '../support/harness.ts';
import type { Lab } from '../support/lab.ts';
import { amount, often, seconds } from '../support/ways.ts';

const COPY = 'etcd-copy';
const WRITES = 1_000;

async function killApiServer({ real, cluster }: Lab): Promise<void> {
  const server = real?.component('kube-apiserver');
  if (server === undefined) return cluster.stopApiServer();
  await server.stop();
}

function partsOf({ real, components }: Lab) {
  if (real === undefined || components === undefined) throw new Error('only the real control plane has etcd');
  return { ...components, directory: real.directory };
}

export const apiServer: readonly Fault[] = [
  {
    name: 'API server killed (SIGKILL), started again',
    async happen({ lab, load, dice }) {
      const { ms, count } = amount({ dice }, 1_000, 6_000);
      await killApiServer(lab);
      const added = load.add(count);
      await delay(ms);
      await lab.cluster.startApiServer();
      await added;
      return `down for ${seconds(ms)}`;
    },
  },
  {
    name: 'API server killed several times in a row',
    async happen({ lab, load, dice }) {
      const times = dice.whole(2, 3);
      for (let time = 0; time < times; time++) {
        await killApiServer(lab);
        await delay(dice.whole(200, 2_000));
        await lab.cluster.startApiServer();
        await load.add(1);
      }
      return often(times);
    },
  },
  {
    name: 'etcd killed (SIGKILL), started again',
    on: 'control plane',
    async happen({ lab, load, dice }) {
      const { ms, count } = amount({ dice }, 1_000, 5_000);
      const { end, start } = partsOf(lab);
      await end('etcd');
      const added = load.add(count);
      await delay(ms);
      await start('etcd');
      await added;
      return `down for ${seconds(ms)}`;
    },
  },
  { name: 'etcd restored from an older copy', on: 'control plane', happen: restore },
];

/** Writes until the copy of etcd is far behind, as one that is some minutes old. */
async function age({ cluster }: Lab): Promise<void> {
  const path = '/api/v1/namespaces/base/configmaps/counter';
  await cluster.apply(
    JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'base', name: 'counter' } }),
  );
  for (let from = 0; from < WRITES; from += 50) {
    await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        cluster.request('PATCH', path, { data: { count: String(from + index) } }),
      ),
    );
  }
}

/**
 * The copy is taken while the replicas are paused, before they place the newest pods: after the restore those are as they
 * were, with versions lower than those that the replicas have seen.
 */
async function restore({ lab, load, dice }: Scene): Promise<string> {
  const { end, start, directory } = partsOf(lab);
  const [data, copy] = [join(directory, 'etcd'), join(directory, COPY)];
  const kept = dice.whole(2, 5);
  for (const { controller } of lab.replicas.all()) controller.kill('SIGSTOP');
  await load.add(kept);
  await end('etcd');
  await cp(data, copy, { recursive: true });
  await start('etcd');
  for (const { controller } of lab.replicas.all()) controller.kill('SIGCONT');
  const forget = load.mark();
  await lab.eventually('the pods to be placed before the restore', async () => (await lab.wrong(load)).length === 0);
  const lost = dice.whole(1, 5);
  await load.add(lost);
  if (dice.chance(0.5)) await lab.eventually('the newest, too', async () => (await lab.wrong(load)).length === 0);

  await age(lab);
  const others = ['kube-scheduler', 'kube-controller-manager', 'kwok'];
  await Promise.all([killApiServer(lab), ...others.map(end)]);
  await end('etcd');
  await rm(data, { recursive: true });
  await cp(copy, data, { recursive: true });
  await rm(copy, { recursive: true });
  await start('etcd');
  await lab.cluster.startApiServer();
  await Promise.all(others.map(start));
  forget();
  return `${kept} pods unplaced in the copy, ${lost} created after it`;
}
