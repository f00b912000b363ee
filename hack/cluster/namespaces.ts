import { type ChildProcess, spawn } from 'node:child_process';
import { on, once } from 'node:events';
import { open, readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { binaries } from './spawn.ts';

const script = (name: string) => fileURLToPath(new URL(`node/${name}`, import.meta.url));

/** The place of a node: mount, network, process, host name, IPC and cgroup namespaces of its own. */
export interface Namespaces {
  /** The words before a command that must run in them. */
  readonly enter: readonly string[];
  /** Makes a port of the node available on this machine's loopback address. */
  expose(port: number): Promise<void>;
  /** Kills every process in them; their mounts and links end with the last process, then the cgroups are removed. */
  remove(): Promise<void>;
}

/**
 * Creates the namespaces, with `directory` as the node's disk. They end with this process, however it ends: their first
 * process reads from a pipe that closes then.
 */
export async function makeNamespaces(directory: string, name: string, address: string): Promise<Namespaces> {
  const log = await open(join(directory, 'namespaces.log'), 'a');
  const init = [script('init.sh'), directory, binaries(), name, address];
  // In a process group of its own: Ctrl-C reaches only this process, which then ends the rest.
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

/** Programs of the packages are in folders that may not be in PATH. */
const path = () =>
  [join(binaries(), 'node'), binaries(), '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'].join(':');

/** Returns the id of PID 1 as this machine sees it. */
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

/**
 * Starts a process in the node's network that takes over sockets which listen in this one; no link connects the two
 * networks.
 */
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
