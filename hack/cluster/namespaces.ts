import { type ChildProcess, spawn } from 'node:child_process';
import { on, once } from 'node:events';
import { open, readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { binaries } from './spawn.ts';

const script = (name: string) => fileURLToPath(new URL(`node/${name}`, import.meta.url));

/** Where a node lives: mount, network, process, host name, IPC and cgroup namespaces of its own. */
export interface Namespaces {
  /** What comes before a command that is to run in them. */
  readonly enter: readonly string[];
  /** Makes a port of the node that of this machine's loopback address, too. */
  expose(port: number): Promise<void>;
  /** Kills every process in them; with the last one their mounts and links go, then the cgroups. */
  remove(): Promise<void>;
}

/**
 * Makes the namespaces, with `directory` as the node's disk. They are gone when this process has ended, however it ended: what
 * holds them reads from a pipe that ends with it.
 */
export async function makeNamespaces(directory: string, name: string, address: string): Promise<Namespaces> {
  const log = await open(join(directory, 'namespaces.log'), 'a');
  const init = [script('init.sh'), directory, binaries(), name, address];
  // A group of its own: Ctrl-C is for this process, which then ends the rest.
  const holder = spawn('bash', [script('run.sh'), 'bash', ...init], {
    detached: true,
    stdio: ['pipe', 'pipe', log.fd],
    env: { ...process.env, PATH: path() },
  });
  const { stdin } = holder;
  holder.on('error', () => undefined);
  stdin?.on('error', () => undefined);
  await log.close();
  const ended = new Promise<void>((resolve) => {
    holder.once('exit', () => resolve());
  });
  let relay: Promise<Relay> | undefined;
  const remove = async () => {
    await relay?.then(({ stop }) => stop()).catch(() => undefined);
    stdin?.end();
    await ended;
  };
  const pid = await Promise.race([readyPid(holder), ended]);
  if (pid === undefined) {
    const said = await readFile(join(directory, 'namespaces.log'), 'utf8');
    throw new Error(`the namespaces of the real node cannot be made:\n${said.trimEnd()}`);
  }
  const environment = ['env', '-u', 'TMPDIR', `PATH=${path()}`];
  const enter = ['bash', script('enter.sh'), `archaware-node.${holder.pid}`, pid, ...environment];
  return {
    enter,
    async expose(port) {
      relay ??= startRelay(pid);
      await (await relay).pass(port);
    },
    remove,
  };
}

/** Programs of the packages lie in folders that not everybody has on the PATH. */
const path = () =>
  [join(binaries(), 'node'), binaries(), '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'].join(':');

/** The id of PID 1 as this machine sees it. */
async function readyPid(holder: ChildProcess): Promise<string | undefined> {
  if (holder.stdout === null) return undefined;
  for await (const line of createInterface(holder.stdout)) {
    const [word, pid] = line.split(' ');
    if (word === 'ready') return pid;
  }
  return undefined;
}

interface Relay {
  pass(port: number): Promise<void>;
  stop(): void;
}

/** A process in the node's network that takes over sockets which listen in ours; no link joins the two. */
async function startRelay(pid: string): Promise<Relay> {
  const enter = ['--target', pid, '--net', '--pid', '--', process.execPath, ...process.execArgv];
  const child = spawn('nsenter', [...enter, script('relay.ts')], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  child.unref();
  child.channel?.unref();
  const ended = once(child, 'exit').then(() => {
    throw new Error('the relay into the node ended');
  });
  ended.catch(() => undefined);
  const answered = async (expected: unknown) => {
    for await (const [message] of on(child, 'message')) if (message === expected) return;
  };
  const answer = (expected: unknown) => Promise.race([answered(expected), ended]);
  await answer('ready');
  return {
    async pass(port) {
      const server = createServer().listen(port, '127.0.0.1');
      await once(server, 'listening');
      const taken = answer(port);
      child.send(port, server);
      await taken;
      server.close();
    },
    stop: () => void (child.connected && child.disconnect()),
  };
}
