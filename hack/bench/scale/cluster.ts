import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createAuthority } from '../../cluster/certificates.ts';
import { writeKubeconfig } from '../../cluster/kubeconfig.ts';
import type { Shape } from './objects.ts';
import type { Commands, Setup } from './protocol.ts';

type Asked<T extends keyof Commands> = (...argument: Parameters<Commands[T]>) => Promise<ReturnType<Commands[T]>>;

/** A big cluster that a process of its own simulates. */
export type BigCluster = {
  /** Path of a kubeconfig. */
  readonly kubeconfig: string;
  readonly pid: number;
  /** Sends a command, and waits until it was taken. */
  readonly ask: <T extends keyof Commands>(name: T, ...argument: Parameters<Commands[T]>) => ReturnType<Asked<T>>;
  stop(): Promise<void>;
};

const SERVER = fileURLToPath(new URL('./server.ts', import.meta.url));

/** Starts the server of a cluster of this shape. */
export async function startBigCluster(shape: Shape): Promise<BigCluster> {
  const directory = await mkdtemp(join(tmpdir(), 'archaware-bench-'));
  const authority = createAuthority('bench');
  const { certificate, key } = authority.issue('api', ['127.0.0.1']);
  const child = fork(SERVER, { execArgv: ['--import', 'tsx'] });
  const killed = () => child.kill('SIGKILL');
  process.once('exit', killed);
  child.send({ shape, key, certificate } satisfies Setup);
  const [{ port }] = await once(child, 'message');
  const kubeconfig = await writeKubeconfig(join(directory, 'kubeconfig'), {
    server: `https://127.0.0.1:${port}`,
    authority: authority.certificate,
    token: 'bench',
    user: 'bench',
  });
  const asked = new Map<number, (result: never) => void>();
  child.on('message', ({ id, result }: { id: number; result: never }) => {
    asked.get(id)?.(result);
    asked.delete(id);
  });
  let last = 0;
  return {
    kubeconfig,
    pid: child.pid ?? 0,
    ask: (name, ...argument) =>
      new Promise((resolve) => {
        last += 1;
        asked.set(last, resolve);
        child.send({ id: last, name, argument: argument[0] });
      }) as never,
    async stop() {
      process.off('exit', killed);
      child.kill('SIGKILL');
      await once(child, 'close');
      await rm(directory, { recursive: true, force: true });
    },
  };
}
